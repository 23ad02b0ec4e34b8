/*
 * Fuzzes the engine with a client's submit ring and ring of submitted replies. An input is a
 * sequence of (control byte, number of words, words): the words go into the ring, repaired where
 * the control byte says so, so that inputs get past the first checks.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/engine/bench/record_bench.h"
#include "proto/wire_abi.h"
#include "proto/word_abi.h"

enum repair {
    IN_ANSWERS = 1 << 0,
    REPAIR_SIZE = 1 << 1,
    REPAIR_HANDLES = 1 << 2, /* remote, segment, reserve */
    REPAIR_MESSAGE = 1 << 3, /* length of the message's block */
    CONSUME = 1 << 4,        /* the client consumes its events */
    STEP = 1 << 5,
    ANY_TAIL = 1 << 6,    /* the tail is any word, not the end of the written words */
    REPAIR_KIND = 1 << 7, /* fields that only this kind has, lengths and offsets */
};

#define RING 65536u

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct bench_shape shape = {
    .ring_bytes = RING, .region_bytes = BENCH_SEGMENT, .with_self = true};

/* The bytes of a record that are left for its payload, after its ids. */
static uint32_t left_behind(const struct submit_record *r, uint32_t size)
{
    uint32_t ids = abi_pad8(r->lid_len) + abi_pad8(r->rid_len), there = size - (uint32_t)sizeof(*r);

    return ids < there ? there - ids : 0;
}

static uint64_t word_in_region(uint64_t offset)
{
    return offset % BENCH_SEGMENT & ~UINT64_C(7);
}

/* Makes the pieces of a block right: they end with the block, and each is in the region. */
static void repair_pieces(uint8_t *at, uint32_t bytes)
{
    while (bytes >= sizeof(struct vector_piece)) {
        uint32_t room = bytes - (uint32_t)sizeof(struct vector_piece), length;
        struct vector_piece piece;

        memcpy(&piece, at, sizeof(piece));
        length = (uint32_t)piece.place % 512;
        length = length < room ? length : room;
        piece.place = (piece.place >> VECTOR_LENGTH_BITS) % (BENCH_SEGMENT / 2)
                          << VECTOR_LENGTH_BITS |
                      length;
        memcpy(at, &piece, sizeof(piece));
        at += sizeof(piece) + abi_pad8(length);
        bytes = room - abi_pad8(length);
    }
}

static void repair_elements(struct submit_record *r, struct submit_strided *s)
{
    r->code = SUBMIT_PUT;
    r->length = sizeof(*s);
    r->size = sizeof(*r) + sizeof(*s);
    r->local_offset = word_in_region(r->local_offset);
    s->offset = word_in_region(s->offset);
    s->element = 1 + s->element % 64;
    s->count = 1 + s->count % 16;
    s->local_stride %= 128;
    s->remote_stride %= 128;
}

static void repair_kind(struct submit_record *r, uint32_t size)
{
    struct signal *s = (struct signal *)(r + 1);

    r->lid_len = r->rid_len = 0;
    if (r->kind == SUBMIT_SIGNAL && size >= sizeof(*r) + sizeof(*s)) {
        r->rid = 0;
        r->rid_len = sizeof(*s);
        s->offset = word_in_region(s->offset);
        s->code = word_code(s->code % 2 ? WORD_ADD : WORD_SET, WORD_U64);
    }
    r->reserve = event_bytes(0);
    r->length = left_behind(r, size);
    r->flags &= (uint16_t)(SUBMIT_FLAGS_ALL & ~SUBMIT_INLINE);
    r->flags |= r->length > 0 ? SUBMIT_INLINE : 0;
    if (r->kind == SUBMIT_ATOMIC && !word_code_valid(r->code))
        r->code = word_code(WORD_ADD, WORD_U64);
    if (r->kind == SUBMIT_VECTOR) {
        r->code = r->length > 0 ? SUBMIT_PUT : r->code;
        repair_pieces((uint8_t *)(r + 1), (uint32_t)r->length);
    } else if (r->kind == SUBMIT_STRIDED && r->length >= sizeof(struct submit_strided)) {
        repair_elements(r, (struct submit_strided *)(void *)(r + 1));
    } else {
        r->offset = word_in_region(r->offset);
    }
}

static void repair(const struct bench *b, uint8_t how, uint8_t *record, uint32_t size)
{
    struct submit_record *r = (struct submit_record *)(void *)record;

    if (size < sizeof(*r))
        return;
    if (how & REPAIR_HANDLES) {
        r->remote = b->remote;
        r->segment = 0;
        r->lid_len %= 64;
        r->reserve = event_bytes(r->lid_len);
    }
    if (how & REPAIR_MESSAGE && size >= sizeof(*r) + sizeof(struct message)) {
        struct message *m = (struct message *)(void *)(record + sizeof(*r));

        r->lid_len = 0;
        r->reserve = event_bytes(0);
        r->rid_len = (uint16_t)(size - sizeof(*r));
        m->kind = r->kind;
        m->arguments = (uint8_t)((r->rid_len - sizeof(*m)) / 8 % SESSION_ARGUMENTS_MAX);
        m->payload_len = r->rid_len - (uint32_t)sizeof(*m) - 8u * m->arguments;
        r->rid = how & IN_ANSWERS ? r->rid % 4 : 0;
    }
    if (how & REPAIR_KIND)
        repair_kind(r, size);
    if (how & REPAIR_SIZE)
        r->size = size;
}

static void consume(struct ring_control *ring)
{
    atomic_store(&ring->head, atomic_load(&ring->tail));
}

/* Writes a record, repaired, and these words after it, at the ring's tail. */
static void write_record(struct bench *b, struct submit_record r, const uint64_t *behind,
                         uint32_t words)
{
    _Alignas(8) uint8_t record[sizeof(r) + 64];
    uint32_t size = (uint32_t)sizeof(r) + 8 * words;
    uint64_t tail = atomic_load(&b->session->submit.tail);

    memcpy(record, &r, sizeof(r));
    memcpy(record + sizeof(r), behind, 8 * words);
    repair(b, REPAIR_SIZE | REPAIR_HANDLES | REPAIR_KIND, record, size);
    memcpy(b->submit + tail, record, size);
    atomic_store(&b->session->submit.tail, tail + size);
}

/* Checks the target itself: a good record of each kind must be accepted; otherwise no input would
 * get past the first checks. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    /* A struct signal (offset 128, value 7, a slot that the daemon fills in, ADD), and a
     * payload. */
    static const uint64_t signal[] = {128, 7, 0, 1, 'p'};
    static const uint64_t block[] = {UINT64_C(256) << VECTOR_LENGTH_BITS | 8, 'v'};
    static const uint64_t five = 5;
    struct bench *b = bench_new(&shape);
    const uint64_t *words;

    if (!b)
        abort();
    atomic_store(&b->session->handlers[0], UINT64_MAX);
    words = (const uint64_t *)(const void *)b->segment;
    write_record(b, (struct submit_record){.kind = SUBMIT_PUT, .offset = 4096}, &five, 1);
    write_record(b,
                 (struct submit_record){.kind = SUBMIT_ATOMIC,
                                        .code = word_code(WORD_ADD, WORD_U64),
                                        .flags = SUBMIT_FETCH | SUBMIT_SLOT},
                 &five, 1);
    write_record(b, (struct submit_record){.kind = SUBMIT_SIGNAL, .offset = 64}, signal, 5);
    write_record(b,
                 (struct submit_record){.kind = SUBMIT_PUT,
                                        .offset = 192,
                                        .flags = SUBMIT_MORE | SUBMIT_NO_RCE | SUBMIT_SLOT},
                 &five, 1);
    write_record(b,
                 (struct submit_record){.kind = SUBMIT_VECTOR, .total = 16, .flags = SUBMIT_SLOT},
                 block, 2);
    bench_steps(b, 64);
    if (b->quarantined || atomic_load(&b->session->ended) != 5 || words[4096 / 8] != 5 ||
        words[0] != 5 || words[64 / 8] != 'p' || words[128 / 8] != 7 || words[192 / 8] != 5 ||
        words[256 / 8] != 'v')
        abort();
    bench_free(b);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bench *b = bench_new(&shape);
    uint64_t tails[2] = {0, 0};

    if (!b)
        abort();
    atomic_store(&b->session->handlers[0], UINT64_MAX);
    while (size >= 2 && !b->quarantined) {
        uint8_t how = data[0];
        uint32_t bytes = 8u * data[1];
        uint32_t which = how & IN_ANSWERS;
        uint8_t *ring = which ? b->answer : b->submit;
        struct ring_control *control = which ? &b->session->reply_submit : &b->session->submit;
        _Alignas(8) uint8_t record[8 * 255];

        data += 2;
        size -= 2;
        bytes = bytes < size ? bytes : (uint32_t)size & ~7u;
        memcpy(record, data, bytes);
        repair(b, how, record, bytes);
        for (uint32_t i = 0; i < bytes; i++)
            ring[(tails[which] + i) % RING] = record[i];
        tails[which] += bytes;
        if (how & ANY_TAIL && bytes >= 8)
            memcpy(&tails[which], record, sizeof(tails[which]));
        atomic_store(&control->tail, tails[which]);
        data += bytes;
        size -= bytes;
        if (how & STEP)
            bench_steps(b, 4);
        if (how & CONSUME) {
            consume(&b->session->local);
            consume(&b->session->remote);
            consume(&b->session->reply_event);
        }
    }
    bench_steps(b, 16);
    engine_client_close(b->engine, 0);
    bench_steps(b, 16);
    bench_free(b);
    return 0;
}

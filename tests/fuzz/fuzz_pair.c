/*
 * Fuzzes a pair whose other side writes anything. An input is a sequence of (control byte, number,
 * words). As the target we read lines that the origin wrote; as the origin we write, and read a
 * count that the target wrote.
 */
#include <stdlib.h>
#include <string.h>
#include "shm_ring/pair.h"

enum {
    LINE = 1 << 0,     /* words go to the line whose turn it is, and to the next ones */
    REPAIR = 1 << 1,   /* sequence and kind of the line are made right */
    LOOK = 1 << 2,     /* the target reads, and passes over all records */
    WRITE = 1 << 3,    /* the origin writes a record with an id of `number` times 5 bytes */
    CONSUMED = 1 << 4, /* the first word becomes the target's count */
    HEADER = 1 << 5,   /* words go to the header */
    ANSWERS = 1 << 6,  /* in the first byte of an input: use the ring of answers */
};

#define BLOCK_MAX 8192u /* longest block of a message that a reader accepts */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static _Alignas(4096) uint8_t memory[PAIR_BYTES];

static void put_lines(struct pair_reader *r, uint8_t how, const uint8_t *words, size_t bytes)
{
    uint64_t lines = PAIR_LINES * (uint64_t)sizeof(struct pair_line);
    uint64_t at = (r->head & r->mask) * sizeof(struct pair_line);
    uint8_t *ring = (uint8_t *)(uintptr_t)r->lines;
    uint64_t head;

    for (size_t i = 0; i < bytes; i++)
        ring[(at + i) % lines] = words[i];
    if (how & REPAIR && bytes >= 8) {
        memcpy(&head, words, sizeof(head));
        head = (head & ~UINT64_C(0xffffffffffff)) |
               (pair_head(r->head, PAIR_PUT, 0, 0) & UINT64_C(0xffffffffffff));
        memcpy(ring + at, &head, sizeof(head));
    }
}

static void open_reader(struct pair_reader *r, enum pair_direction direction)
{
    (void)pair_reader_init(r, memory, sizeof(memory), direction);
    r->block_max = BLOCK_MAX;
}

/* Reads as neighbours.c does, until the ring is empty or a line makes no sense. */
static void look(struct pair_reader *r, enum pair_direction direction)
{
    static uint8_t id[BLOCK_MAX];
    struct pair_record record;
    int rc;

    for (uint32_t i = 0; i < PAIR_LINES && (rc = pair_look(r, &record, id)) != 0; i++) {
        if (rc < 0) {
            open_reader(r, direction); /* the pair is dropped, and made again */
            return;
        }
        if (record.id_len > BLOCK_MAX || record.lines == 0 || record.lines > PAIR_LINES)
            abort();
        pair_pass(r, &record);
    }
}

static void write_one(struct pair_writer *w, uint32_t id_len)
{
    static const uint8_t id[SESSION_ID_MAX];
    struct pair_record record = {.kind = PAIR_PUT,
                                 .id_len = (uint16_t)(id_len <= SESSION_ID_MAX ? id_len : 0)};

    record.lines = pair_lines(record.id_len);
    if (pair_room(w, record.lines) == 0)
        pair_write(w, &record, id);
    if (w->tail - w->consumed_seen > PAIR_LINES)
        abort();
    (void)pair_drained(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pair_reader reader;
    struct pair_writer writer;
    enum pair_direction direction = size > 0 && data[0] & ANSWERS ? PAIR_ANSWERS : PAIR_REQUESTS;
    struct pair_shared *shared = (void *)memory;

    memset(memory, 0, sizeof(memory));
    pair_format(memory);
    if (pair_reader_init(&reader, memory, sizeof(memory), direction) < 0 ||
        pair_writer_init(&writer, memory, sizeof(memory), direction) < 0)
        abort();
    reader.block_max = BLOCK_MAX;
    while (size >= 2) {
        uint8_t how = data[0], number = data[1];
        size_t bytes = 8u * (number % 32);

        data += 2;
        size -= 2;
        bytes = bytes < size ? bytes : size;
        if (how & LINE)
            put_lines(&reader, how, data, bytes);
        if (how & HEADER && bytes <= PAIR_DATA_OFFSET)
            memcpy(memory + 8 * (number / 32), data, bytes);
        if (how & CONSUMED && bytes >= 8)
            memcpy(direction == PAIR_ANSWERS ? &shared->answers.consumed
                                             : &shared->requests.consumed,
                   data, 8);
        if (how & WRITE)
            write_one(&writer, 5u * number);
        if (how & LOOK)
            look(&reader, direction);
        data += bytes;
        size -= bytes;
    }
    open_reader(&reader, direction);
    return 0;
}

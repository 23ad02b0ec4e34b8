/*
 * Fuzzes letters that a team's other engine sends, beside submissions of the member here. An input
 * is a sequence of units (struct unit). Each unit is a good letter or submission with these fields;
 * `wrong` and `at` may make one byte of the letter wrong. A broken link or team is made again.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "proto/wire_abi.h"
#include "proto/word_abi.h"
#include "shm_ring/team.h"
#include "tests/engine/bench/peek.h"
#include "tests/engine/bench/record_bench.h"

#define WINDOW 4u

enum what { COLL, FLOOR, BROKEN, SUBMIT, DIFFER, WAKE, ACKNOWLEDGE, LEAVE, WHATS };

struct unit {
    uint8_t what, kind, sequence, length;
    uint16_t row, round, value;
    uint8_t wrong, at;
};
static_assert(sizeof(struct unit) == 12, "unit");

struct pair {
    struct bench *b;
    void *base;
    struct team_area area;
    uint64_t number, bytes;
    uint32_t handle;
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct bench_shape shape = {.ring_bytes = 8192, .region_bytes = 4096};
static const uint32_t lengths[] = {0, 1, 8, 40, 41, 48, 1024, 4096};

/* Opens a team. False: earlier teams, whose letters are still under way, use all the memory. */
static bool open_team(struct pair *p)
{
    static const struct engine_team_participant list[] = {{0, 1}, {1, 1}};
    static const struct engine_team_member local[] = {{0, 0}};
    const struct engine_team_info info = {.number = ++p->number,
                                          .size = 2,
                                          .window = WINDOW,
                                          .participants = 2,
                                          .members = 1,
                                          .list = list,
                                          .local = local};
    int handle;

    memset(p->base, 0, p->bytes);
    team_area_format(p->base, 1, WINDOW);
    handle = engine_team_open(p->b->engine, &info, p->base);
    if (handle < 0 && handle != -ENOMEM && handle != -ENOBUFS)
        abort();
    p->handle = (uint32_t)handle;
    return handle >= 0;
}

/* All inputs use the same memory for the area: the area is large, and new pages would cost more
 * than all other work of an input. */
static void open_pair(struct pair *p)
{
    static void *area;

    *p = (struct pair){.b = bench_new(&shape), .bytes = team_area_bytes(1, WINDOW)};
    p->bytes = (p->bytes + 4095) & ~UINT64_C(4095);
    if (!area)
        area = aligned_alloc(4096, p->bytes);
    p->base = area;
    if (!p->b || !p->base || bench_link(p->b) < 0)
        abort();
    if (!open_team(p))
        abort();
    if (team_area_view(&p->area, p->base, p->bytes, 1, WINDOW) < 0)
        abort();
}

static uint64_t signature(const struct unit *u)
{
    bool folds = u->kind >= TEAM_REDUCE && u->kind <= TEAM_REDUCE_SCATTER;

    return team_signature((enum team_kind)u->kind, folds ? WORD_ADD : 0, folds ? WORD_U8 : 0, 0, 1);
}

static uint32_t root(const struct unit *u)
{
    return u->value & 1;
}

/* Makes one byte of a record wrong, at `from` or behind it, if the unit's flag `wrong` is odd. */
static void spoil(const struct unit *u, void *record, size_t from, size_t size)
{
    if (u->wrong & 1)
        ((uint8_t *)record)[from + u->at % (size - from)] ^= (uint8_t)(u->wrong >> 1 | 1);
}

static bool send_coll(struct pair *p, const struct unit *u)
{
    static uint64_t words[(sizeof(struct wire_coll) + 65536) / 8];
    static const struct coll_choices by_table;
    struct wire_coll w = {.head.kind = WIRE_COLL,
                          .team = p->number,
                          .sequence = u->sequence,
                          .signature = signature(u),
                          .floor = u->value >> 8,
                          .from = 1,
                          .root = root(u),
                          .rank = 1,
                          .length = lengths[u->length % 8],
                          .kind = u->kind,
                          .row = (uint8_t)u->row,
                          .round = u->round % 4};
    uint32_t bytes = w.length << (u->round >> 2 & 3), size;

    bytes = w.kind == TEAM_BARRIER ? 0 : bytes < 8192 ? bytes : 8192;
    w.bytes = bytes;
    w.schedule = coll_choose(&by_table, w.kind, w.length, 2);
    size = (uint32_t)sizeof(w) + abi_pad8(bytes);
    w.head.words = (uint16_t)(size / 8);
    spoil(u, &w, sizeof(w.head), sizeof(w));
    memset(words, u->value, size);
    memcpy(words, &w, sizeof(w));
    return bench_send(p->b, words, size);
}

static bool send_floor(struct pair *p, const struct unit *u)
{
    struct wire_floor w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_FLOOR},
                           .team = p->number,
                           .floor = u->value & 255,
                           .wanted = u->row & 255,
                           .from = 1};

    spoil(u, &w, sizeof(w.head), sizeof(w));
    return bench_send(p->b, &w, sizeof(w));
}

static bool send_break(struct pair *p, const struct unit *u)
{
    struct wire_break w = {.head = {.words = sizeof(w) / 8, .kind = WIRE_BREAK},
                           .team = p->number,
                           .rank = {u->row, u->round},
                           .status = u->value & 1 ? -EBADMSG : -EHOSTDOWN,
                           .from = 1};

    spoil(u, &w, sizeof(w.head), sizeof(w));
    return bench_send(p->b, &w, sizeof(w));
}

static void submit(struct pair *p, const struct unit *u)
{
    struct submit_record r = {.size = sizeof(r),
                              .kind = SUBMIT_COLLECTIVE,
                              .code = u->kind,
                              .remote = p->handle,
                              .instance = u->sequence,
                              .length = lengths[u->length % 8],
                              .signature = signature(u),
                              .data_row = u->row == 255 ? TEAM_LINES : u->row,
                              .root = root(u)};

    if (u->what % WHATS == DIFFER)
        r.code = TEAM_MISMATCH;
    if (u->what % WHATS == WAKE) {
        r = (struct submit_record){
            .size = sizeof(r), .kind = SUBMIT_TEAM_WAKE, .remote = p->handle};
        team_sleep(&p->area, 0);
    }
    spoil(u, &r, 8, sizeof(r));
    bench_submit(p->b, &r);
}

/* Checks the target itself: a good call with its letter must end; otherwise no input would get past
 * the first checks. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    const struct unit letter = {
        .what = COLL, .kind = TEAM_ALLREDUCE, .length = 2, .row = WIRE_COLL_LINES};
    const struct unit call = {
        .what = SUBMIT, .kind = TEAM_ALLREDUCE, .length = 2, .row = WIRE_COLL_LINES};
    struct pair p;

    open_pair(&p);
    submit(&p, &call);
    if (!send_coll(&p, &letter) || p.b->broken || p.b->quarantined || team_ended(&p.area, 0) != 1)
        abort();
    bench_free(p.b);
    return 0;
}

/* Makes one step. False: the input ends here. */
static bool step(struct pair *p, const struct unit *u)
{
    bool sent = true;

    switch (u->what % WHATS) {
    case COLL:
        sent = send_coll(p, u);
        break;
    case FLOOR:
        sent = send_floor(p, u);
        break;
    case BROKEN:
        sent = send_break(p, u);
        break;
    case ACKNOWLEDGE:
        bench_ack(p->b);
        break;
    case LEAVE:
        engine_team_leave(p->b->engine, p->handle, 0);
        return open_team(p);
    default:
        submit(p, u);
    }
    if (!sent)
        p->b->broken = true; /* the ring is full: make a new link */
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct unit u;
    struct pair p;

    open_pair(&p);
    for (; size >= sizeof(u) && !p.b->quarantined; size -= sizeof(u)) {
        memcpy(&u, data, sizeof(u));
        data += sizeof(u);
        if (!step(&p, &u))
            break;
        if (p.b->broken) {
            engine_peer_lost(p.b->engine, 1);
            if (bench_link(p.b) < 0)
                abort();
        }
        if (team_is_broken(&p.area) && !p.b->quarantined) {
            engine_team_leave(p.b->engine, p.handle, 0);
            if (!open_team(&p))
                break;
        }
    }
    if (peek_census(p.b->engine).miscounted > 0)
        abort();
    engine_client_close(p.b->engine, 0);
    engine_peer_lost(p.b->engine, 1);
    bench_steps(p.b, 200);
    if (peek_census(p.b->engine).teams > 0 || peek_census(p.b->engine).letters > 0)
        abort();
    bench_free(p.b);
    return 0;
}

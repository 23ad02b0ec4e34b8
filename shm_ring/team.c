/*
 * Owns nothing: the protocol of a team area (team.h says which barriers pair), and how many bytes a
 * collective moves. Thread: any.
 */
#include "shm_ring/team.h"

#include <string.h>

void team_area_format(void *base, uint32_t members, uint32_t window)
{
    struct team_shared *shared = base;

    shared->magic = TEAM_MAGIC;
    shared->members = members;
    shared->window = window;
}

int team_area_view(struct team_area *a, void *base, size_t size, uint32_t members, uint32_t window)
{
    struct team_shared *shared = base;
    uint64_t bytes = team_area_bytes(members, window);

    if (bytes == 0 || size < bytes || shared->magic != TEAM_MAGIC || shared->members != members ||
        shared->window != window)
        return -EPROTO;
    *a = (struct team_area){
        .shared = shared,
        .rows = (uint8_t *)base + TEAM_ROWS_OFFSET,
        .data_counts = (void *)((uint8_t *)base + team_data_counts_offset(members, window)),
        .data = (void *)((uint8_t *)base + team_data_offset(members, window)),
        .row_bytes = team_row_bytes(members),
        .members = members,
        .row_mask = window - 1,
        .row_shift = (uint32_t)__builtin_ctz(window),
    };
    return 0;
}

/* ---- a member's call ------------------------------------------------------------------------- */

/* Whether a count has reached the end of this many laps: 0, -EAGAIN, -EPROTO. Members that only
 * give may already be counted in the next lap. */
static int complete(const struct team_area *a, uint64_t count, uint64_t laps)
{
    uint64_t whole = laps * a->members;

    if (count >= whole)
        return count - whole < a->members ? 0 : -EPROTO;
    return whole - count <= a->members ? -EAGAIN : -EPROTO;
}

/* Whether an instance of an earlier lap has ended: 0 or -EAGAIN. */
static int over(const struct team_area *a, uint64_t sequence)
{
    uint64_t done =
        atomic_load_explicit(&team_row(a, sequence)->result.done, memory_order_seq_cst); /* K M */

    return done > sequence ? 0 : -EAGAIN;
}

int team_row_room(const struct team_area *a, uint64_t sequence)
{
    const struct team_row *row = team_row(a, sequence);
    uint64_t lap = sequence >> a->row_shift;
    int rc = complete(a, atomic_load_explicit(&row->counts.taken, memory_order_seq_cst), /* L M */
                      lap);

    return rc == 0 && lap > 0 ? over(a, sequence - a->row_mask - 1) : rc;
}

int team_data_room(const struct team_area *a, uint64_t turn, uint64_t before)
{
    const struct team_data_counts *counts = &a->data_counts[turn % TEAM_DATA_ROWS];
    uint64_t lap = turn / TEAM_DATA_ROWS;
    int rc = complete(a, atomic_load_explicit(&counts->taken, memory_order_seq_cst), lap); /* L M */

    return rc == 0 && lap > 0 ? over(a, before) : rc;
}

void team_line_write(const struct team_area *a, uint64_t sequence, uint32_t member,
                     uint64_t signature, const void *data, uint32_t bytes)
{
    struct team_line *line = &team_row(a, sequence)->lines[member];

    line->signature = signature;
    line->length = bytes;
    if (bytes > 0)
        memcpy(line->data, data, bytes);
    atomic_store_explicit(&line->sequence, sequence + 1, memory_order_relaxed); /* J */
}

int team_arrive(const struct team_area *a, uint64_t sequence)
{
    uint64_t lap = sequence >> a->row_shift;
    uint64_t here = atomic_fetch_add_explicit(&team_row(a, sequence)->counts.arrived, 1,
                                              memory_order_acq_rel) - /* J */
                    lap * a->members;

    if (here >= a->members)
        return -EPROTO;
    return here + 1 == a->members;
}

int team_compare(const struct team_area *a, uint64_t sequence, uint64_t signature, uint32_t *member,
                 uint64_t *other)
{
    const struct team_line *lines = team_row(a, sequence)->lines;

    for (uint32_t m = 0; m < a->members; m++) {
        uint64_t called = *(const volatile uint64_t *)&lines[m].signature;

        if (atomic_load_explicit(&lines[m].sequence, memory_order_relaxed) != sequence + 1) /* J */
            return -EPROTO;
        if (called != signature) {
            *member = m;
            *other = called;
            return -EBADMSG;
        }
    }
    return 0;
}

/* ---- the end of an instance ------------------------------------------------------------------ */

void team_end(const struct team_area *a, uint64_t sequence, int32_t status, uint32_t length)
{
    struct team_result *result = &team_row(a, sequence)->result;

    result->status = status;
    result->length = length;
    atomic_store_explicit(&result->done, sequence + 1, memory_order_seq_cst); /* K M */
}

/* Adds one to a count. True: the count has completed lap number `laps`. */
static bool count(const struct team_area *a, _Atomic uint64_t *taken, uint64_t laps)
{
    return atomic_fetch_add_explicit(taken, 1, memory_order_seq_cst) + 1 == /* L M */
           laps * a->members;
}

bool team_take(const struct team_area *a, uint64_t sequence)
{
    return count(a, &team_row(a, sequence)->counts.taken, (sequence >> a->row_shift) + 1);
}

bool team_take_data(const struct team_area *a, uint64_t turn)
{
    return count(a, &a->data_counts[turn % TEAM_DATA_ROWS].taken, turn / TEAM_DATA_ROWS + 1);
}

/* ---- sleepers -------------------------------------------------------------------------------- */

static inline uint64_t bit(uint32_t member)
{
    return UINT64_C(1) << member % 64;
}

void team_sleep(const struct team_area *a, uint32_t member)
{
    atomic_fetch_or_explicit(&a->shared->sleepers[member / 64], bit(member),
                             memory_order_seq_cst); /* M */
}

void team_awake(const struct team_area *a, uint32_t member)
{
    atomic_fetch_and_explicit(&a->shared->sleepers[member / 64], ~bit(member),
                              memory_order_relaxed);
}

bool team_others_sleep(const struct team_area *a, uint32_t member)
{
    uint32_t words = (a->members + 63) / 64;
    uint64_t sleep = 0;

    for (uint32_t w = 0; w < words; w++) {
        uint64_t all = atomic_load_explicit(&a->shared->sleepers[w], memory_order_seq_cst); /* M */

        sleep |= w == member / 64 ? all & ~bit(member) : all;
    }
    return sleep != 0;
}

uint64_t team_take_sleepers(const struct team_area *a, uint32_t word)
{
    _Atomic uint64_t *there = &a->shared->sleepers[word];

    if (atomic_load_explicit(there, memory_order_seq_cst) == 0) /* M */
        return 0;
    return atomic_exchange_explicit(there, 0, memory_order_seq_cst); /* M */
}

/* ---- broken teams ---------------------------------------------------------------------------- */

void team_break(const struct team_area *a, const struct team_reason *reason)
{
    struct team_broken *broken = &a->shared->broken;

    broken->rank[0] = reason->rank[0];
    broken->rank[1] = reason->rank[1];
    broken->sequence = reason->sequence;
    broken->signature[0] = reason->signature[0];
    broken->signature[1] = reason->signature[1];
    atomic_store_explicit(&broken->status, reason->status, memory_order_seq_cst); /* N M */
}

void team_reason(const struct team_area *a, struct team_reason *out)
{
    const struct team_broken *broken = &a->shared->broken;
    int32_t status = atomic_load_explicit(&broken->status, memory_order_seq_cst); /* N M */

    *out = (struct team_reason){
        .status = status == 0 || status == -EHOSTDOWN || status == -EBADMSG ? status : -EPROTO,
        .rank = {broken->rank[0], broken->rank[1]},
        .sequence = broken->sequence,
        .signature = {broken->signature[0], broken->signature[1]},
    };
}

/* ---- lengths --------------------------------------------------------------------------------- */

int team_load(struct team_load *load, enum team_kind kind, uint64_t length, uint32_t size,
              uint32_t members)
{
    uint64_t here = members * length, all = size * length;

    switch (kind) {
    case TEAM_BARRIER:
        *load = (struct team_load){.given = 0};
        return 0;
    case TEAM_BCAST:
    case TEAM_REDUCE:
    case TEAM_ALLREDUCE:
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        *load = (struct team_load){.given = length, .node = length, .received = length};
        return 0;
    case TEAM_REDUCE_SCATTER:
    case TEAM_SCATTER:
        *load = (struct team_load){.given = all, .node = all, .received = here};
        return 0;
    case TEAM_GATHER:
    case TEAM_ALLGATHER:
        *load = (struct team_load){.given = length, .node = here, .received = all};
        return 0;
    case TEAM_ALLTOALL:
        *load = (struct team_load){.given = all, .node = members * all, .received = members * all};
        return 0;
    default:
        return -ENOTSUP;
    }
}

/* Bytes of the inputs of a data row. */
static uint64_t inputs(enum team_kind kind, const struct team_load *load, uint32_t members)
{
    return kind == TEAM_BCAST || kind == TEAM_SCATTER ? load->given
                                                      : members * team_stride(load->given);
}

static uint32_t input_max(enum team_kind kind)
{
    return kind == TEAM_SCAN || kind == TEAM_EXSCAN ? TEAM_SCAN_MAX : TEAM_INPUT_MAX;
}

enum team_way team_way(enum team_kind kind, uint64_t length, uint32_t size, uint32_t fullest)
{
    struct team_load load;

    if (length > input_max(kind) || team_load(&load, kind, length, size, fullest) < 0)
        return TEAM_LARGE;
    if (load.given <= TEAM_LINE_BYTES && load.node <= TEAM_LINE_BYTES &&
        load.received <= TEAM_LINE_BYTES)
        return TEAM_BY_LINES;
    return inputs(kind, &load, fullest) <= TEAM_DATA_BYTES && load.received <= TEAM_DATA_BYTES
               ? TEAM_BY_DATA
               : TEAM_LARGE;
}

uint32_t team_small_max(uint32_t fullest)
{
    uint32_t each = TEAM_DATA_BYTES / fullest / 64 * 64;

    return each < TEAM_INPUT_MAX ? each : TEAM_INPUT_MAX;
}

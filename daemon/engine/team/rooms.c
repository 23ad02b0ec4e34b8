/* The memory that a team sets aside (rooms.h). Thread: the progress thread. */
#include "daemon/engine/team/rooms.h"

#include <errno.h>
#include "daemon/engine/team/blocks.h"
#include "daemon/engine/team/table.h"

/* Whether a call of up to this much data may go by lines, or by a data row. */
static bool fits(const struct team *t, uint32_t kind, uint32_t length, bool lines, uint64_t bytes)
{
    enum team_way way = team_way((enum team_kind)kind, length, t->size, t->fullest);

    return (lines ? way == TEAM_BY_LINES : way != TEAM_LARGE) &&
           blocks_bytes(t, kind, length) <= bytes;
}

/* The length of the longest call that fits. */
static uint32_t longest(const struct team *t, uint32_t kind, bool lines, uint64_t bytes)
{
    uint32_t low = 0, high = TEAM_INPUT_MAX + 1;

    while (high - low > 1 && kind != TEAM_BARRIER) {
        uint32_t middle = (low + high) / 2;

        if (fits(t, kind, middle, lines, bytes))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Bytes of an instance: in blocks at most, in all letters of a direction, in the longest letter. */
struct load {
    uint64_t work, mail, letter;
};

/* The load where letters depend on how members are spread: looks at each round. */
static struct load load_by_rounds(const struct blocks *b, uint32_t rounds)
{
    struct load load = {.work = blocks_all(b, 0)};
    uint64_t out = 0, in = 0;

    for (uint32_t r = 0; r < rounds; r++) {
        uint64_t bytes = blocks_all(b, r + 1);
        struct coll_round now;

        load.work = bytes > load.work ? bytes : load.work;
        b->algorithm->round(&b->shape, b->me, r, &now);
        for (uint32_t n = 0; n < now.sends; n++) {
            bytes = blocks_leaving(b, r, &now.to[n].blocks);
            out += bytes;
            load.letter = bytes > load.letter ? bytes : load.letter;
        }
        for (uint32_t n = 0; n < now.arrivals; n++) {
            bytes = blocks_arriving(b, r, &now.from[n].blocks);
            in += bytes;
            load.letter = bytes > load.letter ? bytes : load.letter;
        }
    }
    load.mail = in > out ? in : out;
    return load;
}

/* The load whatever the root: a gather or a scatter sends and gets each block once, and the letters
 * of an operand have it as often as the algorithm says. */
static struct load load_of(const struct team *t, const struct blocks *b, uint32_t rounds)
{
    uint64_t times = coll_times(b->algorithm, &b->shape), all;

    switch (b->kind) {
    case TEAM_REDUCE_SCATTER:
    case TEAM_ALLGATHER:
    case TEAM_ALLTOALL:
        return load_by_rounds(b, rounds);
    case TEAM_GATHER:
    case TEAM_SCATTER:
        all = (uint64_t)t->size * b->length;
        return (struct load){.work = all, .mail = all, .letter = all};
    case TEAM_SCAN:
    case TEAM_EXSCAN:
        return (struct load){
            .work = 2ull * b->length, .mail = times * b->length, .letter = b->length};
    default:
        return (struct load){.work = b->length, .mail = times * b->length, .letter = b->length};
    }
}

static uint32_t larger(uint32_t a, uint64_t b)
{
    return a > b ? a : (uint32_t)b;
}

/* Makes the room large enough for all calls of this row. -ENOMEM. */
static int add_row(const struct team *t, const struct participant *list, uint32_t row, bool lines,
                   struct team_room *room)
{
    const struct coll_algorithm *algorithm = coll_row(row)->algorithm;
    uint64_t first, last, slots;
    struct blocks b;
    struct load load;
    uint32_t length, rounds;

    if (!coll_reach(&t->choices, row, t->participants, &first, &last))
        return 0;
    length = longest(t, coll_row(row)->kind, lines, last);
    if (blocks_bytes(t, coll_row(row)->kind, length) < first)
        return 0;
    b = blocks_by(t, list, row, 0, length, 0);
    rounds = algorithm->rounds(&b.shape);
    slots = (uint64_t)rounds * algorithm->letters;
    if (rounds > UINT16_MAX) /* more than a letter can name */
        return -ENOMEM;
    load = load_of(t, &b, rounds);
    load.mail += 8 * slots; /* each letter begins at a multiple of 8 */
    if (load.letter > TEAM_DATA_BYTES || load.mail > UINT32_MAX - 8)
        return -ENOMEM;
    room->work = larger(room->work, (load.work + 7) & ~UINT64_C(7));
    room->mail = larger(room->mail, (load.mail + 7) & ~UINT64_C(7));
    room->slots = larger(room->slots, slots);
    return 0;
}

int rooms_measure(struct team *t, const struct participant *list)
{
    int r = 0;

    t->lines = (struct team_room){.slots = 1};
    t->data = (struct team_room){.slots = 1};
    for (uint32_t row = 0; row < COLL_ROWS && r == 0; row++) {
        r = add_row(t, list, row, true, &t->lines);
        if (r == 0)
            r = add_row(t, list, row, false, &t->data);
    }
    if (r == 0 && team_slots(t) > ROOMS_SLOTS_MAX)
        return -ENOMEM;
    return r;
}

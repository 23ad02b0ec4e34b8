/* Participants that carry out a schedule (scene.h). Thread: one. */
#include "tests/engine/coll/scene.h"

#include <stdlib.h>
#include <string.h>
#include "shm_ring/fold.h"
#include "tests/suite.h"

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

struct symbol symbol_of(uint32_t participant, uint32_t what)
{
    struct symbol s = {.what = what,
                       .grouping = mixed(participant + 1),
                       .whole = mixed(participant + 77) ^ what,
                       .real = (double)mixed(participant + 33) / (what + 3)};

    s.set[participant / 64] = 1ull << participant % 64;
    return s;
}

bool symbol_holds(const struct symbol *s, uint32_t participant)
{
    return s->set[participant / 64] >> participant % 64 & 1;
}

static void fold_symbol(struct symbol *into, const struct symbol *from)
{
    uint64_t low = into->grouping < from->grouping ? into->grouping : from->grouping;
    uint64_t high = into->grouping < from->grouping ? from->grouping : into->grouping;
    bool apart = into->what == from->what;

    for (int i = 0; i < SET_WORDS; i++) {
        apart = apart && (into->set[i] & from->set[i]) == 0; /* no contribution counts twice */
        into->set[i] |= from->set[i];
    }
    into->grouping = mixed(low + mixed(high));
    fold(word_code(WORD_ADD, WORD_U64), &into->whole, &from->whole, 1);
    fold(word_code(WORD_ADD, WORD_F64), &into->real, &from->real, 1);
    if (!apart)
        CU_FAIL_FATAL("two that do not belong together");
}

struct symbol *scene_block(struct symbol *data, const struct scene *s, uint32_t me, uint32_t b)
{
    if (b >= s->width)
        CU_FAIL_FATAL("a block that is not there");
    return &data[(size_t)me * s->width + b];
}

/* ---- running a schedule ---------------------------------------------------------------------- */

uint32_t letters_with(const struct coll_letter *letters, uint32_t count, uint32_t peer,
                      struct coll_range *blocks, uint32_t *place)
{
    uint32_t found = 0, at = 0;

    for (uint32_t i = 0; i < count; i++) {
        if (letters[i].peer == peer) {
            found++;
            *blocks = letters[i].blocks;
            *place = at;
        }
        at += coll_range_blocks(&letters[i].blocks);
    }
    return found;
}

/* Copies the blocks that leave: each leaves as it was before anything of this round arrives. */
static void send_letters(struct scene *s, uint32_t me)
{
    const struct coll_round *now = &s->now[me];
    uint32_t n = 0, place;
    struct coll_range blocks;

    CU_ASSERT_FATAL(s->algorithm->letters <= COLL_LETTERS);
    CU_ASSERT_FATAL(now->sends <= s->algorithm->letters);
    CU_ASSERT_FATAL(now->arrivals <= s->algorithm->letters);
    for (uint32_t i = 0; i < now->sends; i++)
        n += coll_range_blocks(&now->to[i].blocks);
    s->letters[me] = malloc((n + 1) * sizeof(struct symbol));
    n = 0;
    for (uint32_t i = 0; i < now->sends; i++) {
        const struct coll_range *range = &now->to[i].blocks;
        const struct coll_round *peer = &s->now[now->to[i].peer];

        CU_ASSERT_FATAL(now->to[i].peer < s->shape.participants && now->to[i].peer != me);
        CU_ASSERT_EQUAL_FATAL(letters_with(peer->from, peer->arrivals, me, &blocks, &place), 1);
        for (uint32_t at = range->first; at < range->end; at += range->step)
            for (uint32_t b = at; b < range->end && b < at + range->run; b++)
                s->letters[me][n++] = *scene_block(s->in, s, me, b);
    }
    s->sent[me] += n;
    s->total += now->sends;
}

static void place_symbol(struct scene *s, uint32_t me, uint32_t b, const struct symbol *came)
{
    struct symbol *at = scene_block(s->out, s, me, b);

    switch (s->now[me].how) {
    case COLL_COPY:
        *at = *came;
        return;
    case COLL_SCAN_COPY:
        *scene_block(s->out, s, me, s->shape.blocks + b) = *came;
        break;
    case COLL_SCAN_FOLD:
        fold_symbol(scene_block(s->out, s, me, s->shape.blocks + b), came);
        break;
    case COLL_SIGNAL:
        CU_FAIL_FATAL("a signal has no blocks");
        break;
    case COLL_FOLD:
        break;
    }
    fold_symbol(at, came);
}

static void take_letters(struct scene *s, uint32_t me)
{
    const struct coll_round *now = &s->now[me];

    for (uint32_t i = 0; i < now->arrivals; i++) {
        const struct coll_range *range = &now->from[i].blocks;
        const struct coll_round *peer = &s->now[now->from[i].peer];
        struct coll_range sent = {0};
        uint32_t n = 0;

        CU_ASSERT_FATAL(now->from[i].peer < s->shape.participants && now->from[i].peer != me);
        CU_ASSERT_EQUAL_FATAL(letters_with(peer->to, peer->sends, me, &sent, &n), 1);
        CU_ASSERT_EQUAL_FATAL(coll_range_blocks(&sent), coll_range_blocks(range));
        s->got[me] += coll_range_blocks(range);
        for (uint32_t at = range->first; at < range->end; at += range->step)
            for (uint32_t b = at; b < range->end && b < at + range->run; b++)
                place_symbol(s, me, b, &s->letters[now->from[i].peer][n++]);
    }
}

void scene_round(struct scene *s, uint32_t r)
{
    uint32_t p = s->shape.participants;

    for (uint32_t me = 0; me < p; me++) {
        memset(&s->now[me], 0xff, sizeof(s->now[me]));
        s->algorithm->round(&s->shape, me, r, &s->now[me]);
    }
    for (uint32_t me = 0; me < p; me++)
        send_letters(s, me);
    for (uint32_t me = 0; me < p; me++)
        take_letters(s, me);
    for (uint32_t me = 0; me < p; me++)
        free(s->letters[me]);
}

void scene_run(struct scene *s)
{
    uint32_t rounds = s->algorithm->rounds(&s->shape);

    for (uint32_t r = 0; r < rounds; r++)
        scene_round(s, r);
}

/* ---- start and end --------------------------------------------------------------------------- */

static struct symbol *unknown_symbols(size_t count)
{
    struct symbol *symbols = malloc(count * sizeof(*symbols));

    memset(symbols, 0xff, count * sizeof(*symbols));
    return symbols;
}

void scene_start(struct scene *s, const struct coll_algorithm *algorithm, struct coll_shape shape,
                 uint32_t width)
{
    size_t count = (size_t)shape.participants * width;

    *s = (struct scene){.algorithm = algorithm, .shape = shape, .width = width};
    s->in = unknown_symbols(count);
    s->out = algorithm->apart ? unknown_symbols(count) : s->in;
    s->now = malloc(shape.participants * sizeof(*s->now));
}

void scene_end(struct scene *s)
{
    if (s->out != s->in)
        free(s->out);
    free(s->in);
    free(s->now);
}

/* ---- data that has arrived ------------------------------------------------------------------- */

/* The bits of the numbers below `end` in a word that starts with number `first`. */
static uint64_t below(uint32_t first, uint32_t end)
{
    if (end <= first)
        return 0;
    return end - first >= 64 ? UINT64_MAX : (UINT64_C(1) << (end - first)) - 1;
}

void check_set(const struct symbol *s, uint32_t from, uint32_t to, uint32_t what)
{
    bool same = s->what == what;

    for (uint32_t i = 0; i < SET_WORDS; i++)
        same = same && s->set[i] == (below(64 * i, to) & ~below(64 * i, from));
    if (!same)
        CU_FAIL_FATAL("not what the kind promises");
}

/* Checks that the symbol is the sum of these participants' values. */
void check_sum(const struct symbol *s, uint32_t from, uint32_t to, uint32_t what)
{
    uint64_t whole = 0;

    for (uint32_t i = from; i < to; i++)
        whole += symbol_of(i, what).whole;
    check_set(s, from, to, what);
    CU_ASSERT_EQUAL_FATAL(s->whole, whole);
}

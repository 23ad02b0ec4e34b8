/*
 * Runs a schedule over the LogGP clock (schedule_run.h). The way of a letter:
 *
 *     sent -> ARRIVES at the node's card -> LANDED -> SEEN by the participant's processor
 *     sent -> HANDED within a node ----------------> SEEN
 *
 * Times of the agenda are in ps. Thread: one.
 */
#include "bench/scaling/schedule_run.h"

#include <errno.h>
#include <stdlib.h>
#include "daemon/fabric/sim/sim_timeline.h"

#define HEADER_BYTES 64u /* of a letter, besides its data */
#define AHEAD        64u /* rounds that a participant may be ahead of one that it sends to */
#define LETTERS_MAX  5000000u

enum step {
    ARRIVES = 1, /* subject: the receiver, a: round, b: bytes */
    LANDED,
    HANDED,
    SEEN,
};

struct participant {
    uint64_t processor; /* time from which its processor is free */
    uint64_t at;        /* time at which it has ended its last round */
    uint32_t round;
    uint8_t seen[AHEAD]; /* letters, by the round's low bits */
};

struct run {
    const struct schedule_shape *shape;
    struct coll_shape coll;
    uint64_t block_bytes;
    uint32_t rounds;
    struct participant *of;
    struct loggp_end *cards; /* of nodes; their processors are not used */
    struct sim_timeline agenda;
    struct schedule_cost *cost;
    int error;
};

static void add(struct run *run, uint64_t at, enum step what, uint32_t to, uint64_t round,
                uint64_t bytes)
{
    struct sim_entry entry = {.time = at, .what = what, .subject = to, .a = round, .b = bytes};

    if (sim_timeline_add(&run->agenda, &entry) != 0)
        run->error = -ENOMEM;
}

static uint64_t blocks_of(const struct coll_range *range)
{
    uint64_t whole, last;

    if (range->first >= range->end)
        return 0;
    whole = (range->end - range->first - 1) / range->step;
    last = range->end - range->first - whole * range->step;
    return whole * range->run + (last < range->run ? last : range->run);
}

static uint64_t occupy(uint64_t *processor, uint64_t at, uint64_t busy)
{
    *processor = (at > *processor ? at : *processor) + busy;
    return *processor;
}

static uint64_t copy_ps(const struct run *run, uint64_t bytes)
{
    return bytes * run->shape->memory.byte_fs / 1000;
}

static void send(struct run *run, uint32_t from, const struct coll_letter *letter)
{
    const struct schedule_shape *s = run->shape;
    struct participant *p = &run->of[from];
    uint64_t bytes = blocks_of(&letter->blocks) * run->block_bytes, at;
    uint32_t here = from / s->a_node, there = letter->peer / s->a_node;

    if (here == there) {
        run->cost->letters++;
        at = occupy(&p->processor, p->at, s->memory.overhead_ps + copy_ps(run, bytes));
        add(run, at + s->memory.latency_ps, HANDED, letter->peer, p->round, bytes);
        return;
    }
    run->cost->messages++;
    run->cost->bytes += bytes;
    at = occupy(&p->processor, p->at, s->network.overhead_ps);
    add(run, loggp_answer(&s->network, &run->cards[here], at, bytes + HEADER_BYTES).arrives,
        ARRIVES, letter->peer, p->round, bytes);
}

static void begin(struct run *run, uint32_t me)
{
    struct coll_round round;

    run->shape->algorithm->round(&run->coll, me, run->of[me].round, &round);
    for (uint32_t i = 0; i < round.sends; i++)
        send(run, me, &round.to[i]);
}

/* Ends each round whose letters have all come, and begins the next one. */
static void go_on(struct run *run, uint32_t me)
{
    struct participant *p = &run->of[me];
    struct coll_round round;

    while (p->round < run->rounds) {
        run->shape->algorithm->round(&run->coll, me, p->round, &round);
        if (p->seen[p->round % AHEAD] < round.arrivals)
            return;
        p->seen[p->round % AHEAD] = 0;
        p->at = p->processor > p->at ? p->processor : p->at;
        if (++p->round < run->rounds)
            begin(run, me);
    }
}

/* The processor looks at the letter, and combines its data, or copies data that is not in place. */
static uint64_t see(struct run *run, const struct sim_entry *entry)
{
    const struct schedule_shape *s = run->shape;
    struct coll_round round;
    uint64_t busy = entry->what == HANDED ? s->memory.overhead_ps : s->network.overhead_ps;

    run->shape->algorithm->round(&run->coll, entry->subject, (uint32_t)entry->a, &round);
    if (round.how != COLL_SIGNAL && round.how != COLL_COPY)
        busy += copy_ps(run, entry->b);
    return occupy(&run->of[entry->subject].processor, entry->time, busy);
}

static void count_seen(struct run *run, uint32_t me, uint64_t round)
{
    struct participant *p = &run->of[me];

    if (round - p->round >= AHEAD) {
        run->error = -EPROTO;
        return;
    }
    p->seen[round % AHEAD]++;
    if (p->round == round)
        go_on(run, me);
}

static void perform(struct run *run, const struct sim_entry *entry)
{
    const struct schedule_shape *s = run->shape;
    struct loggp_end *card = &run->cards[entry->subject / s->a_node];

    switch (entry->what) {
    case ARRIVES:
        add(run, loggp_receive(&s->network, card, entry->time, entry->b + HEADER_BYTES), LANDED,
            entry->subject, entry->a, entry->b);
        break;
    case LANDED:
    case HANDED:
        add(run, see(run, entry), SEEN, entry->subject, entry->a, 0);
        break;
    default:
        count_seen(run, entry->subject, entry->a);
    }
}

static void run_all(struct run *run)
{
    uint32_t count = run->coll.participants;
    struct sim_entry entry;

    for (uint32_t i = 0; i < count && run->rounds > 0; i++) {
        begin(run, i);
        go_on(run, i);
    }
    while (run->error == 0 && sim_timeline_take(&run->agenda, UINT64_MAX, &entry))
        perform(run, &entry);
    for (uint32_t i = 0; i < count && run->error == 0; i++) {
        if (run->of[i].round < run->rounds)
            run->error = -EPROTO;
        run->cost->ps = run->of[i].at > run->cost->ps ? run->of[i].at : run->cost->ps;
    }
}

int schedule_run(const struct schedule_shape *shape, struct schedule_cost *out)
{
    uint32_t count = shape->nodes * shape->a_node;
    struct run run = {.shape = shape, .cost = out};

    run.coll = (struct coll_shape){.participants = count,
                                   .blocks = coll_blocks(shape->algorithm, count, shape->bytes)};
    run.block_bytes = (shape->bytes + run.coll.blocks - 1) / run.coll.blocks;
    run.rounds = shape->algorithm->rounds(&run.coll);
    *out = (struct schedule_cost){.rounds = run.rounds};
    if ((uint64_t)run.rounds * count > LETTERS_MAX)
        return -E2BIG;
    run.of = calloc(count, sizeof *run.of);
    run.cards = calloc(shape->nodes, sizeof *run.cards);
    if (run.of && run.cards)
        run_all(&run);
    else
        run.error = -ENOMEM;
    free(run.of);
    free(run.cards);
    sim_timeline_free(&run.agenda);
    return run.error;
}

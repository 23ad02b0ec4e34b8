/*
 * The words that puts with signal change: a word for each pair of ends, in the target's memory.
 * Signals of a pair are done in order, so the word must have the value that it gets by one of them:
 * the model goes through the pair's signals and compares. A word that was set has the number of
 * that operation in its high part; the low part counts what was added since. Thread: one.
 */
#include "tests/engine/world/model/model_parts.h"

#include <errno.h>

#define NUMBER_SHIFT 24u

/* Whether an operation has changed its word, or will. */
enum outcome { NOT_DONE, MAYBE_DONE, DONE };

static enum outcome outcome_of(const struct model_op *op)
{
    if (op->local_seen && op->local_status == -ECONNABORTED)
        return MAYBE_DONE;
    if (op->local_seen && op->local_status != 0)
        return NOT_DONE;
    if (op->local_seen && !(op->flags & PWC_LCE_SOURCE))
        return DONE;
    if (op->shaken)
        return MAYBE_DONE;
    return op->status == 0 ? DONE : NOT_DONE;
}

static uint64_t offset_of(const struct model_end *to, uint32_t from)
{
    return to->length - PATH_WORDS_BYTES + 8u * from;
}

static uint64_t word_of(const struct model *m, uint32_t from, uint32_t to)
{
    const struct model_end *e = &m->ends[to];

    return __atomic_load_n((const uint64_t *)(const void *)(e->memory + offset_of(e, from)),
                           __ATOMIC_ACQUIRE);
}

struct path_signal model_signal(const struct model *m, uint32_t number)
{
    const struct model_op *op = &m->ops[number];
    bool add = number % 3 != 0;

    return (struct path_signal){.offset = offset_of(&m->ends[op->to], op->from),
                                .value = add ? 1 : (uint64_t)(number + 1) << NUMBER_SHIFT,
                                .add = add};
}

/* The word is between these values after the signals that the model has gone through. */
struct bounds {
    uint64_t low, high;
};

static void bounds_pass(const struct model *m, uint32_t number, uint64_t word, struct bounds *b)
{
    const struct path_signal s = model_signal(m, number);
    enum outcome outcome = outcome_of(&m->ops[number]);

    if (outcome == NOT_DONE)
        return;
    if (s.add) {
        b->high++;
        b->low += outcome == DONE;
    } else if (outcome == DONE || word >> NUMBER_SHIFT == s.value >> NUMBER_SHIFT) {
        *b = (struct bounds){s.value, s.value};
    }
}

/* Returns the first signal of a pair, from operation `least` on, after which the word may have this
 * value; NULL: there is none. *exact: that signal was surely done, and is the last one. */
static const uint32_t *match(const struct model *m, const struct model_pair *p, uint32_t least,
                             uint64_t word, bool *exact)
{
    struct bounds b = {p->word, p->word};

    for (uint32_t i = 0; i < p->count; i++) {
        if (m->ops[p->ops[i]].kind != PATH_SIGNAL)
            continue;
        bounds_pass(m, p->ops[i], word, &b);
        if (p->ops[i] >= least && b.low <= word && word <= b.high) {
            *exact = b.low == b.high && outcome_of(&m->ops[p->ops[i]]) == DONE;
            return &p->ops[i];
        }
    }
    return NULL;
}

static bool look(struct model *m, uint32_t from, uint32_t to)
{
    struct model_pair *p = model_pair_of(m, from, to);
    uint64_t word = word_of(m, from, to);
    const uint32_t *number;
    bool exact = false;

    if (word == p->word_seen)
        return true;
    number = match(m, p, 0, word, &exact);
    if (!number)
        return model_fail(m, "the word of %u->%u is %llx, was %llx: no signal has made it so", from,
                          to, (unsigned long long)word, (unsigned long long)p->word_seen);
    p->word_seen = word;
    return !exact || m->ops[*number].ended || model_data_is_there(m, *number);
}

bool model_signal_is_there(struct model *m, uint32_t number)
{
    const struct model_op *op = &m->ops[number];
    uint64_t word = word_of(m, op->from, op->to);
    bool exact;

    return match(m, model_pair_of(m, op->from, op->to), number, word, &exact) ||
           model_fail(m, "operation %u (%u->%u): event before its signal; the word is %llx", number,
                      op->from, op->to, (unsigned long long)word);
}

bool model_signals_look(struct model *m)
{
    const struct model_pair *p = m->pairs;

    for (uint32_t from = 0; from < m->count; from++)
        for (uint32_t to = 0; to < m->count && !m->failed; to++, p++)
            if (p->count > 0 && !m->ends[to].dead)
                look(m, from, to);
    return !m->failed;
}

void model_signals_begin(struct model *m, uint32_t from, uint32_t to)
{
    struct model_pair *p = model_pair_of(m, from, to);

    p->word = p->word_seen = word_of(m, from, to);
}

/* Checks that the word is as all signals of the pair have left it. */
static bool check(struct model *m, uint32_t from, uint32_t to)
{
    const struct model_pair *p = model_pair_of(m, from, to);
    uint64_t word = word_of(m, from, to);
    struct bounds b = {p->word, p->word};

    for (uint32_t i = 0; i < p->count; i++)
        if (m->ops[p->ops[i]].kind == PATH_SIGNAL)
            bounds_pass(m, p->ops[i], word, &b);
    return (b.low <= word && word <= b.high) ||
           model_fail(m, "the word of %u->%u ends as %llx, not %llx to %llx", from, to,
                      (unsigned long long)word, (unsigned long long)b.low,
                      (unsigned long long)b.high);
}

bool model_signals_check(struct model *m)
{
    for (uint32_t i = 0; i < m->count * m->count && !m->failed; i++)
        if (!m->ends[i % m->count].dead)
            check(m, i / m->count, i % m->count);
    return !m->failed;
}

/* The suite of the operations' meaning (suite_operations.h). Thread: one. */
#include "tests/engine/world/paths/suite_operations.h"
#include "tests/count.h"
#include "tests/engine/world/model/model_counters.h"
#include "tests/engine/world/paths/suite_lives.h"

#include <errno.h>
#include <string.h>

#define ROUNDS_MAX 2000000u

static const uint32_t id_lengths[] = {0, 1, 7, 8, 9, 255, 1024};
/* Pairs of ends on two nodes, on one node, and an end with itself. */
static const uint32_t pairs[][2] = {{0, 1}, {1, 0}, {0, 2}, {0, 0}};

/* ---- lengths, ids, flags --------------------------------------------------------------------- */

static void each_length(struct driver *s, enum path_kind kind)
{
    uint64_t packed = s->path->packed_max;
    uint64_t half = s->model.ends[0].length / 2;
    /* A quarter of the half is as long as one piece, or several. */
    const uint64_t lengths[] = {0,
                                1,
                                7,
                                8,
                                9,
                                63,
                                64,
                                65,
                                4095,
                                4096,
                                packed - 1,
                                packed,
                                packed + 1,
                                4097,
                                half / 4 - 1,
                                half / 4,
                                half / 4 + 1,
                                half - PATH_WORDS_BYTES};

    for (size_t p = 0; p < COUNT(pairs); p++)
        for (size_t i = 0; i < COUNT(lengths); i++) {
            uint32_t number = driver_submit(
                s, (struct model_op){
                       .from = pairs[p][0], .to = pairs[p][1], .kind = kind, .length = lengths[i]});

            driver_finish_one(s, number);
        }
    driver_finish(s);
}

static void case_put_lengths(struct driver *s)
{
    each_length(s, PATH_PUT);
}

static void case_get_lengths(struct driver *s)
{
    each_length(s, PATH_GET);
}

static void case_signal_lengths(struct driver *s)
{
    each_length(s, PATH_SIGNAL);
}

/* Guards signals that are all in flight at once: each counts once, in order, also after puts and
 * gets. */
static void case_signals(struct driver *s)
{
    static const unsigned flags[] = {0,         PWC_NO_LCE,    PWC_LCE_SOURCE,
                                     PWC_FENCE, PWC_UNORDERED, PWC_NO_LCE | PWC_FENCE};
    uint64_t packed = s->path->packed_max;

    for (uint32_t i = 0; i < 300 && !s->failed; i++) {
        const uint64_t lengths[] = {0, 8, packed, packed + 1, 4 * packed};

        driver_submit(s, (struct model_op){.from = pairs[i % COUNT(pairs)][0],
                                           .to = pairs[i % COUNT(pairs)][1],
                                           .kind = i % 7 ? PATH_SIGNAL : PATH_PUT,
                                           .length = lengths[driver_random(s, COUNT(lengths))],
                                           .flags = flags[driver_random(s, COUNT(flags))],
                                           .lid_len = i % 5 ? 0 : 33});
    }
    driver_finish(s);
}

/* Sets counters aside at the front of each end's memory, which is not used yet. Returns their
 * offset. */
static uint64_t begin_counters(struct driver *s)
{
    enum { FRONT = 64 };
    uint64_t at = 0;

    for (uint32_t end = 0; end < s->path->ends; end++)
        at = driver_range(s, end, false, FRONT + 8 * MODEL_COUNTERS) + FRONT;
    model_counters(&s->model, at);
    return at;
}

/* Guards atomics in a row, which may become a batch, with the old value or without, beside puts:
 * each is done once, and no two fetch one value. */
static void case_atomics(struct driver *s)
{
    static const unsigned flags[] = {0,         PWC_NO_LCE,    PWC_NO_RCE, PWC_NO_LCE | PWC_NO_RCE,
                                     PWC_FENCE, PWC_UNORDERED, PWC_NOTIFY, PWC_NO_LCE | PWC_NOTIFY};
    uint64_t at = begin_counters(s);

    for (uint32_t i = 0; i < 900 && !s->failed; i++) {
        uint32_t row = i / 5, from = pairs[row % COUNT(pairs)][0],
                 to = pairs[row % COUNT(pairs)][1];
        struct model_op op = {.from = from,
                              .to = to,
                              .kind = PATH_ATOMIC,
                              .length = 8,
                              .remote_offset = at + 8 * driver_random(s, MODEL_COUNTERS),
                              .flags = flags[row / COUNT(pairs) % COUNT(flags)],
                              .fetch = row % 3 != 0};

        op.lid_len = op.fetch || row % 2 ? 0 : 33;
        op.rid_len = op.flags & PWC_NOTIFY || row % 5 ? 0 : 100;
        if (i % 20 == 0)
            driver_submit(s,
                          (struct model_op){
                              .from = from, .to = to, .kind = PATH_PUT, .length = 8 + i % 3 * 200});
        (void)driver_submit_over(s, driver_remote(s, from, to), &op);
    }
    driver_finish(s);
}

/* Guards that an atomic on a word after the end of the region changes nothing. */
static void case_atomics_refused(struct driver *s)
{
    uint64_t size = s->model.ends[1].length;
    const uint64_t offsets[] = {size, size + 8, UINT64_MAX - 7};

    (void)begin_counters(s);
    for (size_t i = 0; i < 2 * COUNT(offsets); i++) {
        const struct model_op op = {.from = 0,
                                    .to = 1,
                                    .kind = PATH_ATOMIC,
                                    .length = 8,
                                    .remote_offset = offsets[i / 2],
                                    .fetch = i % 2,
                                    .status = -ERANGE};

        driver_finish_one(s, driver_submit_over(s, driver_remote(s, 0, 1), &op));
    }
    driver_finish(s);
}

static void case_notification(struct driver *s)
{
    for (size_t p = 0; p < COUNT(pairs); p++) {
        uint32_t from = pairs[p][0], to = pairs[p][1], remote;
        int rc = s->path->calls->bind(s->path->context, from, to, NULL, &remote);

        if (rc != 0)
            driver_fail(s, "bind %u->%u without a key: %s", from, to, strerror(-rc));
        for (int i = 0; i < 20 && !s->failed; i++)
            driver_submit_over(s, remote,
                               &(struct model_op){.from = from, .to = to, .kind = PATH_PUT});
    }
    driver_finish(s);
}

static void case_ids(struct driver *s)
{
    const uint64_t lengths[] = {0, 8, s->path->packed_max + 1};

    for (size_t l = 0; l < COUNT(id_lengths); l++)
        for (size_t r = 0; r < COUNT(id_lengths); r++)
            for (size_t i = 0; i < 2 * COUNT(lengths); i++)
                driver_submit(s, (struct model_op){.from = 0,
                                                   .to = (uint32_t)(l + r) % 3,
                                                   .kind = i % 2 ? PATH_GET : PATH_PUT,
                                                   .length = lengths[i / 2],
                                                   .lid_len = id_lengths[l],
                                                   .rid_len = id_lengths[r]});
    driver_finish(s);
}

/* Gives a number of 6 bits as flags; the highest bit is PWC_NOTIFY, where there is a remote event.
 */
static unsigned all_flags(unsigned number)
{
    bool notify = number > 31 && !(number & PWC_NO_RCE);

    return (number & 31) | (notify ? PWC_NOTIFY : 0);
}

static void case_flags(struct driver *s)
{
    const uint64_t lengths[] = {0, 100, s->path->packed_max + 100};

    for (unsigned flags = 0; flags <= 63; flags++)
        for (size_t p = 0; p < COUNT(pairs); p++)
            for (size_t i = 0; i < 2 * COUNT(lengths); i++)
                driver_submit(s, (struct model_op){.from = pairs[p][0],
                                                   .to = pairs[p][1],
                                                   .kind = i % 2 ? PATH_GET : PATH_PUT,
                                                   .flags = all_flags(flags),
                                                   .length = lengths[i / 2],
                                                   .lid_len = flags % 2 ? 0 : 20});
    driver_finish(s);
}

/* Guards vectors of short pieces, of long ones, and of both, with each flag. */
static void case_vectors(struct driver *s)
{
    uint64_t packed = s->path->packed_max;
    const uint64_t lengths[] = {0, 1, 5, 300, packed, 4 * packed, 6 * packed};
    static const uint32_t pieces[] = {2, 3, 9, 40};

    for (unsigned flags = 0; flags <= 31; flags++)
        for (size_t i = 0; i < COUNT(lengths) * COUNT(pieces) && !s->failed; i++)
            for (int kind = PATH_PUT; kind <= PATH_GET; kind++) {
                size_t p = (i + flags) % COUNT(pairs);

                driver_submit(s, (struct model_op){.from = pairs[p][0],
                                                   .to = pairs[p][1],
                                                   .kind = (enum path_kind)kind,
                                                   .flags = flags,
                                                   .length = lengths[i / COUNT(pieces)],
                                                   .pieces = pieces[i % COUNT(pieces)],
                                                   .lid_len = flags % 2 ? 0 : 20,
                                                   .rid_len = i % 3 ? 0 : 100});
            }
    driver_finish(s);
}

static void case_fence(struct driver *s)
{
    uint64_t long_one = s->path->packed_max * 4;
    uint32_t remote = driver_remote(s, 0, 1);

    for (int i = 0; i < 100 && !s->failed; i++) {
        uint64_t length = i % 2 ? long_one : 1 + driver_random(s, s->path->packed_max);
        struct model_op op = {.from = 0,
                              .to = 1,
                              .kind = PATH_PUT,
                              .flags = PWC_FENCE,
                              .length = length,
                              .remote_offset = driver_random(s, 64),
                              .overlapping = true};

        op.local_offset = driver_range(s, 0, true, length);
        model_fill(&s->model, 0, op.local_offset, length, (uint64_t)i);
        driver_submit_over(s, remote, &op);
    }
    driver_finish(s);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void case_bounds(struct driver *s)
{
    uint64_t size = s->model.ends[1].length;
    const struct {
        uint64_t offset, length;
        int status;
    } rows[] = {
        {0, 1, 0},
        {size - 1, 1, 0},
        {size, 1, -ERANGE},
        {size - 1, 2, -ERANGE},
        {size + 1, 1, -ERANGE},
        {UINT64_MAX, 1, -ERANGE},
        {UINT64_MAX - 7, 16, -ERANGE},
        {1, UINT64_MAX, -ERANGE},
        {0, size / 4, 0},
    };
    uint32_t remote = driver_remote(s, 0, 1);

    for (size_t i = 0; i < 2 * COUNT(rows) && !s->failed; i++) {
        struct model_op op = {.from = 0,
                              .to = 1,
                              .kind = i % 2 ? PATH_GET : PATH_PUT,
                              .remote_offset = rows[i / 2].offset,
                              .length = rows[i / 2].length,
                              .local_offset = s->model.ends[0].length / 2,
                              .flags = i % 4 ? 0 : PWC_NO_LCE,
                              .status = rows[i / 2].status};

        if (op.length > size) /* the library sees already that the local side is wrong */
            continue;
        driver_finish_one(s, driver_submit_over(s, remote, &op));
    }
    driver_finish(s);
}

static void case_too_long(struct driver *s)
{
    struct model_op op = {.from = 0, .to = 1, .kind = PATH_PUT, .length = s->path->message_max + 1};
    uint32_t remote = driver_remote(s, 0, 1);
    struct path_op p = {.kind = PATH_PUT, .from = 0, .remote = remote, .length = op.length};
    struct pwc_event event;
    int rc = s->path->calls->submit(s->path->context, &p);

    if (rc == -EMSGSIZE) /* the library refuses such a put */
        return;
    if (rc != 0)
        driver_fail(s, "a put above message_max: %s", strerror(-rc));
    for (uint32_t i = 0; i < ROUNDS_MAX && !s->failed; i++) {
        if (s->path->calls->probe(s->path->context, 0, &event) == 1) {
            if (event.kind != PWC_LOCAL || event.status != -EMSGSIZE)
                driver_fail(s, "a put above message_max ends with %d", event.status);
            return;
        }
        if (!s->path->calls->progress(s->path->context))
            driver_fail(s, "a put above message_max does not end");
    }
}

static void case_bad_key(struct driver *s)
{
    struct pwc_key good, bad;
    uint32_t remote;
    int rc = s->path->calls->key(s->path->context, 1, 0, &good);

    if (rc != 0)
        driver_fail(s, "no key: %s", strerror(-rc));
    for (int field = 0; field < 5 && !s->failed; field++) {
        bad = good;
        bad.slot += field == 0;
        bad.generation += field == 1;
        bad.secret[0] ^= field == 2;
        bad.secret[15] ^= (uint8_t)(field == 3 ? 0x80 : 0);
        if (field == 4)
            bad.slot = UINT32_MAX;
        rc = s->path->calls->bind(s->path->context, 0, 1, &bad, &remote);
        if (rc != -EKEYREJECTED)
            driver_fail(s, "bind with field %d of the key changed gives %d", field, rc);
    }
    driver_submit(s, (struct model_op){.from = 0, .to = 1, .kind = PATH_PUT, .length = 100});
    driver_finish(s);
}

static void case_rights(struct driver *s)
{
    static const unsigned rights[] = {PWC_REMOTE_READ, PWC_REMOTE_WRITE};

    for (size_t i = 0; i < COUNT(rights) && !s->failed; i++)
        for (int kind = PATH_PUT; kind <= PATH_GET && !s->failed; kind++)
            for (uint64_t length = 16; length <= 8192; length *= 512) {
                bool allowed = rights[i] == (kind == PATH_PUT ? PWC_REMOTE_WRITE : PWC_REMOTE_READ);
                struct model_op op = {.from = 0,
                                      .to = 1,
                                      .kind = (enum path_kind)kind,
                                      .length = length,
                                      .local_offset = s->model.ends[0].length / 2,
                                      .status = allowed ? 0 : -EKEYREJECTED};
                struct pwc_key key;
                uint32_t remote;
                int rc = s->path->calls->key(s->path->context, 1, rights[i], &key);

                if (rc == 0)
                    rc = s->path->calls->bind(s->path->context, 0, 1, &key, &remote);
                if (rc != 0)
                    driver_fail(s, "bind with rights %x: %s", rights[i], strerror(-rc));
                else
                    driver_finish_one(s, driver_submit_over(s, remote, &op));
            }
    driver_finish(s);
}

/* ---- many at once ---------------------------------------------------------------------------- */

static void case_mixed(struct driver *s)
{
    for (int i = 0; i < 2000 && !s->failed; i++)
        driver_submit(s, driver_random_op(s, (uint32_t)driver_random(s, s->path->ends),
                                          (uint32_t)driver_random(s, s->path->ends)));
    driver_finish(s);
}

/* Guards a full ring: while no engine makes a step, submissions are refused when the ring has no
 * room. All that were accepted arrive. */
static void case_full_ring(struct driver *s)
{
    uint32_t remote = driver_remote(s, 0, 1), accepted = 0;
    int rc = 0;

    while (rc == 0 && accepted < 1000000 && !s->failed) {
        struct model_op op = {.from = 0, .to = 1, .kind = PATH_PUT};
        uint32_t number = model_submit(&s->model, &op);
        struct path_op p = {.kind = PATH_PUT,
                            .from = 0,
                            .remote = remote,
                            .lid = model_lid(&s->model, number, NULL),
                            .rid = model_rid(&s->model, number, NULL)};

        rc = s->path->calls->submit(s->path->context, &p);
        if (rc == 0) {
            model_accepted(&s->model, number);
            accepted++;
        } else {
            model_refused(&s->model, number);
        }
    }
    if (rc != -EAGAIN || accepted < 10)
        driver_fail(s, "after %u submissions: %s", accepted, strerror(-rc));
    driver_finish(s);
}

/* Guards small puts in a row, alike and not, to an end that takes its events and to one that takes
 * none at first. */
static void case_rows(struct driver *s)
{
    static const unsigned flags[] = {0,
                                     PWC_NO_LCE,
                                     PWC_NO_RCE,
                                     PWC_NO_LCE | PWC_NO_RCE,
                                     PWC_UNORDERED,
                                     PWC_NOTIFY,
                                     PWC_NO_LCE | PWC_FENCE,
                                     PWC_NO_LCE | PWC_NOTIFY};
    static const uint64_t lengths[] = {1, 8, 60, 256, 257, 8, 8};

    for (size_t i = 0; i < COUNT(flags); i++) {
        s->silent = i % 2 ? 1u << 3 : 0;
        for (uint32_t k = 0; k < 150 && !s->failed; k++)
            driver_submit(s, (struct model_op){.from = 0,
                                               .to = 3,
                                               .kind = PATH_PUT,
                                               .length = lengths[k / 20 % COUNT(lengths)],
                                               .flags = flags[i]});
        for (int turns = 0; turns < 40 && !s->failed; turns++)
            driver_turn(s);
        s->silent = 0;
        driver_finish(s);
    }
}

/* Guards an end that takes no events: others on the same nodes continue, and when the end takes
 * events again it gets all of them, in order. */
static void case_not_draining(struct driver *s)
{
    uint32_t remote = driver_remote(s, 0, 3), towards_silent = 0;
    uint64_t before;

    driver_remote(s, 2, 1);
    driver_remote(s, 1, 2);
    driver_remote(s, 0, 1);
    s->silent = 1u << 3;
    for (int i = 0; i < 4000 && !s->failed; i++) {
        struct model_op op = {
            .from = 0, .to = 3, .kind = PATH_PUT, .flags = PWC_NO_LCE, .rid_len = 1024};
        uint8_t rid[MODEL_ID_MAX];
        uint32_t number = model_submit(&s->model, &op);
        struct path_op p = {.kind = PATH_PUT,
                            .from = 0,
                            .remote = remote,
                            .flags = PWC_NO_LCE,
                            .lid = model_lid(&s->model, number, NULL),
                            .rid = model_rid(&s->model, number, rid)};

        if (s->path->calls->submit(s->path->context, &p) == 0) {
            model_accepted(&s->model, number);
            towards_silent++;
        } else {
            model_refused(&s->model, number);
        }
        driver_turn(s);
    }
    if (towards_silent < 100)
        driver_fail(s, "only %u operations were taken towards the silent end", towards_silent);
    before = s->model.ends[1].remote_events;
    for (int i = 0; i < 300 && !s->failed; i++) {
        driver_submit(s, driver_random_op(s, 2, 1));
        driver_submit(s, driver_random_op(s, 1, 2));
    }
    for (uint32_t i = 0; i < s->model.op_count; i++)
        if (s->model.ops[i].to != 3)
            driver_finish_one(s, i);
    if (!s->failed && s->model.ends[1].remote_events < before + 100)
        driver_fail(s, "the others had only %llu events meanwhile",
                    (unsigned long long)(s->model.ends[1].remote_events - before));
    s->silent = 0;
    driver_finish(s);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static bool needs_key(const struct model_op *op)
{
    return op->length > 0 || op->kind == PATH_SIGNAL;
}

static void case_withdrawal(struct driver *s)
{
    uint32_t first;

    for (int i = 0; i < 40; i++)
        driver_submit(s, driver_random_op(s, 0, 1));
    for (uint32_t i = 0; i < s->model.op_count; i++)
        s->model.ops[i].shaken |= needs_key(&s->model.ops[i]);
    if (!s->failed && s->path->calls->withdraw(s->path->context, 1) != 0)
        driver_fail(s, "withdrawal is refused");
    for (uint32_t i = 0; i < ROUNDS_MAX && !s->failed; i++) {
        if (s->path->calls->withdrawn(s->path->context, 1))
            break;
        if (!driver_turn(s))
            driver_fail(s, "withdrawal does not end");
    }
    first = s->model.op_count;
    for (int i = 0; i < 20; i++) {
        struct model_op op = driver_random_op(s, 0, 1);

        if (needs_key(&op))
            op.status = -EKEYREJECTED;
        driver_submit(s, op);
    }
    for (uint32_t i = first; i < s->model.op_count; i++)
        driver_finish_one(s, i);
    driver_finish(s);
}

static void submit_some(struct driver *s, int count, int status)
{
    for (int i = 0; i < count; i++) {
        struct model_op op = driver_random_op(s, 0, 1);

        op.status = status;
        op.shaken = status != 0;
        driver_submit(s, op);
        driver_submit(s, driver_random_op(s, 0, 2));
        if (s->path->ends > 3 && status == 0)
            driver_submit(s, driver_random_op(s, 3, 2));
    }
}

static void case_client_dies(struct driver *s)
{
    driver_remote(s, 2, 3);
    submit_some(s, 30, 0);
    model_dead(&s->model, 1);
    if (!s->failed && s->path->calls->kill(s->path->context, 1) != 0)
        driver_fail(s, "the client does not die");
    for (uint32_t i = 0; i < s->model.op_count; i++)
        driver_finish_one(s, i);
    submit_some(s, 20, -EHOSTDOWN);
    for (int i = 0; i < 100; i++)
        driver_submit(s, driver_random_op(s, 2, 3));
    driver_finish(s);
}

static void case_link_lost(struct driver *s)
{
    submit_some(s, 30, 0);
    for (uint32_t a = 0; a < s->path->ends; a += 2)
        for (uint32_t b = 1; b < s->path->ends; b += 2)
            model_shake(&s->model, a, b);
    if (!s->failed && s->path->calls->cut(s->path->context, 0, 1, true) != 0)
        driver_fail(s, "the link is not cut");
    for (uint32_t i = 0; i < s->model.op_count; i++)
        driver_finish_one(s, i);
    for (int i = 0; i < 100; i++)
        driver_submit(s, driver_random_op(s, 0, 2));
    driver_finish(s);
}

static void case_link_breaks(struct driver *s)
{
    for (int i = 0; i < 10 && !s->failed; i++) {
        submit_some(s, 10, 0);
        for (uint64_t turns = driver_random(s, 50); turns > 0; turns--)
            driver_turn(s);
        if (s->path->calls->cut(s->path->context, 0, 1, false) != 0)
            driver_fail(s, "the link is not cut");
    }
    driver_finish(s);
}

const struct suite_case suite_cases[] = {
    {"put of each length", case_put_lengths, 0},
    {"get of each length", case_get_lengths, 0},
    {"put with signal of each length", case_signal_lengths, 0},
    {"puts with signal in a row", case_signals, 0},
    {"atomics in a row", case_atomics, 0},
    {"atomics out of bounds", case_atomics_refused, 0},
    {"pure notification", case_notification, 0},
    {"ids of each length", case_ids, 0},
    {"all flags", case_flags, 0},
    {"vectors with all flags", case_vectors, 0},
    {"overlapping writes with fences", case_fence, 0},
    {"out of bounds", case_bounds, 0},
    {"message too long", case_too_long, PATH_LIMITS_LENGTHS},
    {"bad key", case_bad_key, 0},
    {"rights", case_rights, 0},
    {"mixed operations among all", case_mixed, 0},
    {"small puts in a row", case_rows, 0},
    {"full submission ring", case_full_ring, 0},
    {"an end that does not drain", case_not_draining, 0},
    {"withdrawal under traffic", case_withdrawal, 0},
    {"client dies", case_client_dies, 0},
    {"link lost for good", case_link_lost, PATH_CUTS_LINKS},
    {"link breaks and comes back", case_link_breaks, PATH_CUTS_LINKS},
    {"flush", lives_flush, PATH_FLUSHES},
    {"flush of a held flow", lives_flush_held, PATH_FLUSHES},
    {"flush over breaking links", lives_flush_breaks, PATH_FLUSHES | PATH_CUTS_LINKS},
    {"flush of a dead flow", lives_flush_dead, PATH_FLUSHES},
    {"flush of a lost link", lives_flush_lost, PATH_FLUSHES | PATH_CUTS_LINKS},
    {"two contexts of each client", lives_contexts, PATH_HAS_CONTEXTS},
    {"a context that is full", lives_context_full, PATH_HAS_CONTEXTS},
    {"unbind under traffic", lives_unbind, PATH_UNBINDS},
    {"bind and unbind, many times", lives_unbind_often, PATH_UNBINDS},
    {"use after unbind", lives_use_after_unbind, PATH_UNBINDS},
    {"a context closes as origin", lives_close_origin, PATH_CLOSES},
    {"a context closes as target", lives_close_target, PATH_CLOSES},
    {"a context closes with a spill", lives_close_spill, PATH_CLOSES},
    {"a context comes and goes", lives_close_often, PATH_CLOSES},
};
const size_t suite_case_count = COUNT(suite_cases);

const char *suite_run(struct driver *s, const struct suite_case *c, const struct path *path,
                      uint64_t seed)
{
    if (driver_open(s, path, seed) != 0)
        return "no memory for the model";
    c->run(s);
    driver_close(s);
    return s->failed ? s->failure : NULL;
}

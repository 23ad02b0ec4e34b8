/* Submits, checks and counts (ledger.h). */
#include "tests/system/lib/ledger.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pwc/am.h"
#include "proto/clock.h"

#define SLOT     (64u << 10)
#define SMALL    64u
#define LARGE    (48u << 10)
#define READ     4096u
#define WINDOW   12u /* operations under way at most */
#define WAIT_MS  20
#define STUCK_NS INT64_C(30000000000)
#define READABLE (2 * LEDGER_SLOTS * SLOT) /* offset of the bytes that the other rank gets */
#define LANDING  (READABLE + READ)         /* offset of the bytes that we have got */
#define LENGTH   (LANDING + LEDGER_SLOTS * READ)

enum kind { PUT_SMALL, PUT_LARGE, GET, MESSAGE, MEDIUM, NOTIFY, KINDS };

static int fail(struct ledger_rank *r, const char *what, int64_t is, int64_t should)
{
    fprintf(stderr, "rank %u: %s: %lld, not %lld (submitted %u, ended %u, seen %u)\n",
            r->rank.number, what, (long long)is, (long long)should, r->submitted, r->ended,
            r->seen);
    atomic_store(r->failed, true);
    return -EIO;
}

/* The kind of an operation, by its number. */
static enum kind kind_of(uint32_t number)
{
    static const enum kind kinds[] = {PUT_SMALL, PUT_LARGE, PUT_SMALL, GET,
                                      PUT_SMALL, MESSAGE,   PUT_LARGE, MEDIUM};

    return kinds[number % 8];
}

static size_t length_of(enum kind kind)
{
    return kind == PUT_SMALL ? SMALL : kind == PUT_LARGE ? LARGE : kind == GET ? READ : 0;
}

/* ---- arrivals ------------------------------------------------------------------------------- */

static void handled(pwc_ctx *ctx, const struct pwc_am *m, void *argument)
{
    struct ledger_rank *r = argument;

    if (m->count != 1 || m->arguments[0] != r->messages ||
        (m->kind == PWC_AM_MEDIUM && rank_check(m->payload, m->length, r->messages) != 0))
        r->kinds_failed = true;
    r->messages++;
}

static int check_remote(struct ledger_rank *r, const struct pwc_event *event)
{
    uint32_t number = (uint32_t)event->id, kind = (uint32_t)(event->id >> 32) & 0xff;

    if (event->status != 0)
        return fail(r, "a remote event's status", event->status, 0);
    if (number != r->seen)
        return fail(r, "a remote event's number", number, r->seen);
    if (kind == PUT_SMALL || kind == PUT_LARGE) {
        const uint8_t *at = r->rank.memory + (size_t)(number % LEDGER_SLOTS) * SLOT;

        if (rank_check(at, length_of((enum kind)kind), number) != 0)
            return fail(r, "bytes of operation", number, number);
    }
    /* The id has the lower 24 bits of the count: take the next count with these bits. */
    r->peer_checked += ((uint32_t)(event->id >> 40) - r->peer_checked) & 0xffffffu;
    r->seen++;
    return 0;
}

static int check_local(struct ledger_rank *r, const struct pwc_event *event)
{
    int64_t now = now_ns(), gap = now - r->end_ns;

    if (event->id != r->ended)
        return fail(r, "a local event's number", (int64_t)event->id, r->ended);
    if (event->status == -ECONNABORTED)
        r->aborted++;
    else if (event->status != 0)
        return fail(r, "a local event's status", event->status, 0);
    if (event->status == 0 && r->kinds[r->ended % sizeof(r->kinds)] == GET &&
        rank_check(r->rank.memory + LANDING + (size_t)(r->ended % LEDGER_SLOTS) * READ, READ,
                   1 - r->rank.number) != 0)
        return fail(r, "bytes read by", r->ended, r->ended);
    if (r->end_ns != 0 && gap > r->gap_ns)
        r->gap_ns = gap;
    r->end_ns = now;
    r->ended++;
    return 0;
}

/* ---- submissions ---------------------------------------------------------------------------- */

static int submit_message(struct ledger_rank *r, enum kind kind, pwc_cid lid)
{
    uint64_t number = r->messages_sent;
    uint8_t payload[512];
    int rc;

    if (kind == MESSAGE) {
        rc = pwc_am_short(r->rank.remote, &(struct pwc_am_send){.index = 1,
                                                                .arguments = &number,
                                                                .count = 1,
                                                                .lid = lid,
                                                                .flags = PWC_AM_NO_REPLY});
    } else {
        rank_fill(payload, sizeof(payload), number);
        rc = pwc_am_medium(r->rank.remote, &(struct pwc_am_send){.index = 1,
                                                                 .arguments = &number,
                                                                 .count = 1,
                                                                 .src = payload,
                                                                 .len = sizeof(payload),
                                                                 .lid = lid,
                                                                 .flags = PWC_AM_NO_REPLY});
    }
    r->messages_sent += rc == 0;
    return rc;
}

static int submit_kind(struct ledger_rank *r, enum kind kind)
{
    uint32_t number = r->shown;
    size_t slot = number % LEDGER_SLOTS, length = length_of(kind);
    uint8_t *from = r->rank.memory + (LEDGER_SLOTS + slot) * SLOT;
    pwc_cid lid = pwc_cid_u64(r->submitted);
    /* The id holds the lower 24 bits of `seen`; the other side knows the upper bits. */
    pwc_cid rid = pwc_cid_u64((uint64_t)r->seen << 40 | (uint64_t)kind << 32 | number);

    switch (kind) {
    case PUT_SMALL:
    case PUT_LARGE:
        rank_fill(from, length, number);
        return pwc_put(r->rank.remote, slot * SLOT, from, length, lid, rid, 0);
    case GET:
        return pwc_get(r->rank.remote, READABLE,
                       r->rank.memory + LANDING + (size_t)(r->submitted % LEDGER_SLOTS) * READ,
                       READ, lid, rid, 0);
    case NOTIFY:
        return pwc_put(r->rank.remote, 0, NULL, 0, lid, rid, 0);
    default:
        return submit_message(r, kind, lid);
    }
}

/* Submits the next operation. 1: submitted; 0: the rank has to wait; else an error. */
static int submit(struct ledger_rank *r)
{
    enum kind kind = kind_of(r->submitted);
    bool stop = atomic_load(r->stop);
    uint32_t number = r->submitted;
    int rc;

    /* From now on this rank submits nothing more. */
    if (stop)
        atomic_store(&r->stopped, true);
    if (stop || r->submitted - r->ended >= WINDOW)
        return 0;
    /* All slots are in use until the other rank reports what it has checked. Meanwhile only a
     * notification may be sent, and only if it reports something new. */
    if (r->shown - r->peer_checked >= LEDGER_SLOTS) {
        if (r->last_ack == r->seen)
            return 0;
        kind = NOTIFY;
    }
    rc = submit_kind(r, kind);
    if (rc == -EAGAIN)
        return 0;
    if (rc < 0)
        return fail(r, "a submission", rc, 0);
    r->kinds[number % sizeof(r->kinds)] = (uint8_t)kind;
    r->submitted++;
    if (kind != MESSAGE && kind != MEDIUM) {
        r->last_ack = r->seen;
        r->shown++;
    }
    return 1;
}

static bool done(const struct ledger_rank *r)
{
    return atomic_load(&r->stopped) && atomic_load(&r->other->stopped) &&
           r->submitted == r->ended && r->seen == r->other->shown &&
           r->other->submitted == r->other->ended && r->messages == r->other->messages_sent;
}

static void *run(void *argument)
{
    struct ledger_rank *r = argument;
    int64_t moved = now_ns();

    while (!atomic_load(r->failed) && !done(r)) {
        struct pwc_event event;
        int sent = submit(r);
        int rc = sent < 0   ? sent
                 : sent > 0 ? pwc_probe(r->rank.ctx, PWC_ANY, 0, &event)
                            : pwc_wait(r->rank.ctx, PWC_ANY, 0, &event, WAIT_MS);

        if (rc == 1)
            rc = event.kind == PWC_LOCAL ? check_local(r, &event) + 1 : check_remote(r, &event) + 1;
        else if (rc < 0 && sent >= 0)
            fail(r, "waiting", rc, 0);
        if (r->kinds_failed)
            fail(r, "a message", r->messages, r->messages);
        if (sent > 0 || rc == 1)
            moved = now_ns();
        else if (now_ns() - moved > STUCK_NS)
            fail(r, "stuck for seconds", STUCK_NS / 1000000000, 0);
    }
    return NULL;
}

/* ---- from outside ---------------------------------------------------------------------------- */

int ledger_start(struct ledger *l, const char *job, const char *const sockets[2])
{
    int rc = 0;

    memset(l, 0, sizeof(*l));
    for (uint32_t i = 0; rc == 0 && i < 2; i++) {
        struct ledger_rank *r = &l->ranks[i];

        r->other = &l->ranks[1 - i];
        r->stop = &l->stop;
        r->failed = &l->failed;
        rc = rank_attach(&r->rank, sockets[i], job, i, 2, LENGTH);
        if (rc == 0) {
            rank_fill(r->rank.memory + READABLE, READ, i);
            rc = pwc_am_register(r->rank.ctx, 1, handled, r);
        }
    }
    for (uint32_t i = 0; rc == 0 && i < 2; i++)
        rc = rank_bind(&l->ranks[i].rank, &l->ranks[1 - i].rank);
    for (uint32_t i = 0; rc == 0 && i < 2; i++) {
        rc = -pthread_create(&l->ranks[i].thread, NULL, run, &l->ranks[i]);
        l->ranks[i].runs = rc == 0;
    }
    return rc;
}

bool ledger_stop(struct ledger *l)
{
    atomic_store(&l->stop, true);
    for (int i = 0; i < 2; i++)
        if (l->ranks[i].runs)
            pthread_join(l->ranks[i].thread, NULL);
    for (int i = 0; i < 2; i++) {
        struct pwc_event event;

        /* No event comes twice. */
        if (!l->failed && pwc_wait(l->ranks[i].rank.ctx, PWC_ANY, 0, &event, 50) != 0)
            fail(&l->ranks[i], "an event too many", (int64_t)event.id, -1);
        rank_detach(&l->ranks[i].rank);
    }
    return !l->failed;
}

uint64_t ledger_ended(const struct ledger *l)
{
    return (uint64_t)l->ranks[0].ended + l->ranks[1].ended;
}

uint64_t ledger_aborted(const struct ledger *l)
{
    return l->ranks[0].aborted + l->ranks[1].aborted;
}

int64_t ledger_gap_ns(struct ledger *l)
{
    int64_t longest = 0;

    for (int i = 0; i < 2; i++) {
        int64_t gap = atomic_exchange(&l->ranks[i].gap_ns, 0);

        longest = gap > longest ? gap : longest;
    }
    return longest;
}

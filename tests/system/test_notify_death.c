/*
 * An origin of notifications dies by SIGKILL in the middle of its stream. The target has taken
 * exactly the notifications that had arrived, in order, with each kind of request: one at a time,
 * counted, with wildcards; and those that no request took are unexpected. Requests that wait for
 * the dead rank stay started until the target cancels them, and the stream of another origin
 * continues meanwhile.
 *
 * Rank 0 is the target, in this process, on node 0; the others are child processes, on the last
 * node.
 *
 *     test_notify_death PWCD PROVIDER NODES [--KEY VALUE]...
 */
#include <errno.h>
#include <pwc/notify.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/lib/bystanders.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"

enum {
    TARGET,
    OTHER,
    VICTIM,
    RANKS,
    /* Tags of the first window. */
    STREAM = 0, /* one notification at a time */
    COUNTED,    /* for one request whose count is never reached */
    KEPT,       /* no request until the victim is dead */
    STOP,       /* last notification of the other origin */
    GO,         /* to the other origin: stop sending */
    KEPT_COUNT = 100,
    WILD_COUNT = 3000,  /* in the second window: the request's, and the other origin's */
    WILD_VICTIM = 1000, /* the victim sends this many there, at most */
    SEEN_BEFORE_DEATH = 2000,
    PEER_DEADLINE_MS = 1000,
};

/*
 * An origin's part of the target's region:
 *
 *     0          8          16         4096             64 Ki
 *     +----------+----------+----------+----------------+---------------------+
 *     | counted  | wild     |          | last numbers   | a long payload      |
 *     +----------+----------+----------+----------------+---------------------+
 */
enum {
    COUNTED_AT = 0,
    WILD_AT = 8,
    NUMBERS_AT = 4096,
    NUMBERS = 4096,
    LONG_AT = 64 << 10,
    LONG_BYTES = 64 << 10,
    PART = 128 << 10,
    REGION = RANKS * PART,
};

/* Set by main before the tests run. */
static struct cluster cluster;
/* Belongs to no single test, because a failed test leaves the bystanders running. */
static struct bystanders bystanders;

struct member {
    struct rank r;
    pwc_team *world;
    pwc_window *first, *second; /* over the job; over the team */
};

static const char *socket_of(uint32_t rank)
{
    return cluster.nodes[rank == TARGET ? 0 : cluster.options.nodes - 1].socket;
}

/* Attaches a rank and makes its windows; all ranks call this together. */
static int attach(struct member *m, uint32_t rank, const char *job)
{
    int rc = rank_attach(&m->r, socket_of(rank), job, rank, RANKS, REGION);

    if (rc == 0)
        rc = pwc_window_create(m->r.ctx, NULL, m->r.region, &m->first);
    if (rc == 0)
        rc = pwc_team_world(m->r.ctx, NULL, &m->world);
    return rc < 0 ? rc : pwc_window_create(m->r.ctx, m->world, m->r.region, &m->second);
}

/* ---- origins --------------------------------------------------------------------------------- */

struct origin {
    struct member m;
    uint64_t sent;          /* notifications of the stream */
    uint64_t counted, wild; /* notifications with the tag COUNTED, and to the second window */
    uint64_t wild_max;
};

/* The length of the stream's notification with this number. */
static uint64_t stream_bytes(uint64_t number)
{
    return number % 64 == 63 ? LONG_BYTES : number % 7 == 3 ? 16 : 8;
}

/* Takes events: with PWC_NO_LCE only failed operations have some, and there must be none. */
static void take_events(const struct origin *o)
{
    struct pwc_event event;

    if (pwc_probe(o->m.r.ctx, PWC_ANY, PWC_LOCAL, &event) != 0)
        _exit(2);
}

static void put(struct origin *o, pwc_window *window, uint64_t at, const void *src, size_t bytes,
                uint32_t tag)
{
    uint64_t off = (uint64_t)o->m.r.number * PART + at;
    int rc;

    while ((rc = pwc_put_notify(window, TARGET, off, src, bytes, tag, PWC_CID_NONE, PWC_NO_LCE)) ==
           -EAGAIN)
        take_events(o);
    if (rc != 0)
        _exit(3);
}

static void get(struct origin *o, size_t bytes)
{
    int rc;

    while ((rc = pwc_get_notify(o->m.first, TARGET, 0, o->m.r.memory, bytes, STREAM, PWC_CID_NONE,
                                PWC_NO_LCE)) == -EAGAIN)
        take_events(o);
    if (rc != 0)
        _exit(4);
}

static void send_next(struct origin *o)
{
    uint64_t number = o->sent++, bytes = stream_bytes(number);

    if (bytes == 8)
        put(o, o->m.first, NUMBERS_AT + number % NUMBERS * 8, &number, 8, STREAM);
    else if (bytes == 16)
        get(o, 16);
    else
        put(o, o->m.first, LONG_AT, o->m.r.memory, LONG_BYTES, STREAM);
    if (number % 10 == 0) {
        o->counted++;
        put(o, o->m.first, COUNTED_AT, &o->counted, 8, COUNTED);
    }
    if (o->wild < o->wild_max) {
        o->wild++;
        put(o, o->m.second, WILD_AT, &o->wild, 8, (uint32_t)(number % 100));
    }
    take_events(o);
}

static void begin(struct origin *o, uint32_t rank, const char *job, uint64_t wild_max)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    *o = (struct origin){.wild_max = wild_max};
    if (attach(&o->m, rank, job) != 0)
        _exit(1);
    for (int i = 0; i < KEPT_COUNT; i++)
        put(o, o->m.first, 0, NULL, 0, KEPT);
}

/* The victim, in a process of its own, until it is killed. */
_Noreturn static void be_victim(const char *job)
{
    struct origin o;

    begin(&o, VICTIM, job, WILD_VICTIM);
    for (;;)
        send_next(&o);
}

/* The other origin, in a process of its own. Its last notification (STOP) writes the number of
 * all. */
_Noreturn static void be_other(const char *job)
{
    struct origin o;
    struct pwc_status status;
    pwc_request *go;

    begin(&o, OTHER, job, WILD_COUNT);
    if (pwc_notify_init(o.m.first, TARGET, GO, 1, PWC_CID_NONE, &go) != 0 || pwc_start(go) != 0)
        _exit(5);
    while (pwc_test(go, &status) == 0 || o.wild < o.wild_max)
        send_next(&o);
    if (status.status != 0 || pwc_window_rank(o.m.first, status.peer) != TARGET)
        _exit(6);
    put(&o, o.m.first, COUNTED_AT, &o.sent, 8, STOP);
    if (pwc_flush(o.m.r.ctx, PWC_ANY, RANK_WAIT_MS) != 0)
        _exit(7);
    take_events(&o);
    rank_detach(&o.m.r);
    _exit(0);
}

/* ---- the target ------------------------------------------------------------------------------ */

struct target {
    struct member m;
    pwc_request *stream[RANKS];
    uint64_t seen[RANKS];
    bool right;
};

static uint64_t word_at(const struct target *t, uint32_t origin, uint64_t at)
{
    return *(const volatile uint64_t *)(const void *)(t->m.r.memory + origin * PART + at);
}

static pwc_request *started(pwc_window *window, uint32_t source, uint32_t tag, uint32_t count)
{
    pwc_request *r = NULL;

    CU_ASSERT_EQUAL_FATAL(pwc_notify_init(window, source, tag, count, PWC_CID_NONE, &r), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_start(r), 0);
    return r;
}

/* Whether this is the next notification of an origin's stream, with its data: its number, or a
 * later one that was placed in the same word. */
static bool is_next(const struct target *t, uint32_t origin, const struct pwc_status *status)
{
    uint64_t number = t->seen[origin], bytes = stream_bytes(number), there;

    if (status->status != 0 || status->count != 1 || (uint32_t)status->id != STREAM ||
        pwc_window_rank(t->m.first, status->peer) != (int)origin || status->bytes != bytes)
        return false;
    there = word_at(t, origin, NUMBERS_AT + number % NUMBERS * 8);
    return bytes != 8 || (there >= number && (there - number) % NUMBERS == 0);
}

/* Tests the request for an origin's stream, and starts it again. Returns whether a notification had
 * arrived. -ENOBUFS (has_ended): not yet. */
static bool look(struct target *t, uint32_t origin)
{
    struct pwc_status status;
    int rc = pwc_test(t->stream[origin], &status);

    t->right = t->right && (rc == 0 || rc == -ENOBUFS || (rc == 1 && is_next(t, origin, &status)));
    if (rc == 1) {
        t->seen[origin]++;
        t->right = t->right && pwc_start(t->stream[origin]) == 0;
    }
    return rc == 1;
}

/* Whether a request has ended. The other origin may be so far ahead that no more unexpected
 * notifications can be kept: pwc_test then returns -ENOBUFS, until the stream's request has taken
 * some. */
static bool has_ended(pwc_request *r)
{
    int rc = pwc_test(r, NULL);

    CU_ASSERT_FATAL(rc >= 0 || rc == -ENOBUFS);
    return rc == 1;
}

static void look_until(struct target *t, pwc_request *end, uint64_t of_victim, uint64_t of_other)
{
    time_t limit = time(NULL) + RANK_WAIT_MS / 1000;

    while (t->right && time(NULL) < limit &&
           (end ? !has_ended(end) : t->seen[VICTIM] < of_victim || t->seen[OTHER] < of_other)) {
        (void)look(t, OTHER);
        (void)look(t, VICTIM);
    }
    CU_ASSERT_FATAL(t->right);
    CU_ASSERT_FATAL(time(NULL) < limit);
}

/* Notifies the victim, and returns the status. There may be no room in the victim's ring, which it
 * no longer reads. */
static int notify_victim(const struct target *t)
{
    struct pwc_event event = {0};
    int rc = pwc_put_notify(t->m.first, VICTIM, 0, NULL, 0, GO, pwc_cid_u64(1), 0);

    if (rc == -EAGAIN)
        return pwc_probe(t->m.r.ctx, PWC_ANY, PWC_LOCAL, &event);
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    CU_ASSERT_EQUAL_FATAL(pwc_wait(t->m.r.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
    return event.status;
}

/* Waits until the victim's daemon has noticed the death: from then on every operation fails. */
static void await_death(const struct target *t)
{
    time_t limit = time(NULL) + RANK_WAIT_MS / 1000;
    int status = 0;

    while (status == 0 && time(NULL) < limit)
        status = notify_victim(t);
    CU_ASSERT_EQUAL_FATAL(status, -EHOSTDOWN);
}

/* Cancels a request that waits for a dead rank. Returns the number of notifications that it had
 * taken, which it keeps. */
static uint32_t cancelled(pwc_request *r)
{
    struct pwc_status status;

    CU_ASSERT_EQUAL(pwc_request_wait(r, &status, 0), 0);
    CU_ASSERT_EQUAL(pwc_cancel(r), 0);
    CU_ASSERT_EQUAL(pwc_test(r, &status), 1);
    CU_ASSERT_EQUAL(status.status, -ECANCELED);
    CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    return status.count;
}

/* Takes an origin's unexpected notifications, and counts those with the tag KEPT and all others. */
static void take_unexpected(struct target *t, uint32_t origin, uint64_t *tagged, uint64_t *more)
{
    struct pwc_event event;

    *tagged = *more = 0;
    while (pwc_probe(t->m.r.ctx, pwc_peer_of(origin, 0), PWC_NOTIFICATION, &event) == 1) {
        CU_ASSERT_EQUAL(event.status, 0);
        ++*((uint32_t)event.id == KEPT && event.length == 0 ? tagged : more);
    }
}

/* Each placed payload has its notification, except possibly the last one, between which and its
 * notification the victim may have been killed. */
static bool accounted(uint64_t notified, uint64_t placed)
{
    return notified == placed || notified + 1 == placed;
}

/* Checks that exactly the notifications that had arrived from the victim were taken or kept. */
static void check_dead(struct target *t, pwc_request *counted)
{
    pwc_request *kept = started(t->m.first, VICTIM, KEPT, KEPT_COUNT);
    pwc_request *more = started(t->m.first, VICTIM, KEPT, 1);
    struct pwc_status status;

    CU_ASSERT_EQUAL(pwc_test(kept, &status), 1); /* ends at once: they had arrived */
    CU_ASSERT(status.status == 0 && status.count == KEPT_COUNT);
    CU_ASSERT_EQUAL(pwc_request_free(kept), 0);
    CU_ASSERT_EQUAL(cancelled(more), 0);
    CU_ASSERT(accounted(cancelled(counted), word_at(t, VICTIM, COUNTED_AT)));
    CU_ASSERT_EQUAL(cancelled(t->stream[VICTIM]), 0);
}

static void check_other(struct target *t, pwc_request *counted)
{
    /* STOP has written the number of the stream's notifications. */
    CU_ASSERT_EQUAL(t->seen[OTHER], word_at(t, OTHER, COUNTED_AT));
    CU_ASSERT_EQUAL(cancelled(counted), (t->seen[OTHER] + 9) / 10);
    CU_ASSERT_EQUAL(cancelled(t->stream[OTHER]), 0);
}

/* The request with wildcards has taken its count from both origins together; the rest is
 * unexpected. */
static void check_wild(struct target *t, pwc_request *wild, uint64_t of_victim)
{
    uint64_t kept, left[2];
    struct pwc_status status;

    CU_ASSERT_EQUAL(pwc_request_wait(wild, &status, RANK_WAIT_MS), 1);
    CU_ASSERT(status.status == 0 && status.count == WILD_COUNT);
    CU_ASSERT_EQUAL(pwc_request_free(wild), 0);
    take_unexpected(t, VICTIM, &kept, &left[0]);
    CU_ASSERT_EQUAL(kept, 0);
    take_unexpected(t, OTHER, &kept, &left[1]);
    CU_ASSERT_EQUAL(kept, KEPT_COUNT);
    CU_ASSERT(accounted(left[0] + left[1], of_victim));
}

static void test_an_origin_dies(void)
{
    struct target t = {.right = true};
    pwc_request *counted[RANKS], *wild, *stop;
    pid_t other, victim;
    int status = 0;

    CU_ASSERT_EQUAL_FATAL(
        cluster.options.nodes == 1
            ? bystanders_start_on(&bystanders, cluster.nodes[0].socket, "bystanders")
            : bystanders_start(&bystanders, &cluster, "bystanders"),
        0);
    fflush(NULL);
    other = fork();
    if (other == 0)
        be_other("notify");
    victim = fork();
    if (victim == 0)
        be_victim("notify");
    CU_ASSERT_EQUAL_FATAL(attach(&t.m, TARGET, "notify"), 0);
    for (uint32_t origin = OTHER; origin < RANKS; origin++) {
        pwc_remote *bound;

        CU_ASSERT_EQUAL_FATAL(pwc_window_remote(t.m.first, origin, &bound), 0);
        t.stream[origin] = started(t.m.first, origin, STREAM, 1);
        counted[origin] = started(t.m.first, origin, COUNTED, UINT32_MAX);
    }
    wild = started(t.m.second, PWC_ANY_RANK, PWC_ANY_TAG, WILD_COUNT);
    stop = started(t.m.first, OTHER, STOP, 1);

    look_until(&t, NULL, SEEN_BEFORE_DEATH, SEEN_BEFORE_DEATH / 4);
    CU_ASSERT_EQUAL_FATAL(kill(victim, SIGKILL), 0);
    CU_ASSERT_EQUAL_FATAL(waitpid(victim, &status, 0), victim);
    CU_ASSERT_FATAL(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    look_until(&t, NULL, 0, t.seen[OTHER] + SEEN_BEFORE_DEATH); /* the other origin continues */
    await_death(&t);
    CU_ASSERT_EQUAL(pwc_put_notify(t.m.first, OTHER, 0, NULL, 0, GO, PWC_CID_NONE, PWC_NO_LCE), 0);
    /* By now all that the victim had sent has arrived: the report of its death came after it, on
     * the same link. */
    look_until(&t, stop, 0, 0);
    CU_ASSERT_EQUAL(pwc_request_free(stop), 0);
    while (look(&t, OTHER) || look(&t, VICTIM))
        ;
    printf("\n    %llu and %llu notifications ", (unsigned long long)t.seen[VICTIM],
           (unsigned long long)t.seen[OTHER]);
    check_dead(&t, counted[VICTIM]);
    check_wild(&t, wild, word_at(&t, VICTIM, WILD_AT));
    check_other(&t, counted[OTHER]);
    CU_ASSERT_EQUAL(waitpid(other, &status, 0), other);
    CU_ASSERT_EQUAL(status, 0);
    /* Nobody waits for the dead rank, whatever the window is over. */
    CU_ASSERT_EQUAL(pwc_window_free(t.m.first), 0);
    CU_ASSERT_EQUAL(pwc_team_free(t.m.world), -EBUSY);
    CU_ASSERT_EQUAL(pwc_window_free(t.m.second), 0);
    CU_ASSERT_EQUAL(pwc_team_free(t.m.world), 0);
    CU_ASSERT(bystanders_go_on(&bystanders));
    CU_ASSERT(bystanders_stop(&bystanders));
    rank_detach(&t.m.r);
    CU_ASSERT(cluster_runs(&cluster));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"an origin dies", test_an_origin_dies}, CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 2};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("notify_death", tests);
    if (bystanders.runs)
        bystanders_stop(&bystanders);
    return cluster_end(&cluster, status);
}

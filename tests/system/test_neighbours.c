/*
 * Ranks of one node and one job, which reach each other without the daemon: events keep their order
 * when a pair changes its path; all that a rank held is given back when it dies; and a rank that
 * writes anything into shared memory harms no other pair.
 *
 *     test_neighbours PWCD [--KEY VALUE]...    keys of the daemon
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/lib/cluster.h"
#include "tests/lib/process.h"
#include "pwc/am.h"
#include "tests/lib/rank.h"
#include "proto/clock.h"

#define REGION_BYTES (1u << 20)
#define HANDLER      7u
#define SLOTS        1024u
#define RING_BYTES   (256u << 10) /* size of the remote ring */
#define EVENT_BYTES  88u          /* bytes in that ring for a message with one argument */
#define BOTHER_MOST  4000u        /* three quarters of what a context may have under way */
#define QUIET_MS     100
#define WAIT_NS      INT64_C(20000000000)

/* Set by main before the tests run. */
static struct cluster cluster;

static int attach(struct rank *r, const char *job, uint32_t number, uint32_t size)
{
    return rank_attach(r, cluster.nodes[0].socket, job, number, size, REGION_BYTES);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* The operations between the two ranks that events and a handler have shown so far. */
struct seen {
    uint64_t next;  /* at the target: number of the next operation */
    uint64_t ended; /* at the origin: number of operations that have ended */
    bool right;
};

static void see(struct seen *seen, uint64_t number)
{
    seen->right = seen->right && number == seen->next;
    seen->next++;
}

static void on_message(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    see(argument, message->arguments[0]);
}

static int take_remote(struct rank *r, struct seen *seen)
{
    struct pwc_event event;
    int rc = pwc_probe(r->ctx, PWC_ANY, PWC_REMOTE, &event);
    uint64_t number = event.id;

    if (rc != 1)
        return rc;
    if (event.id_size == sizeof(number) + 100)
        memcpy(&number, event.data, sizeof(number));
    see(seen, number);
    return rc;
}

static int take_local(struct rank *r, struct seen *seen)
{
    struct pwc_event event;
    int rc = pwc_probe(r->ctx, PWC_ANY, PWC_LOCAL, &event);

    if (rc == 1)
        seen->right = seen->right && event.status == 0 && event.id == seen->ended++;
    return rc;
}

/* Submits a put, a put with a long id, a get or a message, with this number. */
static int submit(struct rank *r, uint64_t number, unsigned kind)
{
    uint8_t id[sizeof(number) + 100] = {0};
    pwc_cid lid = pwc_cid_u64(number), rid = pwc_cid_u64(number);

    memcpy(id, &number, sizeof(number));
    switch (kind) {
    case 0:
        return pwc_am_short(r->remote, &(struct pwc_am_send){.index = HANDLER,
                                                             .arguments = &number,
                                                             .count = 1,
                                                             .lid = lid,
                                                             .flags = PWC_AM_NO_REPLY});
    case 1:
        return pwc_put(r->remote, 0, r->memory, 64, lid, pwc_cid_bytes(id, sizeof(id)), 0);
    case 2:
        return pwc_get(r->remote, 0, r->memory, 64, lid, rid, 0);
    default:
        return pwc_put(r->remote, 64, r->memory, 5000, lid, rid, 0);
    }
}

/* About one operation of `messages_of` is a message. The target takes its events after about one
 * operation of `lazy`; where this is seldom, its rings fill, and events spill. */
static void ordered(unsigned lazy, unsigned messages_of)
{
    struct rank ranks[2] = {0};
    struct seen seen = {.right = true};
    uint64_t number = 0, total = 20000;
    int64_t limit = now_ns() + WAIT_NS;

    srand(lazy);
    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(attach(&ranks[i], "order", i, 2), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_register(ranks[1].ctx, HANDLER, on_message, &seen), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[0], &ranks[1]), 0);
    CU_ASSERT_TRUE(process_mappings(getpid(), "pwc-pair") > 0);
    while ((seen.next < total || seen.ended < total) && seen.right && now_ns() < limit) {
        unsigned kind = (unsigned)rand() % messages_of;
        int rc = number < total ? submit(&ranks[0], number, kind) : -EAGAIN;

        if (rc == 0)
            number++;
        else if (rc != -EAGAIN)
            break;
        take_local(&ranks[0], &seen);
        if (rc == -EAGAIN || (unsigned)rand() % lazy == 0)
            while (take_remote(&ranks[1], &seen) == 1)
                ;
    }
    CU_ASSERT(seen.right);
    CU_ASSERT_EQUAL(number, total);
    CU_ASSERT_EQUAL(seen.next, total);
    CU_ASSERT_EQUAL(seen.ended, total);
    for (int i = 0; i < 2; i++)
        rank_detach(&ranks[i]);
}

/* Waits until all submitted operations have ended, or the rest is held. */
static void settle(struct rank *r, struct seen *seen, uint64_t submitted)
{
    struct pwc_event event;

    while (seen->ended < submitted && pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, QUIET_MS) == 1)
        seen->right = seen->right && event.status == 0 && event.id == seen->ended++;
}

/*
 * Sends `messages` messages with waits in between, then `burst` messages without a wait, then a
 * put, which is direct if all messages have ended. Until then the target takes no events. An origin
 * that knows of a spill holds its flow, so only messages of a burst can all spill.
 */
static void behind(uint64_t messages, uint64_t burst)
{
    struct rank ranks[2] = {0};
    struct seen seen = {.right = true};
    int64_t limit = now_ns() + WAIT_NS;
    uint64_t total = messages + burst;

    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(attach(&ranks[i], "behind", i, 2), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_register(ranks[1].ctx, HANDLER, on_message, &seen), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&ranks[0], &ranks[1]), 0);
    for (uint64_t n = 0; n < total; n++) {
        CU_ASSERT_EQUAL_FATAL(submit(&ranks[0], n, 0), 0);
        if ((n < messages && n % 64 == 0) || n + 1 == messages || n + 1 == total)
            settle(&ranks[0], &seen, n + 1);
    }
    CU_ASSERT_EQUAL_FATAL(submit(&ranks[0], total, 3), 0);
    while (seen.next <= total && seen.right && now_ns() < limit) {
        take_remote(&ranks[1], &seen);
        take_local(&ranks[0], &seen);
    }
    while (seen.ended <= total && now_ns() < limit)
        take_local(&ranks[0], &seen);
    CU_ASSERT(seen.right);
    CU_ASSERT_EQUAL(seen.next, total + 1);
    CU_ASSERT_EQUAL(seen.ended, total + 1);
    for (int i = 0; i < 2; i++)
        rank_detach(&ranks[i]);
}

static void test_behind(void)
{
    behind(0, 1);
    behind(0, 100);
    behind(RING_BYTES / EVENT_BYTES, 0);                /* the ring is full */
    behind(RING_BYTES / EVENT_BYTES, 1);                /* one waits in the daemon */
    for (uint64_t burst = 70; burst < 140; burst += 10) /* more than one probe takes */
        behind(RING_BYTES / EVENT_BYTES, burst);
}

static void test_order(void)
{
    ordered(1, 4);
    ordered(50, 4);
    ordered(1000, 200); /* many operations on each path before it changes */
    ordered(5000, 5000);
}

/* ---- death ----------------------------------------------------------------------------------- */

/* Rank 1, in a process of its own: puts numbers until it is killed. */
static void put_for_ever(const char *job)
{
    struct rank r;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (attach(&r, job, 1, 2) != 0 || rank_bind_other(&r) != 0)
        _exit(1);
    for (uint64_t n = 0;;) {
        int rc = pwc_put(r.remote, n % SLOTS * sizeof(n), &n, sizeof(n), pwc_cid_u64(n),
                         pwc_cid_u64(n), PWC_NO_LCE);

        if (rc == 0)
            n++;
        else if (rc != -EAGAIN)
            _exit(1);
    }
}

/* Takes the next event, and checks its number and bytes. Returns 1, 0 or an error. */
static int take_number(struct rank *r, uint64_t *next)
{
    struct pwc_event event;
    uint64_t found;
    int rc = pwc_probe(r->ctx, PWC_ANY, PWC_REMOTE, &event);

    if (rc != 1)
        return rc;
    memcpy(&found, r->memory + *next % SLOTS * sizeof(found), sizeof(found));
    /* A later number may have been placed in this slot already. */
    if (event.id != *next || found < *next || found % SLOTS != *next % SLOTS)
        return -EIO;
    ++*next;
    return 1;
}

/* Waits until an operation towards the dead rank fails, and returns the status. */
static int32_t status_of_dead(struct rank *r)
{
    struct pwc_event event = {0};
    int64_t limit = now_ns() + WAIT_NS;

    while (event.status == 0 && now_ns() < limit) {
        int rc = pwc_put(r->remote, 0, r->memory, 8, pwc_cid_u64(0), pwc_cid_u64(0), 0);

        if (rc < 0 && rc != -EAGAIN)
            return rc;
        (void)pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, 10);
    }
    return event.status;
}

/* One death, in a job of its own, because a dead rank's number is free only some time later. */
static void die_once(struct rank *r, uint64_t until)
{
    char job[32];
    pid_t child = fork();
    int64_t limit = now_ns() + WAIT_NS;
    uint64_t next = 0;
    int rc = 0;

    snprintf(job, sizeof(job), "death-%llu", (unsigned long long)until);
    if (child == 0)
        put_for_ever(job);
    CU_ASSERT_EQUAL_FATAL(attach(r, job, 0, 2), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind_other(r), 0);
    while (next < until && rc >= 0 && now_ns() < limit)
        rc = take_number(r, &next);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CU_ASSERT_TRUE(next >= until);
    CU_ASSERT_EQUAL(status_of_dead(r), -EHOSTDOWN);
    while ((rc = take_number(r, &next)) == 1)
        ;
    CU_ASSERT_EQUAL(rc, 0);
    CU_ASSERT_EQUAL(pwc_unbind(r->remote), 0);
    /* Both pairs are unmapped: ours with its last remote, the other one when the daemon has
     * reported the death. */
    while (process_mappings(getpid(), "pwc-pair") > 0 && now_ns() < limit)
        (void)take_number(r, &next);
    CU_ASSERT_EQUAL(process_mappings(getpid(), "pwc-pair"), 0);
    rank_detach(r);
    CU_ASSERT_EQUAL(process_mappings(getpid(), "memfd:pwc-"), 0);
}

static void test_death(void)
{
    int before = process_descriptors(cluster.nodes[0].pid);
    int64_t limit = now_ns() + 2 * WAIT_NS;
    struct rank r;

    for (uint64_t i = 0; i < 6; i++)
        die_once(&r, 1 + i * 30000);
    while (process_descriptors(cluster.nodes[0].pid) != before && now_ns() < limit)
        usleep(1000);
    CU_ASSERT_EQUAL(process_descriptors(cluster.nodes[0].pid), before);
}

/* ---- a hostile neighbour --------------------------------------------------------------------- */

/* Gives rank 0 so many neighbours that it leaves some quiet, and uses its board. */
static void bind_more(struct rank *r, const struct pwc_key *key)
{
    for (int i = 0; i < 6; i++) {
        pwc_remote *remote;
        pwc_ctx *ctx;

        if (pwc_ctx_create(r->client, NULL, &ctx) != 0 ||
            pwc_bind(ctx, pwc_peer_of(0, 0), key, &remote) != 0)
            _exit(1);
    }
}

/* Writes random words over all memory shared with other ranks, except their regions; also all bits
 * of rank 0's board. */
static void scribble(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    uint64_t *starts[32];
    size_t words[32], count = 0;
    char line[512];

    while (maps && count < 32 && fgets(line, sizeof(line), maps)) {
        unsigned long long from, to;

        if ((strstr(line, "pwc-pair") || strstr(line, "pwc-board")) &&
            sscanf(line, "%llx-%llx", &from, &to) == 2) {
            starts[count] = (uint64_t *)(uintptr_t)from;
            words[count++] = (to - from) / sizeof(uint64_t);
        }
    }
    if (count == 0)
        _exit(1);
    for (;;) {
        size_t which = (size_t)rand() % count;
        /* Values of any size: small ones look like valid lengths and kinds. */
        uint64_t value = (uint64_t)rand() << 33 ^ (uint64_t)rand() << (rand() % 33);
        size_t at = (size_t)rand() % words[which];

        if (rand() % 4)
            value = (uint64_t)(at / 8 - (rand() % 2 ? 63 : 63 + 2048)) |
                    (uint64_t)(rand() % 6) << 32 | (uint64_t)(rand() % 3) << 40 |
                    (uint64_t)(rand() % 1100) << 48;
        ((volatile uint64_t *)starts[which])[at] = value;
    }
}

/* Replies to any message. */
static void on_anything(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    if (message->token != 0)
        (void)pwc_am_reply_short(ctx, message->token,
                                 &(struct pwc_am_send){.index = HANDLER,
                                                       .arguments = message->arguments,
                                                       .count = message->count,
                                                       .flags = PWC_NO_LCE});
}

static void be_hostile(void)
{
    struct rank r;
    struct pwc_key keys[3], mine;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (attach(&r, "hostile", 2, 3) != 0 ||
        pwc_am_register(r.ctx, HANDLER, on_anything, r.ctx) != 0 ||
        pwc_region_key(r.region, &mine) != 0 ||
        pwc_exchange(r.ctx, &mine, sizeof(mine), keys) != 0 ||
        pwc_bind(r.ctx, pwc_peer_of(0, 0), &keys[0], &r.remote) != 0)
        _exit(1);
    bind_more(&r, &keys[0]);
    if (pwc_barrier(r.ctx) != 0)
        _exit(1);
    scribble();
}

/* Rank 1, which behaves well: puts back each number. A process of its own, because all ranks must
 * take part in the exchange of keys at the same time. */
static void echo(void)
{
    struct rank r;
    struct pwc_key keys[3], mine;
    struct pwc_event event;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (attach(&r, "hostile", 1, 3) != 0 || pwc_region_key(r.region, &mine) != 0 ||
        pwc_exchange(r.ctx, &mine, sizeof(mine), keys) != 0 ||
        pwc_bind(r.ctx, pwc_peer_of(0, 0), &keys[0], &r.remote) != 0 || pwc_barrier(r.ctx) != 0)
        _exit(1);
    while (pwc_wait(r.ctx, pwc_peer_of(0, 0), PWC_REMOTE, &event, RANK_WAIT_MS) == 1) {
        if (memcmp(r.memory, &event.id, sizeof(event.id)) != 0)
            _exit(2);
        while (pwc_put(r.remote, 0, r.memory, 8, pwc_cid_u64(0), pwc_cid_u64(event.id),
                       PWC_NO_LCE) == -EAGAIN)
            ;
    }
    _exit(0);
}

/* Puts and sends to the hostile rank, which overwrites its pairs and takes no events: some
 * operations use the pair, others wait in the daemon forever. The number that waits is bounded,
 * because otherwise operations to other targets would find no room in the end. */
static void bother(struct rank *r, pwc_remote *hostile, uint64_t n, uint64_t *waiting)
{
    pwc_peer peer = pwc_peer_of(2, 0);
    struct pwc_event event;

    if (*waiting < BOTHER_MOST)
        *waiting += pwc_put(hostile, 0, &n, sizeof(n), pwc_cid_u64(n), pwc_cid_u64(n), 0) == 0;
    if (*waiting < BOTHER_MOST)
        *waiting += pwc_am_short(hostile, &(struct pwc_am_send){.index = HANDLER,
                                                                .arguments = &n,
                                                                .count = 1,
                                                                .lid = pwc_cid_u64(n)}) == 0;
    while (*waiting > 0 && pwc_probe(r->ctx, peer, PWC_LOCAL, &event) == 1)
        --*waiting;
    (void)pwc_probe(r->ctx, peer, PWC_REMOTE, &event);
}

static void test_hostile(void)
{
    pid_t children[2];
    struct rank r;
    struct pwc_key keys[3], mine;
    pwc_remote *towards_hostile;
    int64_t limit;
    uint64_t n = 1, waiting = 0;
    bool right = true;
    int status;

    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0)
            (i == 0 ? echo : be_hostile)();
    }
    CU_ASSERT_EQUAL_FATAL(attach(&r, "hostile", 0, 3), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_am_register(r.ctx, HANDLER, on_anything, r.ctx), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_region_key(r.region, &mine), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_exchange(r.ctx, &mine, sizeof(mine), keys), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(r.ctx, pwc_peer_of(1, 0), &keys[1], &r.remote), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(r.ctx, pwc_peer_of(2, 0), &keys[2], &towards_hostile), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_barrier(r.ctx), 0);
    limit = now_ns() + INT64_C(1000000000);
    for (; right && now_ns() < limit; n++) {
        struct pwc_event event;

        right =
            pwc_put(r.remote, 0, &n, sizeof(n), pwc_cid_u64(n), pwc_cid_u64(n), PWC_NO_LCE) == 0 &&
            pwc_wait(r.ctx, pwc_peer_of(1, 0), PWC_REMOTE, &event, RANK_WAIT_MS) == 1 &&
            event.id == n && memcmp(r.memory, &n, sizeof(n)) == 0;
        bother(&r, towards_hostile, n, &waiting);
    }
    printf("%llu round trips beside it, %llu wait ", (unsigned long long)n,
           (unsigned long long)waiting);
    CU_ASSERT(right);
    CU_ASSERT_EQUAL(waitpid(children[0], &status, WNOHANG), 0);
    /* The hostile rank still runs, so it overwrote the memory all the time. */
    CU_ASSERT_EQUAL(waitpid(children[1], &status, WNOHANG), 0);
    for (int i = 0; i < 2; i++) {
        kill(children[i], SIGKILL);
        waitpid(children[i], &status, 0);
    }
    rank_detach(&r);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"order over changes of path", test_order},
                           {"behind what went by the daemon", test_behind},
                           {"a rank dies in the middle", test_death},
                           {"a neighbour that writes anything", test_hostile},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {.nodes = 1};
    int status = 1;

    if (argc < 2) {
        fprintf(stderr, "usage: %s PWCD [--KEY VALUE]...\n", argv[0]);
        return 2;
    }
    options.pwcd = argv[1];
    options.more = (const char *const *)argv + 2;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("neighbours", tests);
    return cluster_end(&cluster, status);
}

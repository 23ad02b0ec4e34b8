/*
 * Operations over loose memory, which is in no region, through libpwc and real daemons: every kind
 * and length; order beside short operations, to several peers at once; and their ends when,
 * meanwhile, the region is withdrawn, the peer or the origin ends, or a daemon is killed and
 * restarted.
 *
 *     test_loose PWCD PROVIDER NODES [--KEY VALUE]
 *
 * This process has all ranks. Rank 0 is on the first node, the others are on the last one. Threads:
 * one that submits, and one that kills daemons.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "pwc/am.h"
#include "pwc/request.h"
#include "pwc/signal.h"
#include "tests/count.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

enum {
    HANDLER = 3,
    PACKED = 4096,
    PIECE = 64 << 10,
    STAGING = 448 << 10, /* bytes of staging for long operations */
    WORD = 8,
    THERE = 64,
    MOST = 2 << 20,
    REGION = MOST + 4096,
    TARGETS = 3,
    BEHIND = 100, /* difference between local and remote ids */
};

/* Set by main before the tests run. */
static struct cluster cluster;

/* Rank 0, and the ranks that it has bound. */
struct job {
    struct rank a, to[TARGETS];
    pwc_remote *remotes[TARGETS];
    uint8_t *here; /* loose memory, a little more than MOST bytes */
};

static void open_job(struct job *j, const char *name)
{
    unsigned last = cluster.options.nodes - 1;
    struct pwc_key key;

    CU_ASSERT_EQUAL_FATAL(rank_attach(&j->a, cluster.nodes[0].socket, name, 0, TARGETS + 1, REGION),
                          0);
    for (uint32_t i = 0; i < TARGETS; i++) {
        CU_ASSERT_EQUAL_FATAL(rank_attach(&j->to[i], cluster.nodes[i == 1 ? 0 : last].socket, name,
                                          i + 1, TARGETS + 1, REGION),
                              0);
        CU_ASSERT_EQUAL(pwc_region_key(j->to[i].region, &key), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_bind(j->a.ctx, pwc_peer_of(i + 1, 0), &key, &j->remotes[i]), 0);
    }
    j->here = malloc(MOST + 64);
    CU_ASSERT_PTR_NOT_NULL_FATAL(j->here);
}

static void close_job(struct job *j)
{
    rank_detach(&j->a);
    for (uint32_t i = 0; i < TARGETS; i++)
        rank_detach(&j->to[i]);
    free(j->here);
}

static void expect(const struct rank *r, unsigned kind, uint64_t id, int status, uint64_t length)
{
    struct pwc_event event = {0};
    int rc = pwc_wait(r->ctx, PWC_ANY, kind, &event, RANK_WAIT_MS);

    CU_ASSERT_FATAL(rc == 1);
    if (event.id != id || event.status != status || event.length != length)
        printf("\n    id %d, status %d, %zu bytes, not id %d, status %d, %zu bytes ", (int)event.id,
               event.status, (size_t)event.length, (int)id, status, (size_t)length);
    CU_ASSERT(event.id == id && event.status == status && event.length == length);
}

static void expect_nothing(const struct rank *r)
{
    struct pwc_event event;

    CU_ASSERT_EQUAL(pwc_flush(r->ctx, PWC_ANY, RANK_WAIT_MS), 0);
    CU_ASSERT_EQUAL(pwc_probe(r->ctx, PWC_ANY, 0, &event), 0);
}

/* ---- kinds and lengths ----------------------------------------------------------------------- */

static const size_t lengths[] = {
    PACKED - 1,  PACKED,  PACKED + 1,  3 * PACKED,  PIECE - 1,    PIECE,           PIECE + 1,
    STAGING - 1, STAGING, STAGING + 1, 2 * STAGING, MOST - PIECE, MOST - PIECE + 1};

struct seen {
    const void *payload;
    size_t length;
    unsigned count;
};

static void see(pwc_ctx *ctx, const struct pwc_am *am, void *argument)
{
    struct seen *seen = argument;

    seen->payload = am->payload;
    seen->length = am->length;
    seen->count++;
    (void)ctx;
}

enum kind { PUT, GET, PUT_WAIT, GET_WAIT, SIGNAL, LONG, REQUESTS, KINDS };

/* Runs one operation of a kind until it has ended at both sides. */
static void run(struct job *j, enum kind kind, uint8_t *here, size_t len, struct seen *seen)
{
    const struct pwc_am_send message = {
        .index = HANDLER, .src = here, .len = len, .lid = pwc_cid_u64(3)};
    pwc_remote *to = j->remotes[0];
    uint64_t *word = (uint64_t *)(void *)(j->to[0].memory + WORD), before = *word;
    struct pwc_status status;
    struct pwc_event event;
    pwc_request *r;

    switch (kind) {
    case PUT:
        CU_ASSERT_EQUAL(pwc_put(to, THERE, here, len, pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
        expect(&j->a, PWC_LOCAL, 1, 0, len);
        expect(&j->to[0], PWC_REMOTE, 2, 0, len);
        break;
    case GET:
        CU_ASSERT_EQUAL(pwc_get(to, THERE, here, len, pwc_cid_u64(1), pwc_cid_u64(2), 0), 0);
        expect(&j->a, PWC_LOCAL, 1, 0, len);
        expect(&j->to[0], PWC_REMOTE, 2, 0, len);
        break;
    case PUT_WAIT:
        CU_ASSERT_EQUAL(pwc_put_wait(to, THERE, here, len, PWC_CID_NONE, PWC_NO_RCE), 0);
        break;
    case GET_WAIT:
        CU_ASSERT_EQUAL(pwc_get_wait(to, THERE, here, len, PWC_CID_NONE, PWC_NO_RCE), 0);
        break;
    case SIGNAL:
        CU_ASSERT_EQUAL(pwc_put_signal(to, THERE, here, len, WORD, 5, PWC_ADD, pwc_cid_u64(1), 0),
                        0);
        expect(&j->a, PWC_LOCAL, 1, 0, len);
        CU_ASSERT_EQUAL(*word, before + 5);
        break;
    case LONG:
        seen->count = 0;
        CU_ASSERT_EQUAL(pwc_am_long(to, THERE, &message), 0);
        expect(&j->a, PWC_LOCAL, 3, 0, len);
        CU_ASSERT_EQUAL(pwc_wait(j->to[0].ctx, PWC_ANY, PWC_MESSAGE, &event, RANK_WAIT_MS), 1);
        CU_ASSERT(seen->count == 1 && seen->length == len &&
                  seen->payload == j->to[0].memory + THERE);
        break;
    default:
        CU_ASSERT_EQUAL(pwc_request_create(j->a.ctx, &r), 0);
        CU_ASSERT_EQUAL(pwc_put(to, THERE, here, len, pwc_cid_request(r), PWC_CID_NONE, PWC_NO_RCE),
                        0);
        CU_ASSERT_EQUAL_FATAL(pwc_request_wait(r, &status, RANK_WAIT_MS), 1);
        CU_ASSERT(status.status == 0 && status.bytes == len);
        CU_ASSERT_EQUAL(pwc_request_free(r), 0);
    }
}

static void test_lengths(void)
{
    struct seen seen = {0};
    uint64_t seed = 1;
    struct job j;

    open_job(&j, "lengths");
    CU_ASSERT_EQUAL(pwc_am_register(j.to[0].ctx, HANDLER, see, &seen), 0);
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < COUNT(lengths); i++, seed++) {
            uint8_t *here = j.here + seed % 16, *there = j.to[0].memory + THERE;
            bool gets = kind == GET || kind == GET_WAIT;
            size_t len = lengths[i];

            rank_fill(gets ? there : here, len, seed);
            here[len] = there[len] = 0x5a;
            run(&j, kind, here, len, &seen);
            CU_ASSERT_EQUAL_FATAL(rank_check(gets ? here : there, len, seed), 0);
            CU_ASSERT(here[len] == 0x5a && there[len] == 0x5a);
        }
    expect_nothing(&j.a);
    expect_nothing(&j.to[0]);
    close_job(&j);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static const uint8_t constant[3 * PIECE] = {7};

static void test_memory(void)
{
    uint8_t stack[3 * PIECE];
    char path[] = "/tmp/pwc-loose-XXXXXX";
    int fd = mkstemp(path);
    uint8_t *file;
    struct job j;

    open_job(&j, "memory");
    CU_ASSERT_FATAL(fd >= 0 && ftruncate(fd, sizeof(stack)) == 0 && unlink(path) == 0);
    file = mmap(NULL, sizeof(stack), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_NOT_EQUAL_FATAL(file, MAP_FAILED);
    for (int i = 0; i < 3; i++) {
        uint8_t *at = (i == 0 ? stack : i == 1 ? file : j.here) + 1;
        size_t len = sizeof(stack) - 1;

        rank_fill(at, len, (uint64_t)i);
        CU_ASSERT_EQUAL(pwc_put_wait(j.remotes[0], 0, at, len, PWC_CID_NONE, PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL(rank_check(j.to[0].memory, len, (uint64_t)i), 0);
        memset(at, 0, len);
        CU_ASSERT_EQUAL(pwc_get_wait(j.remotes[0], 0, at, len, PWC_CID_NONE, PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL(rank_check(at, len, (uint64_t)i), 0);
    }
    CU_ASSERT_EQUAL(
        pwc_put_wait(j.remotes[0], 0, constant, sizeof(constant), PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(memcmp(j.to[0].memory, constant, sizeof(constant)), 0);
    munmap(file, sizeof(stack));
    close(fd);
    close_job(&j);
}

/* ---- order, several peers -------------------------------------------------------------------- */

/* The n-th put to a target uses slot n % SLOTS. */
enum { SLOTS = 6, SLOT = MOST / SLOTS };

static size_t length_of(uint64_t n)
{
    return n % 2 ? 1 + n % PACKED : (n * 70001 + PACKED) % SLOT + 1;
}

/* Takes the events that have arrived at a target: they must be in order, and their data
 * complete. */
static void take(struct job *j, uint32_t target, uint64_t *next)
{
    struct pwc_event event;

    while (pwc_probe(j->to[target].ctx, PWC_ANY, PWC_REMOTE, &event) == 1) {
        const uint8_t *at = j->to[target].memory + *next % SLOTS * SLOT;

        CU_ASSERT_EQUAL_FATAL(event.id, *next);
        CU_ASSERT_EQUAL(event.length, length_of(*next));
        CU_ASSERT_EQUAL_FATAL(rank_check(at, length_of(*next), *next), 0);
        ++*next;
    }
}

static void test_order(void)
{
    enum { PUTS = 10 * SLOTS };
    uint64_t next[TARGETS] = {0}, ended[TARGETS] = {0};
    uint8_t *sources[SLOTS];
    struct pwc_event event;
    struct job j;

    open_job(&j, "order");
    for (int i = 0; i < SLOTS; i++)
        sources[i] = malloc(SLOT + 1);
    for (uint64_t n = 0; n < PUTS; n++) {
        uint8_t *from = sources[n % SLOTS] + 1;

        rank_fill(from, length_of(n), n);
        for (uint32_t i = 0; i < TARGETS; i++)
            CU_ASSERT_EQUAL_FATAL(pwc_put(j.remotes[i], n % SLOTS * SLOT, from, length_of(n),
                                          pwc_cid_u64(n), pwc_cid_u64(n), PWC_WAIT),
                                  0);
        if (n % SLOTS != SLOTS - 1)
            continue;
        /* A source or slot is used again only when its put has ended and was checked. */
        CU_ASSERT_EQUAL_FATAL(pwc_flush(j.a.ctx, PWC_ANY, RANK_WAIT_MS), 0);
        for (uint32_t i = 0; i < TARGETS; i++)
            while (next[i] <= n)
                take(&j, i, &next[i]);
    }
    while (pwc_probe(j.a.ctx, PWC_ANY, PWC_LOCAL, &event) == 1) {
        uint64_t *count = &ended[pwc_peer_rank(event.peer) - 1];

        CU_ASSERT(event.id == *count && event.status == 0);
        ++*count;
    }
    for (uint32_t i = 0; i < TARGETS; i++)
        CU_ASSERT_EQUAL(ended[i], PUTS);
    for (int i = 0; i < SLOTS; i++)
        free(sources[i]);
    close_job(&j);
}

/* ---- ends in the middle ---------------------------------------------------------------------- */

/* Submits one operation to each target, a get to the last one and puts to the others, with the
 * target's number as id. Returns their number. */
static unsigned begin_all(struct job *j, uint8_t *more[TARGETS])
{
    unsigned begun = 0;

    for (uint32_t i = 0; i < TARGETS; i++) {
        more[i] = calloc(1, MOST);
        CU_ASSERT_EQUAL(
            i == 2
                ? pwc_get(j->remotes[i], 0, more[i], MOST, pwc_cid_u64(i), PWC_CID_NONE, PWC_NO_RCE)
                : pwc_put(j->remotes[i], 0, more[i], MOST, pwc_cid_u64(i), pwc_cid_u64(i), 0),
            0);
        begun++;
    }
    return begun;
}

/* Checks that each operation ends once, and that of target 0 with `status`, except where a
 * neighbour's operation had ended within its call. */
static void expect_ends(struct job *j, unsigned begun, int status)
{
    struct pwc_event event;
    unsigned seen = 0, failed = 0;

    for (unsigned i = 0; i < begun; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_wait(j->a.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_FALSE(seen & 1u << event.id);
        seen |= 1u << event.id;
        CU_ASSERT(event.status == 0 || (event.id == 0 && event.status == status));
        failed += event.status < 0;
    }
    CU_ASSERT(failed == 1 || (failed == 0 && cluster.options.nodes == 1));
    expect_nothing(&j->a);
}

/* Checks that staging is free, by long operations to another target. */
static void expect_free(struct job *j)
{
    rank_fill(j->here, MOST, 77);
    CU_ASSERT_EQUAL(pwc_put_wait(j->remotes[1], 0, j->here, MOST, PWC_CID_NONE, PWC_NO_RCE), 0);
    CU_ASSERT_EQUAL(rank_check(j->to[1].memory, MOST, 77), 0);
    CU_ASSERT_EQUAL(pwc_get_wait(j->remotes[1], 0, j->here, MOST, PWC_CID_NONE, PWC_NO_RCE), 0);
}

static void test_withdrawn(void)
{
    uint8_t *more[TARGETS];
    struct pwc_event event;
    unsigned begun;
    struct job j;

    open_job(&j, "withdrawn");
    begun = begin_all(&j, more);
    CU_ASSERT_EQUAL(pwc_region_free(j.to[0].region), 0);
    expect_ends(&j, begun, -EKEYREJECTED);
    /* A remote event may only come if all bytes were placed. */
    if (cluster.options.nodes > 1)
        CU_ASSERT_EQUAL(pwc_probe(j.to[0].ctx, PWC_ANY, PWC_REMOTE, &event), 0);
    expect_free(&j);
    for (int i = 0; i < TARGETS; i++)
        free(more[i]);
    close_job(&j);
}

static void test_peer_dies(void)
{
    uint8_t *more[TARGETS];
    unsigned begun;
    struct job j;

    open_job(&j, "dies");
    begun = begin_all(&j, more);
    rank_detach(&j.to[0]);
    expect_ends(&j, begun, -EHOSTDOWN);
    expect_free(&j);
    for (int i = 0; i < TARGETS; i++)
        free(more[i]);
    close_job(&j);
}

/* Many times, a context ends during operations, and another one replaces it: its memory is given
 * back. */
static void test_context_ends(void)
{
    uint8_t *more[TARGETS];
    struct pwc_key key;
    struct job j;

    open_job(&j, "contexts");
    for (int round = 0; round < 12; round++) {
        (void)begin_all(&j, more);
        CU_ASSERT_EQUAL(pwc_ctx_destroy(j.a.ctx), 0);
        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(j.a.client, NULL, &j.a.ctx), 0);
        for (uint32_t i = 0; i < TARGETS; i++) {
            free(more[i]);
            CU_ASSERT_EQUAL(pwc_region_key(j.to[i].region, &key), 0);
            CU_ASSERT_EQUAL_FATAL(pwc_bind(j.a.ctx, pwc_peer_of(i + 1, 0), &key, &j.remotes[i]), 0);
        }
    }
    expect_free(&j);
    close_job(&j);
}

/* pwc_finalize completes operations under way. */
static void test_finalize(void)
{
    struct job j;

    open_job(&j, "finalize");
    rank_fill(j.here, MOST, 5);
    for (uint32_t i = 0; i < TARGETS; i++)
        CU_ASSERT_EQUAL(pwc_put(j.remotes[i], 0, j.here, MOST, PWC_CID_NONE, PWC_CID_NONE,
                                PWC_NO_LCE | PWC_NO_RCE),
                        0);
    CU_ASSERT_EQUAL(pwc_finalize(j.a.client), 0);
    j.a.client = NULL;
    for (uint32_t i = 0; i < TARGETS; i++)
        CU_ASSERT_EQUAL(rank_check(j.to[i].memory, MOST, 5), 0);
    close_job(&j);
}

/* ---- daemons that are killed ----------------------------------------------------------------- */

static atomic_bool killed_all;

/* Kills each node's daemon in turn. The keeper starts it again. */
static void *kill_daemons(void *unused)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 4; i++) {
        unsigned node = i % cluster.options.nodes;
        pid_t pid = cluster_kept(&cluster, node);

        for (int k = 0; k < 60; k++)
            nanosleep(&nap, NULL);
        CU_ASSERT(pid > 0 && kill(pid, SIGKILL) == 0);
        CU_ASSERT(cluster_next(&cluster, node, pid) > 0);
    }
    atomic_store(&killed_all, true);
    return unused;
}

static void test_restart(void)
{
    enum { LEN = MOST / 2 };
    uint64_t round = 0;
    pthread_t thread;
    struct job j;

    open_job(&j, "restart");
    atomic_store(&killed_all, false);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, kill_daemons, NULL), 0);
    for (bool last = false; !last; round++) {
        last = atomic_load(&killed_all);
        rank_fill(j.here, LEN, round);
        for (uint32_t i = 0; i < TARGETS; i++)
            CU_ASSERT_EQUAL_FATAL(pwc_put(j.remotes[i], 0, j.here, LEN, pwc_cid_u64(round),
                                          pwc_cid_u64(round), PWC_WAIT),
                                  0);
        for (uint32_t i = 0; i < TARGETS; i++)
            expect(&j.a, PWC_LOCAL, round, 0, LEN);
        for (uint32_t i = 0; i < TARGETS; i++) {
            expect(&j.to[i], PWC_REMOTE, round, 0, LEN);
            CU_ASSERT_EQUAL_FATAL(rank_check(j.to[i].memory, LEN, round), 0);
        }
        memset(j.here, 0, LEN);
        CU_ASSERT_EQUAL_FATAL(
            pwc_get_wait(j.remotes[round % TARGETS], 0, j.here, LEN, PWC_CID_NONE, PWC_NO_RCE), 0);
        CU_ASSERT_EQUAL_FATAL(rank_check(j.here, LEN, round), 0);
    }
    pthread_join(thread, NULL);
    expect_nothing(&j.a);
    close_job(&j);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"every kind and length", test_lengths},
                           {"sorts of memory", test_memory},
                           {"order", test_order},
                           {"a region that is withdrawn", test_withdrawn},
                           {"a peer that dies", test_peer_dies},
                           {"a context that ends", test_context_ends},
                           {"finalize", test_finalize},
                           {"daemons that are killed", test_restart},
                           CU_TEST_INFO_NULL};
    static const char *const more[] = {"--keep", "--peer-deadline-ms", "20000", NULL};
    struct cluster_options options = {.nodes = 2, .more = more};
    int status = 1;

    if (!cluster_arguments(&options, argc, argv))
        return 2;
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("loose", tests);
    return cluster_end(&cluster, status);
}

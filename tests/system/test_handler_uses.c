/*
 * The examples of handlers on puts, in real daemons whose clients are stopped (SIGSTOP) meanwhile:
 * a ping-pong, a product, a log of transactions, a RAID-5 array that loses a server, and a
 * broadcast with a dead rank. The results are compared with a plain computation. Each client is a
 * process of its own; the test itself is rank 0, on node 0, and is called the asker.
 *
 *     test_handler_uses PWCD PING_PONG.o ACCUMULATE.o TRANSACTION_LOG.o RAID5.o BROADCAST.o
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "pwc/offload.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/lib/process.h"
#include "tests/suite.h"
#include "tests/system/lib/offload.h"

enum {
    REGION_BYTES = 1 << 16,
    STATE_BYTES = 8192,
    LONG = 10000,           /* bytes of a put: three packets */
    SERVERS = 4,            /* of the array: three with data, the last with parity */
    RANKS = 4,              /* ranks of the broadcast, the asker among them */
    TARGETS = 2,            /* targets of each rank: log2(RANKS) */
    NO_TARGET = UINT32_MAX, /* as PWC_H_NONE */
    LIMIT_S = 60,
    LOG_PUT = 1, /* PWC_H_PUT */
    LOG_GET = 5, /* PWC_H_OBSERVED */
};

/* Set by main before the tests run. */
static struct cluster cluster;
static const char *ping_pong_file, *accumulate_file, *log_file, *raid5_file, *broadcast_file;

struct complex {
    double re, im;
};

struct entry { /* as in examples/handlers/transaction_log.c */
    pwc_peer peer;
    uint64_t id, place, length;
    uint64_t kind;
};

/* ---- the client that is stopped -------------------------------------------------------------- */

/* The task of a server, which it reads from its pipe. */
struct order {
    uint32_t rank, size;
    uint32_t target; /* the rank that its handlers send to, or NO_TARGET */
    uint32_t unused;
    struct pwc_key key; /* key of the target's region */
};

static void fill(const char *path, const struct order *order, uint8_t *host, uint64_t *state)
{
    const struct complex one = {1, 0};

    memset(host, 0, REGION_BYTES);
    memset(state, 0, STATE_BYTES);
    for (size_t at = 0; path == accumulate_file && at < REGION_BYTES; at += sizeof(one))
        memcpy(host + at, &one, sizeof(one));
    if (path == raid5_file && order->target == NO_TARGET)
        state[0] = NO_TARGET; /* this is the parity's server */
}

static int serve(struct rank *r, const char *path, const struct order *order, uint64_t **state,
                 pwc_offload **offload)
{
    struct pwc_offload_attr attr = {.flags =
                                        path == log_file ? PWC_OFFLOAD_OBSERVE : PWC_OFFLOAD_QUIET,
                                    .region = r->region,
                                    .state_length = STATE_BYTES,
                                    .targets = &r->remote,
                                    .target_count = order->target != NO_TARGET};
    int rc = pwc_alloc(r->client, STATE_BYTES, PWC_REMOTE_READ, &attr.state);

    if (rc < 0)
        return rc;
    *state = pwc_region_addr(attr.state);
    fill(path, order, r->memory, *state);
    if (order->target != NO_TARGET)
        rc = pwc_bind(r->ctx, pwc_peer_of(order->target, 0), &order->key, &r->remote);
    if (rc == 0)
        rc = offload_load(r, path, &attr.program);
    return rc == 0 ? pwc_offload_create(r->ctx, &attr, offload) : rc;
}

/* An offload must exist before contexts bind its region, and the ranks of a broadcast bind each
 * other. So each rank first has an offload without targets. When all ranks have bound their
 * targets, each makes its offload anew with the targets (renew), whose number is in its state. */
static int bind_targets(struct rank *r, uint32_t number, const struct pwc_key *keys,
                        pwc_remote **targets)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < TARGETS; i++) {
        uint32_t target = (number + (1u << i)) % RANKS;

        rc = pwc_bind(r->ctx, pwc_peer_of(target, 0), &keys[target], &targets[i]);
    }
    return rc;
}

static int renew(struct rank *r, pwc_remote **targets, pwc_offload **offload)
{
    struct pwc_offload_attr attr = {.flags = PWC_OFFLOAD_QUIET,
                                    .region = r->region,
                                    .state_length = STATE_BYTES,
                                    .targets = targets,
                                    .target_count = TARGETS};
    int rc = pwc_alloc(r->client, STATE_BYTES, PWC_REMOTE_READ, &attr.state);

    if (rc == 0)
        rc = offload_load(r, broadcast_file, &attr.program);
    if (rc == 0)
        rc = pwc_offload_destroy(*offload);
    if (rc < 0)
        return rc;
    memcpy((uint64_t *)pwc_region_addr(attr.state) + 1, &(uint64_t){TARGETS}, sizeof(uint64_t));
    return pwc_offload_create(r->ctx, &attr, offload);
}

/* Runs each step when the test asks for it, and answers with a byte. */
static bool becomes_rank(struct rank *r, uint32_t number, pwc_offload **offload, int ready, int end)
{
    struct pwc_key keys[RANKS];
    pwc_remote *targets[TARGETS];
    char byte;

    return read(end, keys, sizeof(keys)) == sizeof(keys) &&
           bind_targets(r, number, keys, targets) == 0 && write(ready, "", 1) == 1 &&
           read(end, &byte, 1) == 1 && renew(r, targets, offload) == 0 && write(ready, "", 1) == 1;
}

/* Whether the log has the test's puts, in their order, and then its gets. */
static bool log_is_right(const uint64_t *state)
{
    const struct entry *entries = (const void *)(state + 3);
    bool right = state[0] == 5 && state[2] == 0;

    for (uint64_t i = 0; i < 3; i++)
        right = right && entries[i].peer == pwc_peer_of(0, 0) && entries[i].id == 70 + i &&
                entries[i].place == i * LONG && entries[i].length == LONG - i &&
                entries[i].kind == LOG_PUT;
    for (uint64_t i = 0; i < 2; i++)
        right = right && entries[3 + i].peer == pwc_peer_of(0, 0) && entries[3 + i].id == 80 * i &&
                entries[3 + i].place == i && entries[3 + i].length == LONG - i &&
                entries[3 + i].kind == LOG_GET;
    return right;
}

/* A server's process: makes the offload, and does nothing more (it is stopped meanwhile) until its
 * pipe is closed. */
static int server_main(unsigned node, const char *path, int ready, int end)
{
    struct order order;
    pwc_offload *offload;
    struct pwc_key key;
    uint64_t *state = NULL;
    struct rank r;
    char byte;
    int rc = read(end, &order, sizeof(order)) == sizeof(order) ? 0 : -EPIPE;

    if (rc == 0)
        rc = rank_attach(&r, cluster.nodes[node].socket, "uses", order.rank, order.size,
                         REGION_BYTES);
    if (rc == 0)
        rc = serve(&r, path, &order, &state, &offload);
    if (rc == 0)
        rc = pwc_region_key(r.region, &key);
    if (rc < 0) {
        printf("\n  %s: %s\n", path, strerror(-rc));
        fflush(stdout);
        return 1;
    }
    if (write(ready, &key, sizeof(key)) != sizeof(key))
        return 1;
    if (path == broadcast_file && !becomes_rank(&r, order.rank, &offload, ready, end))
        return 1;
    while (read(end, &byte, 1) < 0)
        continue;
    if ((path == log_file && !log_is_right(state)) || pwc_offload_destroy(offload) < 0)
        return 1;
    rank_detach(&r);
    return 0;
}

/* ---- the one that asks ----------------------------------------------------------------------- */

struct server {
    pid_t pid;
    int ready, end;
    struct pwc_key key;
    pwc_remote *remote; /* remote of the asker */
};

static struct rank asker;

/* Starts a server, waits until its region is ready, and binds that. */
static bool server_start(struct server *s, unsigned node, const char *path,
                         const struct order *order)
{
    int ready[2], end[2];

    if (pipe(ready) < 0 || pipe(end) < 0)
        return false;
    fflush(stdout);
    s->pid = fork();
    if (s->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the signal also ends a child that is stopped */
        close(ready[0]);
        close(end[1]);
        _exit(server_main(node, path, ready[1], end[0]));
    }
    close(ready[1]);
    close(end[0]);
    s->ready = ready[0];
    s->end = end[1];
    if (write(s->end, order, sizeof(*order)) != sizeof(*order) ||
        read(ready[0], &s->key, sizeof(s->key)) != sizeof(s->key))
        return false;
    return pwc_bind(asker.ctx, pwc_peer_of(order->rank, 0), &s->key, &s->remote) == 0;
}

static bool server_stop(struct server *s)
{
    return process_stop(s->pid);
}

static bool server_open(struct server *s, unsigned node, const char *path,
                        const struct order *order)
{
    return server_start(s, node, path, order) && server_stop(s);
}

static void server_kill(struct server *s)
{
    int status;

    kill(s->pid, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(s->pid, &status, 0), s->pid);
    close(s->ready);
    close(s->end);
}

static void server_close(struct server *s)
{
    int status;

    CU_ASSERT_EQUAL(waitpid(s->pid, &status, WNOHANG), 0); /* stopped, not ended */
    kill(s->pid, SIGCONT);
    close(s->ready);
    close(s->end);
    CU_ASSERT_EQUAL(waitpid(s->pid, &status, 0), s->pid);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool asker_open(uint32_t size)
{
    return rank_attach(&asker, cluster.nodes[0].socket, "uses", 0, size, REGION_BYTES) == 0;
}

static void asker_close(void)
{
    rank_detach(&asker);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

/* Waits for the end of an operation that was submitted with result `rc`; returns the status. */
static int ended(int rc)
{
    struct pwc_event event;

    if (rc < 0)
        return rc;
    rc = pwc_wait(asker.ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS);
    return rc == 1 ? event.status : -ETIMEDOUT;
}

static int put(const struct server *s, uint64_t place, const void *from, size_t n, uint64_t id)
{
    return ended(pwc_put(s->remote, place, from, n, PWC_CID_NONE, pwc_cid_u64(id), 0));
}

static int get(const struct server *s, void *to, size_t n)
{
    return ended(pwc_get(s->remote, 0, to, n, PWC_CID_NONE, PWC_CID_NONE, 0));
}

/* Opens a job with one server, whose handlers send to the asker. */
static bool open_one(struct server *s, unsigned node, const char *path)
{
    struct order order = {.rank = 1, .size = 2, .target = 0};

    return asker_open(2) && pwc_region_key(asker.region, &order.key) == 0 &&
           server_open(s, node, path, &order);
}

/* ---- the uses -------------------------------------------------------------------------------- */

/* Each packet comes back, to the same offset in the asker's region. */
static void test_ping_pong(void)
{
    uint8_t *from, *back;
    uint64_t came = 0;
    struct server s;

    CU_ASSERT_TRUE_FATAL(open_one(&s, 1, ping_pong_file));
    back = asker.memory;
    from = asker.memory + REGION_BYTES / 2;
    rank_fill(from, LONG, 5);
    CU_ASSERT_EQUAL(put(&s, 64, from, LONG, 9), 0);
    while (came < LONG) {
        struct pwc_event event;

        CU_ASSERT_EQUAL_FATAL(pwc_wait(asker.ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL(event.id, 9);
        came += event.length;
    }
    CU_ASSERT_EQUAL(came, LONG);
    CU_ASSERT_EQUAL(memcmp(back + 64, from, LONG), 0);
    server_close(&s);
    asker_close();
}

static void test_product(void)
{
    const struct complex turn = {0, 1}, expected = {-1, 0}, one = {1, 0};
    struct complex *found;
    struct server s;
    uint32_t wrong = 0;

    CU_ASSERT_TRUE_FATAL(open_one(&s, 1, accumulate_file));
    for (size_t at = 0; at < LONG; at += sizeof(turn))
        memcpy(asker.memory + at, &turn, sizeof(turn));
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(put(&s, 0, asker.memory, LONG, 1), 0);
    CU_ASSERT_EQUAL(get(&s, asker.memory, REGION_BYTES), 0);
    found = (void *)asker.memory;
    for (size_t i = 0; i < REGION_BYTES / sizeof(turn); i++) {
        struct complex want = i < LONG / sizeof(turn) ? expected : one;

        wrong += found[i].re != want.re || found[i].im != want.im;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    server_close(&s);
    asker_close();
}

/* Puts and gets; the server checks its log when it is continued. */
static void check_log(unsigned node)
{
    struct server s;

    CU_ASSERT_TRUE_FATAL(open_one(&s, node, log_file));
    rank_fill(asker.memory, LONG, 6);
    for (uint64_t i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(put(&s, i * LONG, asker.memory, LONG - i, 70 + i), 0);
    memset(asker.memory + REGION_BYTES / 2, 0, REGION_BYTES / 2);
    CU_ASSERT_EQUAL(get(&s, asker.memory + REGION_BYTES / 2, LONG), 0); /* without a remote event */
    CU_ASSERT_EQUAL(memcmp(asker.memory, asker.memory + REGION_BYTES / 2, LONG), 0);
    CU_ASSERT_EQUAL(ended(pwc_get(s.remote, 1, asker.memory + REGION_BYTES / 2, LONG - 1,
                                  PWC_CID_NONE, pwc_cid_u64(80), 0)),
                    0);
    server_close(&s);
    asker_close();
}

/* With the server on another node, and on the asker's node. */
static void test_log(void)
{
    check_log(1);
    check_log(0);
}

/* ---- an array -------------------------------------------------------------------------------- */

enum { BLOCK = 8192, ROUNDS = 3 };

static bool open_array(struct server *servers)
{
    bool open = asker_open(1 + SERVERS);

    for (uint32_t i = SERVERS; open && i-- > 0;) { /* parity's server first: others bind it */
        struct order order = {.rank = 1 + i,
                              .size = 1 + SERVERS,
                              .target = i == SERVERS - 1 ? NO_TARGET : SERVERS,
                              .key = servers[SERVERS - 1].key};

        open = server_open(&servers[i], (i + 1) % 2, raid5_file, &order);
    }
    return open;
}

/* Gets the parity block until it is the parity of these blocks: updates may still be under way. */
static bool parity_comes(const struct server *s, uint8_t blocks[][BLOCK])
{
    uint8_t parity[BLOCK];
    uint8_t *found = asker.memory;

    for (size_t i = 0; i < BLOCK; i++) {
        parity[i] = 0;
        for (uint32_t b = 0; b < SERVERS - 1; b++)
            parity[i] ^= blocks[b][i];
    }
    for (time_t end = time(NULL) + LIMIT_S; time(NULL) < end;)
        if (get(s, found, BLOCK) < 0 || memcmp(found, parity, BLOCK) == 0)
            return memcmp(found, parity, BLOCK) == 0;
    return false;
}

/* All servers are stopped. Blocks are overwritten, and the parity follows. When a server was
 * killed, its block is the exclusive or of all other blocks. */
static void test_array(void)
{
    static uint8_t blocks[SERVERS - 1][BLOCK], rebuilt[BLOCK];
    struct server servers[SERVERS] = {0};
    uint32_t lost = 1;

    CU_ASSERT_TRUE_FATAL(open_array(servers));
    for (uint32_t i = 0; i < ROUNDS * (SERVERS - 1); i++) {
        uint32_t b = i % (SERVERS - 1);

        rank_fill(blocks[b], BLOCK, 10 + i);
        memcpy(asker.memory, blocks[b], BLOCK);
        CU_ASSERT_EQUAL(put(&servers[b], 0, asker.memory, BLOCK, 1), 0);
    }
    CU_ASSERT_TRUE(parity_comes(&servers[SERVERS - 1], blocks));
    server_kill(&servers[lost]);
    for (uint32_t b = 0; b < SERVERS; b++) {
        if (b == lost)
            continue;
        CU_ASSERT_EQUAL(get(&servers[b], asker.memory, BLOCK), 0);
        for (size_t i = 0; i < BLOCK; i++)
            rebuilt[i] ^= asker.memory[i];
    }
    CU_ASSERT_EQUAL(memcmp(rebuilt, blocks[lost], BLOCK), 0);
    for (uint32_t b = 0; b < SERVERS; b++)
        if (b != lost)
            server_close(&servers[b]);
    asker_close();
}

/* ---- a broadcast ----------------------------------------------------------------------------- */

enum { BYTES = 100 };

/* Opens the ranks of a broadcast: all except the asker, rank 0, have their offload and are stopped.
 * Each is on a node of its own, because a context that a neighbour has bound gets no offload. */
static bool open_ranks(struct server *servers)
{
    struct pwc_key keys[RANKS];
    bool open = asker_open(RANKS) && pwc_region_key(asker.region, &keys[0]) == 0;
    char byte;

    for (uint32_t i = 1; open && i < RANKS; i++) {
        const struct order order = {.rank = i, .size = RANKS, .target = NO_TARGET};

        open = server_start(&servers[i], i, broadcast_file, &order);
        keys[i] = servers[i].key;
    }
    for (uint32_t i = 1; open && i < RANKS; i++)
        open = write(servers[i].end, keys, sizeof(keys)) == sizeof(keys);
    for (uint32_t i = 1; open && i < RANKS; i++)
        open = read(servers[i].ready, &byte, 1) == 1;
    for (uint32_t i = 1; open && i < RANKS; i++)
        open = write(servers[i].end, "", 1) == 1 && read(servers[i].ready, &byte, 1) == 1;
    for (uint32_t i = 1; open && i < RANKS; i++)
        open = server_stop(&servers[i]);
    return open;
}

/* Gets a rank's bytes until they are the root's bytes. */
static bool broadcast_comes(const struct server *s)
{
    uint8_t *found = asker.memory + REGION_BYTES / 2;

    for (time_t end = time(NULL) + LIMIT_S; time(NULL) < end;)
        if (get(s, found, BYTES) < 0)
            return false;
        else if (memcmp(found, asker.memory + REGION_BYTES / 4, BYTES) == 0)
            return true;
    return false;
}

/* The root puts to its targets. In the second broadcast the first target is dead. The other ranks,
 * which are stopped, pass the broadcast on. */
static void test_broadcast(void)
{
    struct server servers[RANKS] = {0};

    CU_ASSERT_TRUE_FATAL(open_ranks(servers));
    for (uint64_t number = 1; number <= 2; number++) {
        uint8_t *from = asker.memory + REGION_BYTES / 4;

        rank_fill(from, BYTES, number);
        for (uint32_t target = 1; target <= TARGETS; target++) {
            int rc = put(&servers[target], 0, from, BYTES, number);

            CU_ASSERT(rc == 0 || (number == 2 && target == 1));
        }
        for (uint32_t i = (uint32_t)number; i < RANKS; i++)
            CU_ASSERT_TRUE(broadcast_comes(&servers[i]));
        if (number == 1)
            server_kill(&servers[1]);
    }
    for (uint32_t i = RANKS; i-- > 2;) /* later ones have inherited the pipes of earlier ones */
        server_close(&servers[i]);
    asker_close();
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"ping-pong with a stopped client", test_ping_pong},
                           {"a product in a stopped client's region", test_product},
                           {"a stopped client's log", test_log},
                           {"an array of stopped servers, one of which is lost", test_array},
                           {"a broadcast by stopped ranks, one of which is dead", test_broadcast},
                           CU_TEST_INFO_NULL};
    static const char *const more[] = {"--handler-us", "1000", /* sanitizers are slow */ NULL};
    struct cluster_options options = {.nodes = RANKS, .provider = "stream", .more = more};
    int status = 1;

    if (argc != 7)
        return 2;
    options.pwcd = argv[1];
    ping_pong_file = argv[2];
    accumulate_file = argv[3];
    log_file = argv[4];
    raid5_file = argv[5];
    broadcast_file = argv[6];
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("uses of handlers", tests);
    return cluster_end(&cluster, status);
}

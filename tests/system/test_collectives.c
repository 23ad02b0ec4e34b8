/*
 * Collectives of teams over real daemons, compared with plain loops; teams made of teams; a
 * thousand calls under way at once; members whose calls differ, and a member that ends.
 *
 *     test_collectives PWCD PROVIDER NODES RANKS [--KEY VALUE]...
 *
 * Each rank is a client with a thread of its own in this process, rank r on node r % NODES. Each
 * rank counts its failures, and notes the line of the first.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "pwc/am.h"
#include "pwc/collective.h"
#include "pwc/notify.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

enum { RANKS_MAX = 33, WORDS_MAX = 65537, THOUSAND = 1000 };

static struct cluster cluster;
static uint32_t size;
static pthread_barrier_t together;
static pthread_barrier_t pair; /* for the first two ranks */

struct member {
    uint32_t rank;
    struct rank client;
    pwc_team *world;
    uint64_t *in, *out;
    unsigned wrong;
    int line, value; /* line and value of the first failure */
};
static struct member members[RANKS_MAX];

static void note(struct member *m, bool right, int line, int value)
{
    if (!right && m->wrong++ == 0) {
        m->line = line;
        m->value = value;
    }
}
#define CHECK(m, condition)     note(m, condition, __LINE__, 0)
#define CHECK_IS(m, rc, wanted) check_is(m, rc, wanted, __LINE__)

static void check_is(struct member *m, int rc, int wanted, int line)
{
    note(m, rc == wanted, line, rc);
}

/* Runs `part` for each of the first `count` ranks, in a thread each. */
static void run_some(uint32_t count, void *(*part)(void *))
{
    pthread_t threads[RANKS_MAX];

    for (uint32_t r = 0; r < count; r++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[r], NULL, part, &members[r]), 0);
    for (uint32_t r = 0; r < count; r++)
        pthread_join(threads[r], NULL);
    for (uint32_t r = 0; r < count; r++) {
        if (members[r].wrong > 0)
            printf("rank %u: %u wrong, the first in line %d: %d\n", r, members[r].wrong,
                   members[r].line, members[r].value);
        CU_ASSERT_EQUAL(members[r].wrong, 0);
        members[r].wrong = 0;
    }
}

static void run(void *(*part)(void *))
{
    run_some(size, part);
}

/* ---- one collective -------------------------------------------------------------------------- */

static uint64_t value(uint32_t rank, uint64_t at)
{
    return (rank + 1) * UINT64_C(0x9e3779b97f4a7c15) + at * UINT64_C(0xc2b2ae3d27d4eb4f);
}

static uint64_t sum(uint32_t ranks, uint64_t at)
{
    uint64_t total = 0;

    for (uint32_t r = 0; r < ranks; r++)
        total += value(r, at);
    return total;
}

enum kind {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    SCAN,
    EXSCAN,
    REDUCE_SCATTER,
    GATHER,
    SCATTER,
    ALLGATHER,
    ALLTOALL,
    KINDS
};

static int begin(pwc_team *t, enum kind kind, uint32_t root, const uint64_t *in, uint64_t *out,
                 uint64_t n, pwc_cid lid)
{
    switch (kind) {
    case BARRIER:
        return pwc_team_barrier(t, lid, 0);
    case BCAST:
        return pwc_team_bcast(t, out, 8 * n, root, lid, 0);
    case REDUCE:
        return pwc_team_reduce(t, in, out, n, PWC_U64, PWC_ADD, root, lid, 0);
    case ALLREDUCE:
        return pwc_team_allreduce(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case SCAN:
        return pwc_team_scan(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case EXSCAN:
        return pwc_team_exscan(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case REDUCE_SCATTER:
        return pwc_team_reduce_scatter(t, in, out, n, PWC_U64, PWC_ADD, lid, 0);
    case GATHER:
        return pwc_team_gather(t, in, out, 8 * n, root, lid, 0);
    case SCATTER:
        return pwc_team_scatter(t, in, out, 8 * n, root, lid, 0);
    case ALLGATHER:
        return pwc_team_allgather(t, in, out, 8 * n, lid, 0);
    default:
        return pwc_team_alltoall(t, in, out, 8 * n, lid, 0);
    }
}

/* The word that a member's output must have at index `at`, in a team of `ranks`. */
static uint64_t wanted(enum kind kind, uint32_t root, uint32_t rank, uint32_t ranks, uint64_t n,
                       uint64_t at)
{
    switch (kind) {
    case BCAST:
        return value(root, at);
    case SCAN:
        return sum(rank + 1, at);
    case EXSCAN:
        return sum(rank, at);
    case REDUCE_SCATTER:
        return sum(ranks, rank * n + at);
    case GATHER:
    case ALLGATHER:
        return value((uint32_t)(at / n), at % n);
    case SCATTER:
        return value(root, rank * n + at);
    case ALLTOALL:
        return value((uint32_t)(at / n), rank * n + at % n);
    default:
        return sum(ranks, at);
    }
}

static uint64_t words_of(enum kind kind, uint32_t root, uint32_t rank, uint32_t ranks, uint64_t n)
{
    bool rooted = kind == REDUCE || kind == GATHER;

    if (kind == BARRIER || (rooted && rank != root) || (kind == EXSCAN && rank == 0))
        return 0;
    return kind == GATHER || kind == ALLGATHER || kind == ALLTOALL ? ranks * n : n;
}

static void wait_for(struct member *m, pwc_request *request, int status)
{
    struct pwc_status end = {.status = 1};

    CHECK_IS(m, pwc_request_wait(request, &end, RANK_WAIT_MS), 1);
    CHECK_IS(m, end.status, status);
}

/* A member that only gives data may be as far ahead as its team allows; then the call is tried
 * again. */
static int begin_soon(struct member *m, pwc_team *t, enum kind kind, uint32_t root, uint64_t n,
                      pwc_request *request)
{
    struct pwc_event event;
    int rc;

    do {
        rc = begin(t, kind, root, m->in, m->out, n, pwc_cid_request(request));
    } while (rc == -EAGAIN && pwc_wait(m->client.ctx, PWC_ANY, PWC_REMOTE, &event, 1) == 0);
    return rc;
}

static void one(struct member *m, pwc_team *t, enum kind kind, uint32_t root, uint64_t n,
                pwc_request *request)
{
    uint32_t rank = pwc_team_rank(t), ranks = pwc_team_size(t);
    uint64_t given =
        n * (kind == REDUCE_SCATTER || kind == SCATTER || kind == ALLTOALL ? ranks : 1);
    uint64_t got = words_of(kind, root, rank, ranks, n);

    for (uint64_t i = 0; i < given; i++)
        m->in[i] = value(rank, i);
    memset(m->out, 0x5a, (got + 1) * 8);
    if (kind == BCAST && rank == root)
        memcpy(m->out, m->in, n * 8);
    CHECK_IS(m, begin_soon(m, t, kind, root, n, request), 0);
    wait_for(m, request, 0);
    for (uint64_t i = 0; i < got; i++)
        if (m->out[i] != wanted(kind, root, rank, ranks, n, i)) {
            note(m, false, __LINE__, (int)(kind * 1000000 + root * 10000 + n));
            return;
        }
    CHECK(m, m->out[got] == UINT64_C(0x5a5a5a5a5a5a5a5a));
}

static bool has_root(enum kind kind)
{
    return kind == BCAST || kind == REDUCE || kind == GATHER || kind == SCATTER;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void *attach(void *argument)
{
    struct member *m = argument;
    const struct pwc_team_attr attr = {.window = 1024};

    CHECK_IS(m,
             rank_attach(&m->client, cluster.nodes[m->rank % cluster.options.nodes].socket,
                         "collectives", m->rank, size, 4096),
             0);
    m->in = calloc((size_t)size * WORDS_MAX + 1, 8);
    m->out = calloc((size_t)size * WORDS_MAX + 1, 8);
    CHECK(m, m->in && m->out);
    if (m->wrong == 0)
        CHECK_IS(m, pwc_team_world(m->client.ctx, &attr, &m->world), 0);
    return NULL;
}

/* All kinds, with lengths also around the longest slice (62 KiB for scans, 124 KiB for others where
 * a node has one member), and for scans around eight slices, the most that are under way at once.
 */
static void *all_kinds(void *argument)
{
    static const uint64_t counts[] = {0,    1,    5,     6,     100,   513,   3000,     4095,
                                      7936, 7937, 15872, 15873, 63488, 63489, WORDS_MAX};
    struct member *m = argument;
    pwc_request *request = NULL;

    CHECK_IS(m, pwc_request_create(m->client.ctx, &request), 0);
    for (int kind = BARRIER; kind < KINDS && m->wrong == 0; kind++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && m->wrong == 0; c++)
            for (uint32_t root = 0; root < (has_root((enum kind)kind) ? size : 1); root++)
                if (counts[c] < 500 || root < (counts[c] < 4000 ? 3 : 1))
                    one(m, m->world, (enum kind)kind, root, counts[c], request);
    CHECK_IS(m, pwc_request_free(request), 0);
    return NULL;
}

/* The kinds whose blocks differ in length. */
enum varying { GATHERV, SCATTERV, ALLGATHERV, ALLTOALLV, VARYING };

/* The words of the block from one rank to another. A block to all ranks has `to` 0. */
static size_t block_words(uint32_t from, uint32_t to, size_t n)
{
    return (from * 7 + to * 13) % 5 * n;
}

/* Fills in the bytes and offsets of `ranks` blocks from or to `rank`, one behind the other. */
static void place_blocks(bool from_rank, bool to_all, uint32_t rank, uint32_t ranks, size_t n,
                         size_t *lens, size_t *offsets)
{
    size_t at = 0;

    for (uint32_t r = 0; r < ranks; r++) {
        uint32_t from = from_rank ? rank : r, to = from_rank ? r : rank;

        lens[r] = 8 * block_words(from, to_all ? 0 : to, n);
        offsets[r] = at;
        at += lens[r];
    }
}

static void check_block(struct member *m, const uint64_t *at, uint32_t from, uint32_t to, size_t n)
{
    for (size_t i = 0; i < block_words(from, to, n); i++)
        if (at[i] != value(from * RANKS_MAX + to, i)) {
            note(m, false, __LINE__, (int)(from * 1000 + to));
            return;
        }
}

static void one_varying(struct member *m, enum varying kind, uint32_t root, size_t n,
                        pwc_request *request)
{
    bool to_all = kind == GATHERV || kind == ALLGATHERV;
    size_t in_lens[RANKS_MAX], in_offsets[RANKS_MAX], out_lens[RANKS_MAX], out_offsets[RANKS_MAX];
    size_t own = 8 * (to_all ? block_words(m->rank, 0, n) : block_words(root, m->rank, n));
    const pwc_cid lid = pwc_cid_request(request);
    int rc;

    place_blocks(true, to_all, m->rank, size, n, in_lens, in_offsets);
    place_blocks(false, to_all, m->rank, size, n, out_lens, out_offsets);
    for (uint32_t r = 0; r < (to_all ? 1 : size); r++)
        for (size_t i = 0; i < in_lens[r] / 8; i++)
            m->in[in_offsets[r] / 8 + i] = value(m->rank * RANKS_MAX + r, i);
    if (kind == GATHERV)
        rc = pwc_team_gatherv(m->world, m->in, own, m->out, out_lens, out_offsets, root, lid, 0);
    else if (kind == SCATTERV)
        rc = pwc_team_scatterv(m->world, m->in, in_lens, in_offsets, m->out, own, root, lid, 0);
    else if (kind == ALLGATHERV)
        rc = pwc_team_allgatherv(m->world, m->in, own, m->out, out_lens, out_offsets, lid, 0);
    else
        rc = pwc_team_alltoallv(m->world, m->in, in_lens, in_offsets, m->out, out_lens, out_offsets,
                                lid, 0);
    CHECK_IS(m, rc, 0);
    wait_for(m, request, 0);
    if (kind == SCATTERV)
        check_block(m, m->out, root, m->rank, n);
    for (uint32_t r = 0; r < size && kind != SCATTERV; r++)
        if (kind != GATHERV || m->rank == root)
            check_block(m, m->out + out_offsets[r] / 8, r, to_all ? 0 : m->rank, n);
}

/* Blocks of different lengths, with the root on each node, also in several slices. */
static void *varying_kinds(void *argument)
{
    static const size_t counts[] = {0, 1, 300, 6000};
    struct member *m = argument;
    pwc_request *request = NULL;

    CHECK_IS(m, pwc_request_create(m->client.ctx, &request), 0);
    for (int kind = GATHERV; kind < VARYING; kind++)
        for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]) && m->wrong == 0; c++)
            for (uint32_t root = 0; root < (kind <= SCATTERV ? size : 1) && m->wrong == 0; root++)
                one_varying(m, (enum varying)kind, root, counts[c], request);
    CHECK_IS(m, pwc_request_free(request), 0);
    return NULL;
}

/* A thousand calls, none of which is waited for in between. */
static void *thousand(void *argument)
{
    struct member *m = argument;
    pwc_request *request = NULL;

    CHECK_IS(m, pwc_request_create(m->client.ctx, &request), 0);
    for (uint64_t lap = 0; lap < 3; lap++) {
        for (uint64_t i = 0; i < THOUSAND; i++) {
            m->in[i] = value(m->rank, lap * THOUSAND + i);
            m->out[i] = 0;
            CHECK_IS(m,
                     pwc_team_allreduce(m->world, &m->in[i], &m->out[i], 1, PWC_U64, PWC_ADD,
                                        pwc_cid_request(request), 0),
                     0);
        }
        wait_for(m, request, 0);
        for (uint64_t i = 0; i < THOUSAND; i++)
            CHECK(m, m->out[i] == sum(size, lap * THOUSAND + i));
        one(m, m->world, BARRIER, 0, 0, request);
    }
    CHECK_IS(m, pwc_request_free(request), 0);
    return NULL;
}

/* Runs every kind over a team in which this member has this rank. */
static void check_team(struct member *m, pwc_team *t, uint32_t ranks, uint32_t rank)
{
    pwc_request *request = NULL;
    pwc_peer peer;

    CHECK(m, t != NULL);
    if (!t)
        return;
    CHECK_IS(m, (int)pwc_team_size(t), (int)ranks);
    CHECK_IS(m, (int)pwc_team_rank(t), (int)rank);
    CHECK_IS(m, pwc_team_peer(t, rank, &peer), 0);
    CHECK(m, peer == pwc_ctx_peer(m->client.ctx));
    CHECK_IS(m, pwc_request_create(m->client.ctx, &request), 0);
    for (int kind = BARRIER; kind < KINDS; kind++)
        one(m, t, (enum kind)kind, ranks - 1, 3, request);
    CHECK_IS(m, pwc_request_free(request), 0);
}

static void *teams(void *argument)
{
    struct member *m = argument;
    uint32_t nodes = cluster.options.nodes, half = (size + 1) / 2;
    pwc_team *t = NULL;

    /* A team of the even ranks, in descending order; odd ranks are in none. */
    CHECK_IS(m, pwc_team_split(m->world, m->rank % 2 ? -1 : 5, -(int)m->rank, NULL, &t), 0);
    if (m->rank % 2)
        CHECK(m, t == NULL);
    else
        check_team(m, t, half, half - 1 - m->rank / 2);
    if (t)
        CHECK_IS(m, pwc_team_free(t), 0);
    t = NULL;
    CHECK_IS(m, pwc_team_split_strided(m->world, 0, 2, half, &t), 0);
    if (m->rank % 2 == 0) {
        check_team(m, t, half, m->rank / 2);
        CHECK_IS(m, t ? pwc_team_free(t) : 0, 0);
    }
    t = NULL;
    CHECK_IS(m, pwc_team_split_node(m->world, &t), 0);
    check_team(m, t, size / nodes + (m->rank % nodes < size % nodes), m->rank / nodes);
    CHECK_IS(m, t ? pwc_team_free(t) : 0, 0);
    t = NULL;
    CHECK_IS(m, pwc_team_dup(m->world, NULL, &t), 0);
    check_team(m, t, size, m->rank);
    CHECK_IS(m, t ? pwc_team_free(t) : 0, 0);
    return NULL;
}

/* A window over a team in descending order: each member notifies the next one. */
static void *windows(void *argument)
{
    struct member *m = argument;
    pwc_request *request = NULL;
    pwc_window *window = NULL;
    pwc_team *t = NULL;
    struct pwc_status end;
    uint32_t rank = size - 1 - m->rank;
    uint64_t word = m->rank + 100;

    CHECK_IS(m, pwc_team_split(m->world, 0, -(int)m->rank, NULL, &t), 0);
    if (!t)
        return NULL;
    CHECK_IS(m, pwc_window_create(m->client.ctx, t, m->client.region, &window), 0);
    if (!window)
        return NULL;
    CHECK_IS(m, pwc_notify_init(window, (rank + size - 1) % size, 7, 1, PWC_CID_NONE, &request), 0);
    CHECK_IS(m, pwc_start(request), 0);
    CHECK_IS(m, pwc_put_notify(window, (rank + 1) % size, 0, &word, 8, 7, PWC_CID_NONE, PWC_NO_LCE),
             0);
    CHECK_IS(m, pwc_request_wait(request, &end, RANK_WAIT_MS), 1);
    CHECK_IS(m, pwc_window_rank(window, end.peer), (int)((rank + size - 1) % size));
    CHECK_IS(m, pwc_window_rank(window, pwc_peer_of(m->rank, 5)), -ENOENT);
    memcpy(&word, m->client.memory, 8);
    CHECK(m, word == (m->rank + 1) % size + 100);
    CHECK_IS(m, pwc_request_free(request), 0);
    CHECK_IS(m, pwc_window_free(window), 0);
    CHECK_IS(m, pwc_team_free(t), 0);
    return NULL;
}

/* Whether the text of the last error has these words about this rank. */
__attribute__((format(printf, 2, 0))) static bool says(struct member *m, const char *words,
                                                       uint32_t rank)
{
    char text[256] = "", wanted_text[64];

    (void)pwc_error_text(m->client.client, text, sizeof(text));
    snprintf(wanted_text, sizeof(wanted_text), words, rank);
    return strstr(text, wanted_text) != NULL;
}

/* One member cannot take part in a window: the others get an error that names it, at once and not
 * after their timeout. */
static void refused_window(struct member *m, uint32_t who, pwc_ctx *ctx, pwc_region *region,
                           int status)
{
    pwc_window *window = NULL;

    if (m->rank == who) {
        CHECK_IS(m, pwc_window_create(ctx, m->world, region, &window), status);
    } else {
        CHECK_IS(m, pwc_window_create(m->client.ctx, m->world, m->client.region, &window),
                 -ECANCELED);
        CHECK(m, says(m, "rank %u of the job cannot take part", who));
    }
}

static void *refused_windows(void *argument)
{
    struct member *m = argument;
    pwc_region *local = NULL;
    pwc_ctx *other = NULL;
    time_t began = time(NULL);

    CHECK_IS(m, pwc_alloc(m->client.client, 4096, 0, &local), 0);
    CHECK_IS(m, pwc_ctx_create(m->client.client, NULL, &other), 0);
    refused_window(m, size - 1, m->client.ctx, local, -ENOTSUP);
    refused_window(m, 0, other, m->client.region, -EINVAL);
    CHECK(m, time(NULL) - began < RANK_WAIT_MS / 2000);
    CHECK_IS(m, pwc_ctx_destroy(other), 0);
    CHECK_IS(m, pwc_region_free(local), 0);
    return NULL;
}

/* The first of two ranks gives up a window after its timeout, because the other rank calls much
 * later. Data that arrives after that must be written into memory that still exists. */
static void *given_up_window(void *argument)
{
    enum { TIMEOUT_MS = 2000, MEMBER_BYTES = 48 /* size of struct window_member */ };
    struct member *m = argument;
    const struct pwc_attr attr = {.socket = cluster.nodes[m->rank].socket,
                                  .job = "given-up",
                                  .rank = m->rank,
                                  .size = 2,
                                  .timeout_ms = m->rank == 0 ? TIMEOUT_MS : 0};
    const uint8_t mine[MEMBER_BYTES] = {0};
    const struct pwc_i64_at yes = {0};
    uint8_t all[2 * MEMBER_BYTES];
    pwc_window *window = NULL;
    pwc_team *t = NULL;
    struct pwc_i64_at vote;
    struct pwc_event event;
    pwc_client *client;
    pwc_ctx *ctx;
    int rc;

    CHECK_IS(m, pwc_init(&attr, &client), 0);
    CHECK_IS(m, pwc_ctx_create(client, NULL, &ctx), 0);
    (void)pthread_barrier_wait(&pair);
    CHECK_IS(m, pwc_team_world(ctx, NULL, &t), 0);
    if (m->rank == 0) {
        CHECK_IS(m, pwc_window_create(ctx, t, NULL, &window), -ETIMEDOUT);
        (void)pthread_barrier_wait(&pair);
    } else {
        CHECK_IS(
            m,
            pwc_team_allreduce(t, &yes, &vote, 1, PWC_I64_AT, PWC_MINLOC, PWC_CID_NONE, PWC_NO_LCE),
            0);
        (void)pthread_barrier_wait(&pair);
        CHECK_IS(m, pwc_team_allgather(t, mine, all, sizeof(mine), PWC_CID_NONE, PWC_NO_LCE), 0);
    }
    while ((rc = pwc_team_free(t)) == -EBUSY)
        (void)pwc_wait(ctx, PWC_ANY, 0, &event, 1);
    CHECK_IS(m, rc, 0);
    CHECK_IS(m, pwc_finalize(client), 0);
    return NULL;
}

/* The first of two ranks needs several calls to free a window: over the team the other rank calls
 * after its timeout, and over the job a prepared message is in the way. The ranks' later calls
 * still fit together. */
static void *window_freed_again(void *argument)
{
    enum { TIMEOUT_MS = 2000 };
    struct member *m = argument;
    const struct pwc_attr attr = {.socket = cluster.nodes[m->rank % cluster.options.nodes].socket,
                                  .job = "freed-again",
                                  .rank = m->rank,
                                  .size = 2,
                                  .timeout_ms = m->rank == 0 ? TIMEOUT_MS : 0};
    pwc_window *of_team = NULL, *of_job = NULL;
    pwc_remote *remote = NULL;
    pwc_client *client;
    pwc_team *t = NULL;
    void *payload;
    pwc_ctx *ctx;

    CHECK_IS(m, pwc_init(&attr, &client), 0);
    CHECK_IS(m, pwc_ctx_create(client, NULL, &ctx), 0);
    (void)pthread_barrier_wait(&pair);
    CHECK_IS(m, pwc_team_world(ctx, NULL, &t), 0);
    CHECK_IS(m, pwc_window_create(ctx, t, NULL, &of_team), 0);
    CHECK_IS(m, pwc_window_create(ctx, NULL, NULL, &of_job), 0);
    if (m->rank == 0) {
        CHECK_IS(m, pwc_window_free(of_team), -ETIMEDOUT);
        CHECK_IS(m, pwc_window_remote(of_job, 1, &remote), 0);
        CHECK_IS(m, pwc_am_prepare(remote, 8, 0, PWC_CID_NONE, PWC_NO_LCE, &payload), 0);
    }
    (void)pthread_barrier_wait(&pair);
    CHECK_IS(m, pwc_window_free(of_team), m->rank == 0 ? -EBUSY : 0);
    if (m->rank == 0) {
        CHECK_IS(m, pwc_window_free(of_job), -EBUSY);
        CHECK_IS(m, pwc_am_cancel(ctx), 0);
        CHECK_IS(m, pwc_window_free(of_team), 0);
    }
    CHECK_IS(m, pwc_window_free(of_job), 0);
    CHECK_IS(m, pwc_barrier(ctx), 0);
    CHECK_IS(m, pwc_team_free(t), 0);
    CHECK_IS(m, pwc_finalize(client), 0);
    return NULL;
}

/* After calls that fit together, the last rank makes a different call. */
static void *mismatch(void *argument)
{
    struct member *m = argument;
    pwc_request *request = NULL;
    pwc_team *t = NULL, *next = NULL;
    char text[256];
    int rc;

    CHECK_IS(m, pwc_team_dup(m->world, NULL, &t), 0);
    if (!t)
        return NULL;
    CHECK_IS(m, pwc_request_create(m->client.ctx, &request), 0);
    one(m, t, ALLREDUCE, 0, 2, request);
    (void)pthread_barrier_wait(&together); /* else the broken team would end calls under way */
    rc = m->rank + 1 == size ? pwc_team_barrier(t, pwc_cid_request(request), 0)
                             : begin(t, ALLREDUCE, 0, m->in, m->out, 2, pwc_cid_request(request));
    if (rc == 0)
        wait_for(m, request, -EBADMSG);
    else
        CHECK_IS(m, rc, -EBADMSG); /* another member has found the mismatch first */
    CHECK(m, pwc_team_error_text(t, text, sizeof(text)) > 0);
    CHECK(m, strstr(text, "call 1 of the team") != NULL);
    CHECK(m, strstr(text, "barrier") != NULL);
    CHECK(m, strstr(text, "allreduce of 2 u64 by add") != NULL);
    CHECK_IS(m, pwc_team_barrier(t, PWC_CID_NONE, 0), -EBADMSG);
    CHECK_IS(m, pwc_team_shrink(t, &next), 0);
    CHECK_IS(m, pwc_team_free(t), 0);
    check_team(m, next, size, m->rank);
    CHECK_IS(m, next ? pwc_team_free(next) : 0, 0);
    CHECK_IS(m, pwc_request_free(request), 0);
    return NULL;
}

/* The last rank frees a team while the others are in a barrier, which does not count as their part
 * of the free. */
static void *free_in_a_barrier(void *argument)
{
    struct member *m = argument;
    pwc_request *request = NULL;
    pwc_team *t = NULL;
    char text[256];
    int rc;

    CHECK_IS(m, pwc_team_dup(m->world, NULL, &t), 0);
    if (!t)
        return NULL;
    CHECK_IS(m, pwc_request_create(m->client.ctx, &request), 0);
    if (m->rank + 1 < size) {
        rc = pwc_team_barrier(t, pwc_cid_request(request), 0);
        if (rc == 0)
            wait_for(m, request, -EBADMSG);
        else
            CHECK_IS(m, rc, -EBADMSG); /* another member has found the mismatch first */
        CHECK(m, pwc_team_error_text(t, text, sizeof(text)) > 0);
        CHECK(m, strstr(text, "pwc_team_free at member") != NULL ||
                     strstr(text, "was pwc_team_free") != NULL);
    }
    CHECK_IS(m, pwc_team_free(t), 0);
    CHECK_IS(m, pwc_request_free(request), 0);
    return NULL;
}

/* The last rank detaches while the others wait for it. */
static void *death(void *argument)
{
    struct member *m = argument;
    pwc_request *request = NULL;
    pwc_team *next = NULL, *t = NULL;
    pwc_window *window = NULL;
    unsigned begun = 0;
    char text[256];

    CHECK_IS(m, pwc_team_dup(m->world, NULL, &t), 0);
    (void)pthread_barrier_wait(&together);
    if (m->rank + 1 == size) {
        rank_detach(&m->client);
        m->client.client = NULL;
        return NULL;
    }
    CHECK_IS(m, pwc_request_create(m->client.ctx, &request), 0);
    for (unsigned i = 0; i < 20; i++) {
        int rc = begin(m->world, ALLREDUCE, 0, m->in, m->out, 1 + i, pwc_cid_request(request));

        CHECK(m, rc == 0 || rc == -EAGAIN || rc == -EHOSTDOWN);
        begun += rc == 0;
    }
    CHECK_IS(m, pwc_window_create(m->client.ctx, t, m->client.region, &window), -EHOSTDOWN);
    CHECK(m, says(m, "member %u of the team has ended", size - 1));
    CHECK_IS(m, pwc_team_free(t), 0);
    wait_for(m, request, begun > 0 ? -EHOSTDOWN : 0);
    CHECK(m, pwc_team_error_text(m->world, text, sizeof(text)) > 0);
    CHECK(m, strstr(text, "has ended") != NULL);
    CHECK_IS(m, pwc_team_barrier(m->world, PWC_CID_NONE, 0), -EHOSTDOWN);
    CHECK_IS(m, pwc_team_shrink(m->world, &next), 0);
    check_team(m, next, size - 1, m->rank);
    CHECK_IS(m, next ? pwc_team_free(next) : 0, 0);
    CHECK_IS(m, pwc_team_free(m->world), 0);
    CHECK_IS(m, pwc_request_free(request), 0);
    return NULL;
}

static void test_attach(void)
{
    run(attach);
}

static void test_kinds(void)
{
    run(all_kinds);
}

static void test_varying(void)
{
    run(varying_kinds);
}

static void test_thousand(void)
{
    run(thousand);
}

static void test_teams(void)
{
    run(teams);
}

static void test_windows(void)
{
    run(windows);
}

static void test_refused_windows(void)
{
    run(refused_windows);
}

static void test_given_up_window(void)
{
    if (size < 2 || cluster.options.nodes != 2)
        return;
    CU_ASSERT_EQUAL_FATAL(pthread_barrier_init(&pair, NULL, 2), 0);
    run_some(2, given_up_window);
    pthread_barrier_destroy(&pair);
}

static void test_window_freed_again(void)
{
    if (size < 2)
        return;
    CU_ASSERT_EQUAL_FATAL(pthread_barrier_init(&pair, NULL, 2), 0);
    run_some(2, window_freed_again);
    pthread_barrier_destroy(&pair);
}

static void test_mismatch(void)
{
    if (size > 1)
        run(mismatch);
}

static void test_free_in_a_barrier(void)
{
    if (size > 1)
        run(free_in_a_barrier);
}

static void test_death(void)
{
    if (size > 1)
        run(death);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"attach", test_attach},
                           {"all kinds", test_kinds},
                           {"blocks of different lengths", test_varying},
                           {"a thousand at once", test_thousand},
                           {"teams of teams", test_teams},
                           {"windows over teams", test_windows},
                           {"windows that a member has no part in", test_refused_windows},
                           {"a window that is given up", test_given_up_window},
                           {"a window that is freed again", test_window_freed_again},
                           {"members that call differently", test_mismatch},
                           {"a member that frees the team", test_free_in_a_barrier},
                           {"a member that ends", test_death},
                           CU_TEST_INFO_NULL};
    struct cluster_options options = {0};
    int status = 1;

    if (argc < 5) {
        fprintf(stderr, "usage: %s PWCD PROVIDER NODES RANKS [--KEY VALUE]...\n", argv[0]);
        return 2;
    }
    options.pwcd = argv[1];
    options.provider = argv[2];
    options.nodes = (unsigned)strtoul(argv[3], NULL, 10);
    size = (uint32_t)strtoul(argv[4], NULL, 10);
    options.more = (const char *const *)argv + 5;
    if (size < 1 || size > RANKS_MAX || options.nodes < 1 || options.nodes > CLUSTER_NODES_MAX)
        return 2;
    for (uint32_t r = 0; r < size; r++)
        members[r].rank = r;
    (void)pthread_barrier_init(&together, NULL, size);
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("collectives", tests);
    for (uint32_t r = 0; r < size; r++)
        if (members[r].client.client)
            rank_detach(&members[r].client);
    return cluster_end(&cluster, status);
}

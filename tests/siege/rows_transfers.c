/*
 * Rows that transfer data through the library, as any program may. In a row with two processes
 * these are ranks 0 and 1 of a job, each on its own node.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <pwc/am.h>
#include <pwc/vector.h>
#include "tests/lib/rank.h"
#include "tests/siege/row.h"

#define MIB       ((size_t)1 << 20)
#define PAGE      4096
#define WAIT_MS   1000
#define KINDS     (PWC_LOCAL | PWC_REMOTE | PWC_MESSAGE)
#define UNBOUNDED UINT64_MAX
#define HANDLER   1u
#define CONTEXTS  48u

/* A flood: the operations that the origin makes without pause, and what the target does. */
struct flood {
    int (*send)(struct rank *r, const struct flood *f, unsigned flags);
    size_t region, length;
    uint64_t window; /* operations under way; UNBOUNDED: no bound, and no local events */
    unsigned flags;
    unsigned contexts;      /* contexts that flood at the same time; 0 means 1 */
    pwc_am_handler handler; /* handler at the target; NULL: none */
    bool drains;            /* the target takes its events and runs handlers */
    bool gives_back; /* the target fills a region and tries to free its pages, again and again */
};

/* ---- one operation each --------------------------------------------------------------------- */

static int send_put(struct rank *r, const struct flood *f, unsigned flags)
{
    return pwc_put(r->remote, 0, r->memory, f->length, PWC_CID_NONE, PWC_CID_NONE, flags);
}

static int send_get(struct rank *r, const struct flood *f, unsigned flags)
{
    return pwc_get(r->remote, 0, r->memory, f->length, PWC_CID_NONE, PWC_CID_NONE, flags);
}

/* A shape of the shortest elements that a daemon copies itself, each on a page of its own. */
static int send_column(struct rank *r, const struct flood *f, unsigned flags)
{
    const struct pwc_shape column = {
        .dims = 1,
        .element = f->length,
        .count = {PWC_PIECES_MAX},
        .local_stride = {PAGE},
        .remote_stride = {PAGE},
    };

    return pwc_put_shape(r->remote, 0, r->memory, &column, PWC_CID_NONE, PWC_CID_NONE, flags);
}

/* A put with the longest ids. */
static int send_ids(struct rank *r, const struct flood *f, unsigned flags)
{
    static const uint8_t id[PWC_CID_MAX];

    return pwc_put(r->remote, 0, r->memory, f->length, pwc_cid_bytes(id, sizeof(id)),
                   pwc_cid_bytes(id, sizeof(id)), flags);
}

static int send_message(struct rank *r, const struct flood *f, unsigned flags)
{
    struct pwc_am_send send = {
        .index = HANDLER, .src = r->memory, .len = f->length, .flags = flags};

    return f->length > 0 ? pwc_am_medium(r->remote, &send) : pwc_am_short(r->remote, &send);
}

/* ---- handlers ------------------------------------------------------------------------------- */

static uint8_t reply_bytes[4096];

static void on_request(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    size_t longest = *(const size_t *)argument;
    struct pwc_am_send send = {.index = HANDLER,
                               .src = reply_bytes,
                               .len = longest < sizeof(reply_bytes) ? longest : sizeof(reply_bytes),
                               .flags = PWC_NO_LCE};

    if (message->token != 0)
        pwc_am_reply_medium(ctx, message->token, &send);
}

static void on_request_sleep(pwc_ctx *ctx, const struct pwc_am *message, void *argument)
{
    const struct timespec pause = {.tv_nsec = 20000000};

    nanosleep(&pause, NULL);
}

/* ---- the two sides -------------------------------------------------------------------------- */

/* Attaches as rank `process` of a pair; *key is the key of the other rank's region. */
static bool attach(struct attack *a, struct rank *r, const struct flood *f, struct pwc_key *key)
{
    static size_t longest;
    struct pwc_key mine, all[2];

    if (rank_attach(r, a->sockets[a->process], a->job, a->process, 2, f->region) < 0)
        return false;
    longest = pwc_am_max_medium(r->client);
    if (f->handler && pwc_am_register(r->ctx, HANDLER, f->handler, &longest) < 0)
        return false;
    if (pwc_region_key(r->region, &mine) < 0 || pwc_exchange(r->ctx, &mine, sizeof(mine), all) < 0)
        return false;
    *key = all[1 - r->number];
    return pwc_bind(r->ctx, pwc_peer_of(1 - r->number, 0), key, &r->remote) == 0;
}

_Noreturn static void be_target(struct attack *a, struct rank *r, const struct flood *f)
{
    struct pwc_event event;

    while (f->gives_back) {
        int rc;

        memset(r->memory, 1, f->region);
        rc = madvise(r->memory, f->region, MADV_REMOVE) == 0 ? 0 : -errno;
        if (rc < 0 && rc != -EPERM) /* a daemon that may do so forbids it */
            _exit(1);
        attack_counts(a, rc);
    }
    while (f->drains)
        if (pwc_wait(r->ctx, PWC_ANY, KINDS, &event, WAIT_MS) == -ESHUTDOWN)
            _exit(1);
    for (;;)
        pause();
}

/* A context of the origin, and the number of its operations under way. */
struct source {
    struct rank rank;
    uint64_t in_flight;
};

/* Submits as many operations as the window has room for. */
static int pour(struct attack *a, struct source *source, const struct flood *f)
{
    unsigned flags = f->flags | (f->window == UNBOUNDED ? PWC_NO_LCE : 0);
    int rc = 0;

    while (rc == 0 && source->in_flight < f->window) {
        rc = f->send(&source->rank, f, flags);
        if (rc == 0) {
            attack_counts(a, 0);
            source->in_flight += f->window != UNBOUNDED;
        }
    }
    return rc == -EAGAIN ? 0 : rc;
}

/* Takes all events that have arrived; waits up to wait_ms if there is none. */
static int drain(struct attack *a, struct source *source, int wait_ms)
{
    struct pwc_event event;
    pwc_ctx *ctx = source->rank.ctx;
    int rc = wait_ms > 0 ? pwc_wait(ctx, PWC_ANY, KINDS, &event, wait_ms)
                         : pwc_probe(ctx, PWC_ANY, KINDS, &event);

    for (; rc == 1; rc = pwc_probe(ctx, PWC_ANY, KINDS, &event)) {
        if (event.kind != PWC_LOCAL)
            continue;
        if (event.status < 0)
            attack_counts(a, event.status);
        source->in_flight -= source->in_flight > 0;
    }
    return rc == -ESHUTDOWN || rc == -EPROTO ? rc : 0;
}

/* Makes further contexts of the origin, bound to the same target. Returns the number of
 * contexts. */
static unsigned widen(struct source *sources, const struct flood *f, const struct pwc_key *key)
{
    unsigned count = 1;

    for (; count < f->contexts; count++) {
        struct rank *r = &sources[count].rank;

        sources[count] = (struct source){.rank = sources[0].rank};
        if (pwc_ctx_create(r->client, NULL, &r->ctx) < 0 ||
            pwc_bind(r->ctx, pwc_peer_of(1, 0), key, &r->remote) < 0)
            break;
    }
    return count;
}

static void flood(struct attack *a, const struct flood *f)
{
    static struct source sources[CONTEXTS];
    struct pwc_key key;
    unsigned count;
    int rc = 0;

    if (!attach(a, &sources[0].rank, f, &key))
        return;
    if (a->process == 1) {
        attack_begins(a);
        be_target(a, &sources[0].rank, f);
    }
    count = widen(sources, f, &key);
    attack_begins(a);
    while (rc == 0) {
        for (unsigned i = 0; rc == 0 && i < count; i++)
            rc = pour(a, &sources[i], f);
        for (unsigned i = 0; rc == 0 && i < count; i++)
            rc = drain(a, &sources[i], i > 0 ? 0 : f->window == UNBOUNDED ? 1 : WAIT_MS);
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void run_no_handler(struct attack *a)
{
    flood(a, &(struct flood){
                 .send = send_message, .region = MIB, .window = 1024, .flags = PWC_AM_NO_REPLY});
}

static void run_replies(struct attack *a)
{
    flood(a, &(struct flood){.send = send_message,
                             .region = MIB,
                             .window = UNBOUNDED,
                             .handler = on_request,
                             .drains = true});
}

static void run_sleepy(struct attack *a)
{
    flood(a, &(struct flood){.send = send_message,
                             .region = MIB,
                             .length = 2048,
                             .window = UNBOUNDED,
                             .handler = on_request_sleep,
                             .drains = true,
                             .flags = PWC_AM_NO_REPLY});
}

static void run_gets(struct attack *a)
{
    flood(a, &(struct flood){.send = send_get,
                             .region = 512 * MIB,
                             .length = 512 * MIB,
                             .window = 32,
                             .flags = PWC_NO_RCE});
}

static void run_puts(struct attack *a)
{
    flood(a, &(struct flood){.send = send_put,
                             .region = 512 * MIB,
                             .length = 512 * MIB,
                             .window = 32,
                             .flags = PWC_NO_RCE});
}

static void run_holes(struct attack *a)
{
    flood(a, &(struct flood){.send = send_put,
                             .region = 512 * MIB,
                             .length = 512 * MIB,
                             .window = 4,
                             .flags = PWC_NO_RCE,
                             .gives_back = true});
}

static void run_stream(struct attack *a)
{
    flood(a,
          &(struct flood){
              .send = send_put, .region = MIB, .length = MIB, .window = 64, .flags = PWC_NO_RCE});
}

static void run_stream4(struct attack *a)
{
    flood(a, &(struct flood){
                 .send = send_put, .region = MIB, .length = MIB, .window = 4, .flags = PWC_NO_RCE});
}

static void run_middle(struct attack *a)
{
    flood(a, &(struct flood){.send = send_put,
                             .region = MIB,
                             .length = 65536,
                             .window = UNBOUNDED,
                             .flags = PWC_NO_RCE});
}

static void run_small_puts(struct attack *a)
{
    flood(a, &(struct flood){
                 .send = send_put, .region = MIB, .length = 8, .window = 1024, .drains = true});
}

static void run_tiny_gets(struct attack *a)
{
    flood(a,
          &(struct flood){
              .send = send_get, .region = MIB, .length = 8, .window = 4096, .flags = PWC_NO_RCE});
}

static void run_wide_gets(struct attack *a)
{
    flood(a, &(struct flood){.send = send_get,
                             .region = MIB,
                             .length = 8,
                             .window = 1024,
                             .contexts = CONTEXTS,
                             .flags = PWC_NO_RCE});
}

static void run_columns(struct attack *a)
{
    flood(a, &(struct flood){.send = send_column,
                             .region = PWC_PIECES_MAX * (size_t)PAGE,
                             .length = 5,
                             .window = 64,
                             .flags = PWC_NO_RCE});
}

static void run_ids(struct attack *a)
{
    flood(a, &(struct flood){
                 .send = send_ids, .region = MIB, .length = 8, .window = 1024, .drains = true});
}

static void run_deaf(struct attack *a)
{
    flood(a, &(struct flood){.send = send_put, .region = MIB, .length = 64, .window = UNBOUNDED});
}

/* Each round binds a new context to one of the neighbour, puts, and destroys the context. */
static void run_pairs(struct attack *a)
{
    struct pwc_key mine, all[2];
    struct rank r;

    if (rank_attach(&r, a->sockets[0], a->job, a->process, 2, 65536) < 0 ||
        pwc_region_key(r.region, &mine) < 0 || pwc_exchange(r.ctx, &mine, sizeof(mine), all) < 0)
        return;
    attack_begins(a);
    for (;;) {
        struct pwc_event event;
        pwc_remote *remote = NULL;
        pwc_ctx *ctx = NULL;
        int rc = pwc_ctx_create(r.client, NULL, &ctx);

        if (rc == 0)
            rc = pwc_bind(ctx, pwc_peer_of(1 - r.number, 0), &all[1 - r.number], &remote);
        if (rc == 0)
            rc = pwc_put(remote, 0, r.memory, 8, PWC_CID_NONE, PWC_CID_NONE, PWC_NO_LCE);
        attack_counts(a, rc);
        if (ctx)
            pwc_ctx_destroy(ctx);
        while (pwc_probe(r.ctx, PWC_ANY, 0, &event) == 1)
            continue;
        if (rc == -ESHUTDOWN || rc == -EPROTO)
            return;
    }
}

/* ---- programs that are killed --------------------------------------------------------------- */

/* A process with two ranks that put until the process is killed. */
_Noreturn static void be_killed(struct attack *a, unsigned number)
{
    struct rank ranks[2];
    char job[48];

    snprintf(job, sizeof(job), "%s-%u", a->job, number);
    for (uint32_t i = 0; i < 2; i++)
        if (rank_attach(&ranks[i], a->sockets[i], job, i, 2, MIB) < 0)
            _exit(1);
    if (rank_bind(&ranks[0], &ranks[1]) < 0)
        _exit(1);
    for (;;) {
        struct pwc_event event;

        if (pwc_put(ranks[0].remote, 0, ranks[0].memory, 1024, PWC_CID_NONE, PWC_CID_NONE, 0) == 0)
            attack_counts(a, 0);
        else
            pwc_wait(ranks[0].ctx, PWC_ANY, PWC_LOCAL, &event, 1);
    }
}

/* This process sleeps between its looks: it must not take a processor, since burners count one for
 * the programs alone. */
static void run_killed(struct attack *a)
{
    const struct timespec pause = {.tv_nsec = 200000};

    attack_begins(a);
    for (unsigned number = 0;; number++) {
        uint64_t before = a->tally->taken;
        pid_t parent = getpid(), pid = fork();

        if (pid == 0) {
            if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent)
                be_killed(a, number);
            _exit(1);
        }
        if (pid < 0)
            return;
        while (a->tally->taken < before + 16 && waitpid(pid, NULL, WNOHANG) == 0)
            nanosleep(&pause, NULL);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

const struct row rows_transfers[] = {
    {"no-handler", "sends messages to an index without a handler", 2, 0, NULL, run_no_handler},
    {"replies", "request and reply at full rate, replies of 4 KiB", 2, 0, NULL, run_replies},
    {"sleepy", "sends messages to handlers that sleep 20 ms", 2, 0, NULL, run_sleepy},
    {"gets", "32 gets of 512 MiB in flight", 2, 0, NULL, run_gets},
    {"puts", "32 puts of 512 MiB in flight", 2, 0, NULL, run_puts},
    {"holes", "tries to give the memory back that puts arrive in", 2, ROW_ALONE, NULL, run_holes},
    {"stream", "puts of 1 MiB, 64 in flight", 2, 0, NULL, run_stream},
    {"stream4", "puts of 1 MiB, 4 in flight", 2, 0, NULL, run_stream4},
    {"middle", "puts of 64 KiB, as many as quotas let", 2, 0, NULL, run_middle},
    {"small-puts", "puts of 8 bytes, 1024 in flight", 2, 0, NULL, run_small_puts},
    {"tiny-gets", "gets of 8 bytes, 4096 in flight", 2, 0, NULL, run_tiny_gets},
    {"wide-gets", "gets of 8 bytes on 48 contexts, 1024 in flight on each", 2, 0, NULL,
     run_wide_gets},
    {"columns", "shapes of 1024 elements of 5 bytes, 64 in flight", 2, 0, NULL, run_columns},
    {"ids", "puts with ids of 1 KiB, 1024 in flight", 2, 0, NULL, run_ids},
    {"deaf", "puts to a rank that takes no events", 2, 0, NULL, run_deaf},
    {"pairs", "two neighbours: contexts that come, are bound, put, and go", 2, 0, NULL, run_pairs},
    {"killed", "programs with puts under way that are killed, one after another", 1, 0, NULL,
     run_killed},
    {0},
};

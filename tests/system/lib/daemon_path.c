/* The path through libpwc and real daemons (daemon_path.h). Thread: one. */
#include "tests/system/lib/daemon_path.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "clientlib/attach/context.h" /* to see whether all operations have ended */
#include "clientlib/attach/deadline.h"
#include "pwc/atomic.h"
#include "pwc/counter.h"
#include "pwc/signal.h"
#include "pwc/vector.h"

#define MEMORY_BYTES (2u << 20)
#define RING_BYTES   16384u
#define RIGHTS_ALL   (PWC_REMOTE_READ | PWC_REMOTE_WRITE)
#define TURN_NS      200000
#define VECTOR_MOST  64u /* pieces of a vector in this suite, at most */
#define STUCK_NS     INT64_C(10000000000)

static pwc_peer path_peer(void *context, uint32_t end)
{
    return pwc_peer_of(end, 0);
}

static uint8_t *path_memory(void *context, uint32_t end, uint64_t *length)
{
    struct daemon_path *p = context;

    *length = MEMORY_BYTES;
    return p->ends[end].memory;
}

/* Gives the key of moved memory other rights: registers the memory again. */
static int narrow(struct daemon_end *e, unsigned rights)
{
    int rc;

    if (!e->moved)
        return -ENOTSUP;
    rc = pwc_region_free(e->region);
    if (rc < 0)
        return rc;
    e->region = NULL;
    rc = pwc_register(e->client, e->moved, MEMORY_BYTES, rights, PWC_MOVE, &e->region);
    if (rc == 0)
        e->rights = rights;
    return rc;
}

static int path_key(void *context, uint32_t end, unsigned rights, struct pwc_key *out)
{
    struct daemon_path *p = context;
    struct daemon_end *e = &p->ends[end];
    int rc = 0;

    if (!e->region)
        return -ENOENT;
    rights = rights ? rights : RIGHTS_ALL;
    if (rights != e->rights)
        rc = narrow(e, rights);
    return rc < 0 ? rc : pwc_region_key(e->region, out);
}

static int path_bind(void *context, uint32_t from, uint32_t to, const struct pwc_key *key,
                     uint32_t *remote)
{
    struct daemon_path *p = context;
    int rc;

    if (p->remote_count == DAEMON_PATH_REMOTES)
        return -ENOSPC;
    *remote = p->remote_count;
    p->remotes[*remote].peer = pwc_peer_of(to, 0);
    rc = pwc_bind(p->ends[from].ctx, pwc_peer_of(to, 0), key, &p->remotes[*remote].remote);
    if (rc == 0)
        p->remote_count++;
    p->moved = true;
    return rc;
}

/* An operation that the library refuses becomes, for this suite, an event with the error. */
static int refuse(struct daemon_path *p, const struct path_op *op, int status)
{
    struct daemon_end *e = &p->ends[op->from];

    if (e->refused)
        return status;
    e->refused = true;
    e->refusal = (struct pwc_event){.kind = PWC_LOCAL,
                                    .status = status,
                                    .op = path_event_op(op->kind),
                                    .peer = p->remotes[op->remote].peer,
                                    .id = op->lid.size ? 0 : op->lid.value,
                                    .id_size = op->lid.size};
    if (op->lid.size)
        memcpy(e->refused_id, op->lid.data, op->lid.size);
    e->refusal.data = op->lid.size ? e->refused_id : NULL;
    return 0;
}

static int submit_vector(pwc_remote *remote, const struct path_op *op, uint8_t *local, pwc_cid lid)
{
    struct pwc_piece pieces[VECTOR_MOST];

    if (op->pieces > VECTOR_MOST)
        return -EINVAL;
    for (uint32_t i = 0; i < op->pieces; i++) {
        uint64_t length, at = path_piece(op, i, &length);

        pieces[i] = (struct pwc_piece){op->remote_offset + at, local + at, length};
    }
    return op->kind == PATH_PUT ? pwc_putv(remote, pieces, op->pieces, lid, op->rid, op->flags)
                                : pwc_getv(remote, pieces, op->pieces, lid, op->rid, op->flags);
}

static int submit_plain(pwc_remote *remote, const struct path_op *op, uint8_t *local, pwc_cid lid)
{
    switch (op->kind) {
    case PATH_PUT:
        return pwc_put(remote, op->remote_offset, local, op->length, lid, op->rid, op->flags);
    case PATH_GET:
        return pwc_get(remote, op->remote_offset, local, op->length, lid, op->rid, op->flags);
    default:
        return pwc_put_signal(remote, op->remote_offset, local, op->length, op->signal.offset,
                              op->signal.value, op->signal.add ? PWC_ADD : PWC_SET, lid,
                              op->flags & ~(unsigned)PWC_NO_RCE);
    }
}

static int submit_atomic(struct daemon_path *p, pwc_remote *remote, const struct path_op *op,
                         pwc_cid lid)
{
    struct daemon_fetch *f = &p->fetches[p->fetch_count % DAEMON_PATH_FETCHES];
    const uint64_t one = 1;
    int rc;

    if (!op->fetch)
        return pwc_atomic(remote, op->remote_offset, PWC_ADD, PWC_U64, &one, 1, lid, op->rid,
                          op->flags);
    f->lid = op->lid.value;
    rc = pwc_fetch_atomic(remote, op->remote_offset, PWC_ADD, PWC_U64, &one, 1, &f->value, lid,
                          op->rid, op->flags);
    p->fetch_count += rc == 0;
    return rc;
}

/* In this suite the local event of a fetching atomic has the fetched word: adds it. */
static void show_fetched(const struct daemon_path *p, struct pwc_event *event)
{
    for (uint32_t i = 0; i < DAEMON_PATH_FETCHES && i < p->fetch_count; i++) {
        const struct daemon_fetch *f = &p->fetches[(p->fetch_count - 1 - i) % DAEMON_PATH_FETCHES];

        if (f->lid == event->id) {
            event->length = f->value;
            return;
        }
    }
}

static int path_submit(void *context, const struct path_op *op)
{
    struct daemon_path *p = context;
    struct daemon_end *e = &p->ends[op->from];
    pwc_remote *remote = p->remotes[op->remote].remote;
    uint8_t *local = e->memory + op->local_offset;
    pwc_request *request = NULL;
    int rc = p->by_requests ? request_ends_add(&e->ends, e->ctx, op, &request) : 0;
    pwc_cid lid = request ? pwc_cid_request(request) : op->lid;

    if (rc < 0)
        return rc;
    rc = op->kind == PATH_ATOMIC ? submit_atomic(p, remote, op, lid)
         : op->pieces > 1        ? submit_vector(remote, op, local, lid)
                                 : submit_plain(remote, op, local, lid);
    if (rc == 0)
        p->moved = true;
    else if (request)
        request_ends_drop(&e->ends, request);
    return rc == -ERANGE || rc == -EKEYREJECTED ? refuse(p, op, rc) : rc;
}

static int path_probe(void *context, uint32_t end, struct pwc_event *out)
{
    struct daemon_path *p = context;
    struct daemon_end *e = &p->ends[end];
    int rc = 1;

    if (e->refused) {
        e->refused = false;
        *out = e->refusal;
    } else {
        rc = pwc_probe(e->ctx, PWC_ANY, PATH_EVENTS, out);
        if (rc != 1) {
            int ended = request_ends_take(&e->ends, out);

            rc = ended != 0 ? ended : rc;
        }
    }
    if (rc == 1 && out->kind == PWC_LOCAL && out->op == PWC_OP_ATOMIC && out->status == 0)
        show_fetched(p, out);
    if (rc == 1)
        p->moved = true;
    return rc;
}

/* Other processes do the work: waits a moment for them. False: nothing has arrived for too long. */
static bool path_progress(void *context)
{
    struct daemon_path *p = context;
    const struct timespec turn = {.tv_nsec = TURN_NS};
    struct pollfd polled[DAEMON_PATH_ENDS];
    int64_t now = clock_now();

    if (p->moved) {
        p->moved = false;
        p->moved_ns = now;
        sched_yield();
        return true;
    }
    if (now - p->moved_ns > STUCK_NS)
        return false;
    for (uint32_t i = 0; i < p->path.ends; i++)
        polled[i] = (struct pollfd){.fd = p->ends[i].wake, .events = POLLIN};
    ppoll(polled, p->path.ends, &turn, NULL);
    return true;
}

static bool path_idle(void *context, uint32_t end)
{
    struct daemon_path *p = context;

    return channel_idle(&p->ends[end].ctx->channel);
}

/* The library withdraws a region in one call, which blocks. */
static int path_withdraw(void *context, uint32_t end)
{
    struct daemon_path *p = context;
    struct daemon_end *e = &p->ends[end];
    int rc = e->moved ? pwc_region_free(e->region) : -ENOTSUP;

    if (rc == 0)
        e->region = NULL;
    p->moved = true;
    return rc;
}

static bool path_withdrawn(void *context, uint32_t end)
{
    struct daemon_path *p = context;

    return p->ends[end].region == NULL;
}

static int path_kill(void *context, uint32_t end)
{
    struct daemon_path *p = context;
    int rc = pwc_abort(p->ends[end].client);

    request_ends_forget(&p->ends[end].ends);
    p->ends[end].client = NULL;
    p->ends[end].region = NULL;
    p->ends[end].wake = -1;
    p->moved = true;
    return rc;
}

static int path_cut(void *context, uint32_t a, uint32_t b, bool for_good)
{
    return -ENOTSUP;
}

static const char *path_failure(void *context)
{
    struct daemon_path *p = context;

    return p->moved || cluster_runs(p->cluster) ? NULL : p->cluster->failure;
}

static bool path_counts(void *context, uint32_t end, struct path_counts *out)
{
    struct daemon_path *p = context;
    pwc_ctx *ctx = p->ends[end].ctx;

    return ctx && pwc_counter_read(ctx, PWC_COUNT_ENDED, &out->ended) == 0 &&
           pwc_counter_read(ctx, PWC_COUNT_FAILED, &out->failed) == 0 &&
           pwc_counter_read(ctx, PWC_COUNT_ARRIVED, &out->arrived) == 0;
}

static const struct path_calls calls = {
    .peer = path_peer,
    .memory = path_memory,
    .key = path_key,
    .bind = path_bind,
    .submit = path_submit,
    .probe = path_probe,
    .progress = path_progress,
    .idle = path_idle,
    .counts = path_counts,
    .withdraw = path_withdraw,
    .withdrawn = path_withdrawn,
    .kill = path_kill,
    .cut = path_cut,
    .failure = path_failure,
};

/* After a failure, daemon_path_close frees what was opened. */
static int open_end(struct daemon_path *p, uint32_t number, const char *job, char failure[400])
{
    struct daemon_end *e = &p->ends[number];
    char why[300] = "";
    const struct pwc_attr attr = {
        .socket = p->cluster->nodes[number % p->cluster->options.nodes].socket,
        .job = job,
        .rank = number,
        .size = p->path.ends,
        .error = why,
        .error_size = sizeof(why),
    };
    const struct pwc_ctx_attr rings = {
        .submit_bytes = 4 * RING_BYTES, .local_bytes = RING_BYTES, .remote_bytes = RING_BYTES};
    int rc = pwc_init(&attr, &e->client);

    if (rc == 0)
        rc = pwc_ctx_create(e->client, &rings, &e->ctx);
    if (rc == 0 && number % 2 == 0) {
        rc = pwc_alloc(e->client, MEMORY_BYTES, PWC_REMOTE_RW, &e->region);
        e->memory = rc == 0 ? pwc_region_addr(e->region) : NULL;
    } else if (rc == 0) {
        e->moved =
            mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (e->moved == MAP_FAILED) {
            e->moved = NULL;
            rc = -errno;
        } else {
            rc = pwc_register(e->client, e->moved, MEMORY_BYTES, PWC_REMOTE_RW, PWC_MOVE,
                              &e->region);
        }
        e->memory = e->moved;
    }
    e->rights = RIGHTS_ALL;
    e->wake = rc == 0 ? pwc_fd(e->ctx) : -1;
    if (rc != 0)
        snprintf(failure, 400, "end %u does not attach: %s. %s", number, pwc_strerror(rc), why);
    return rc;
}

int daemon_path_open(struct daemon_path *p, struct cluster *cluster, const char *job,
                     char failure[400])
{
    int rc = 0;

    memset(p, 0, sizeof(*p));
    for (uint32_t i = 0; i < DAEMON_PATH_ENDS; i++)
        request_ends_init(&p->ends[i].ends);
    p->cluster = cluster;
    p->moved_ns = clock_now();
    p->path = (struct path){
        .calls = &calls,
        .context = p,
        .ends = DAEMON_PATH_ENDS,
        .lacks = DAEMON_PATH_LACKS,
    };
    for (uint32_t i = 0; rc == 0 && i < DAEMON_PATH_ENDS; i++)
        rc = open_end(p, i, job, failure);
    if (rc != 0) {
        daemon_path_close(p);
        return rc;
    }
    p->path.packed_max = pwc_packed_max(p->ends[0].client);
    p->path.message_max = pwc_message_max(p->ends[0].client);
    if (p->path.message_max == UINT64_MAX)
        p->path.lacks |= PATH_LIMITS_LENGTHS;
    return 0;
}

void daemon_path_close(struct daemon_path *p)
{
    for (uint32_t i = 0; i < DAEMON_PATH_ENDS; i++) {
        if (p->ends[i].client)
            pwc_abort(p->ends[i].client);
        request_ends_forget(&p->ends[i].ends);
        if (p->ends[i].moved)
            munmap(p->ends[i].moved, MEMORY_BYTES);
    }
}

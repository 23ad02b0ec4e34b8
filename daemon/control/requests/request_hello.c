/* Checks, carries out and answers Hello (request_hello.h). Thread: control. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/control/clients/client.h"
#include "proto/session_abi.h"
#include "shm_ring/fault.h"
#include "daemon/control/nodes/directory_client.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/requests/request_hello.h"

enum { VERSION = 1 };

/* Puts the connection into the store, so that it may outlive this process from now on. */
static void keep_connection(struct client *c)
{
    struct store *store = &c->control->store;
    struct inflight_entry *entry = client_inflight(c);

    entry->number = c->number;
    entry->engine = c->worker->engine;
    entry->state = INFLIGHT_SERVED;
    if (!store_add_for(store, c->uid, c->descriptor, "client.%u", c->slot) ||
        (c->pidfd >= 0 && !store_add_for(store, c->uid, c->pidfd, "process.%u", c->slot)))
        entry->lost |= INFLIGHT_UNKEPT;
}

static void welcome(struct client *c)
{
    struct control *control = c->control;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Welcome w = PWC__WELCOME__INIT;
    struct log_subject about = client_subject(c);

    client_becomes(c, CLIENT_SERVED);
    membership_begin(&control->memberships, c->slot, c->instance);
    keep_connection(c);
    service_clients_changed(control);
    w.version = VERSION;
    w.release = (char *)(uintptr_t)PWC_VERSION;
    w.rings = SESSION_VERSION;
    w.rank = c->rank;
    w.instance = c->instance;
    w.client = c->number;
    w.node = control->node;
    w.nodes = control->node_count;
    w.packed_max = control->engine.packed_max;
    w.bounce_max = CLIENT_BOUNCE_MAX;
    /* Some fabrics have no limit, but the length in a record has 32 bits. */
    w.message_max = control->message_max < UINT32_MAX ? control->message_max : UINT32_MAX;
    reply.id = c->hello_request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_WELCOME;
    reply.welcome = &w;
    if (c->size == DIRECTORY_OPEN)
        log_about(&control->log, LOG_LEVEL_INFO, &about,
                  "rank %u of open job %s, pid %d, is client %u", c->rank, c->job, (int)c->pid,
                  c->number);
    else
        log_about(&control->log, LOG_LEVEL_INFO, &about,
                  "rank %u of %u of job %s, pid %d, is client %u", c->rank, c->size, c->job,
                  (int)c->pid, c->number);
    client_reply(c, &reply, NULL, 0);
}

/* Refuses a Hello, and ends the client: it may try again on another connection. */
static void refuse(struct client *c, int status, const char *text)
{
    reply_error(c, c->hello_request, status, "%s", text);
    client_end(c, NULL);
}

static const char *home_refusal(const struct client *c, int status, uint32_t node, char *text,
                                size_t size)
{
    switch (status) {
    case -EADDRINUSE:
        snprintf(text, size, "rank %u of job %s is live on node %u: end it, or take another rank",
                 c->rank, c->job, node);
        break;
    case -EINVAL:
        snprintf(text, size,
                 "rank %u of %u does not fit job %s, which has another size, is open, or is full: "
                 "all ranks of a job name one size",
                 c->rank, c->size, c->job);
        break;
    case -EDQUOT:
        snprintf(text, size,
                 "node %u, which keeps the directory of job %s, has as many jobs of user %u as its "
                 "user-jobs allows: end some, or raise it there",
                 node, c->job, (unsigned)c->uid);
        break;
    case -ENOSPC:
        snprintf(text, size,
                 "node %u, which keeps the directory of job %s, is full: it has %u jobs", node,
                 c->job, DIRECTORY_JOBS_MAX);
        break;
    case -EHOSTDOWN:
        snprintf(text, size, "node %u, which keeps the directory of job %s, cannot be reached",
                 node, c->job);
        break;
    default:
        snprintf(text, size, "node %u, which keeps the directory of job %s, says: %s", node, c->job,
                 strerror(-status));
        break;
    }
    return text;
}

/* Takes the answer of the job's home. With -EADDRINUSE, `node` is where the rank is live. */
static void located(struct control *control, struct pending *p, int status, uint32_t node,
                    uint32_t engine)
{
    uint32_t about = status == -EADDRINUSE ? node : p->node;
    struct client *c = p->client;
    char text[256];

    c->instance = p->instance;
    pending_remove(&control->pending, p);
    if (status == 0) {
        FAULT(CLIENT_SERVED);
        welcome(c);
        return;
    }
    if (status != -EHOSTDOWN) /* with -EHOSTDOWN the home may have counted the rank: so stay
                               * ATTACHING, and client_end announces that the rank has left */
        client_becomes(c, CLIENT_OPENING);
    refuse(c, status, home_refusal(c, status, about, text, sizeof(text)));
}

static void attach(struct client *c)
{
    struct control *control = c->control;
    struct pending *p;
    uint64_t cookie;

    p = pending_add(&control->pending, PENDING_ATTACH, c, c->hello_request, &cookie);
    if (!p) {
        refuse(c, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    p->located = located;
    client_becomes(c, CLIENT_ATTACHING);
    directory_client_attach(c, cookie);
}

static const char *full_text(const struct control *control, char *text, size_t size)
{
    snprintf(text, size, "this daemon serves %u clients already: raise clients-max",
             control->engine.clients_max);
    return text;
}

static bool is_same_rank(const struct client *a, const struct client *b)
{
    return a->uid == b->uid && a->rank == b->rank && strcmp(a->job, b->job) == 0;
}

/* Whether an earlier client of the same rank lives. Where the engine has the rank, but no client of
 * it lives, the client has ended, maybe in an earlier process, and only the engine has not released
 * it yet. A rank that is started again at once must not be refused for this reason. */
static bool rank_is_live(const struct client *client)
{
    for (const struct client *c = client->control->clients; c; c = c->next)
        if (c != client && is_same_rank(c, client) && client_is_in_engine(c) &&
            c->state != CLIENT_ENDING)
            return true;
    return false;
}

static void opened(struct call *call)
{
    struct client *c = call->owner;
    struct control *control = c->control;
    char text[256];

    if (call->result >= 0) {
        c->number = (uint32_t)call->result;
        c->worker->by_handle[c->number] = c;
    } else {
        c->worker->clients--;
    }
    FAULT(CLIENT_GREETED);
    if (c->state == CLIENT_ENDING) {
        if (call->result >= 0)
            client_leave_engine(c);
        return;
    }
    if (call->result >= 0 && c->size == DIRECTORY_OPEN) {
        FAULT(CLIENT_SERVED);
        welcome(c); /* the home has given the rank already */
    } else if (call->result >= 0) {
        attach(c);
    } else if (call->result == -EADDRINUSE && !rank_is_live(c)) {
        c->awaits_rank = true;
    } else if (call->result == -EADDRINUSE) {
        snprintf(text, sizeof(text),
                 "rank %u of job %s is live on this node: end it, or take another rank", c->rank,
                 c->job);
        refuse(c, call->result, text);
    } else if (call->result == -ENOSPC) {
        refuse(c, call->result, full_text(control, text, sizeof(text)));
    } else {
        snprintf(text, sizeof(text), "rank %u of %u of job %s: %s", c->rank, c->size, c->job,
                 strerror(-call->result));
        refuse(c, call->result, text);
    }
}

static uint32_t rings_of(const Pwc__Hello *hello)
{
    return hello->rings ? hello->rings : SESSION_VERSION_UNSENT;
}

static bool fits(const Pwc__Hello *hello)
{
    return hello->version_min <= VERSION && hello->version_max >= VERSION &&
           rings_of(hello) == SESSION_VERSION;
}

static void refuse_version(struct client *c, uint32_t request, const Pwc__Hello *hello)
{
    bool library_is_older = hello->version_max < VERSION || rings_of(hello) < SESSION_VERSION;

    reply_error(c, request, -EPROTONOSUPPORT,
                "library %.16s speaks versions %u to %u with rings %u, daemon %s version %d with "
                "rings %u: upgrade %s",
                *hello->release ? hello->release : "0.1", hello->version_min, hello->version_max,
                rings_of(hello), PWC_VERSION, VERSION, SESSION_VERSION,
                library_is_older ? "the library, and build the program anew" : "the daemon, pwcd");
}

static bool acceptable(struct client *c, uint32_t request, const Pwc__Hello *hello)
{
    if (c->state != CLIENT_STRANGER && c->state != CLIENT_LOOKING)
        reply_error(c, request, -EALREADY, "a second Hello: open another connection");
    else if (!c->may_serve)
        reply_error(c, request, -EACCES, "%s", CLIENT_NOT_SERVED);
    else if (!fits(hello))
        refuse_version(c, request, hello);
    else if (!directory_name_valid(hello->job))
        reply_error(c, request, -EINVAL,
                    "job \"%.64s\": give a name of 1 to %u printable characters without spaces",
                    hello->job, DIRECTORY_NAME_MAX - 1);
    else if (hello->size == DIRECTORY_OPEN)
        return true; /* the home will give the rank */
    else if (hello->size == 0 || hello->size > DIRECTORY_RANKS_MAX || hello->rank >= hello->size)
        reply_error(c, request, -EINVAL,
                    "rank %u of %u: a rank is below the size, and a size is 1 to %u", hello->rank,
                    hello->size, DIRECTORY_RANKS_MAX);
    else
        return true;
    return false;
}

/* Whether the client waits until the home of its open job gives it a rank. Its worker is chosen
 * already, because the home is to know the rank's engine. */
static bool is_joining(const struct client *c)
{
    return c->state == CLIENT_OPENING && c->worker && c->rank == DIRECTORY_ANY_RANK;
}

/* Counts the clients of each worker, with those that join. Returns the sum. */
static uint32_t count_clients(const struct control *control, uint32_t counts[NODES_ENGINES_MAX])
{
    uint32_t sum = 0;

    for (uint32_t i = 0; i < control->worker_count; i++)
        counts[i] = control->workers[i].clients;
    for (const struct client *c = control->clients; c; c = c->next)
        if (is_joining(c))
            counts[c->worker->engine]++;
    for (uint32_t i = 0; i < control->worker_count; i++)
        sum += counts[i];
    return sum;
}

/* Each engine has room for clients-max clients, so the sum over all engines is bounded here. */
static bool is_full(const struct control *control)
{
    uint32_t counts[NODES_ENGINES_MAX];

    return control->worker_count > 1 &&
           count_clients(control, counts) >= control->engine.clients_max;
}

/* The worker of an earlier client of the same rank that has not left yet, so that one engine knows
 * both clients. NULL: there is none. In an open job the home gives no rank twice. */
static struct worker *worker_of_rank(const struct client *client)
{
    if (client->size != DIRECTORY_OPEN)
        for (const struct client *c = client->control->clients; c; c = c->next)
            if (c->worker && is_same_rank(c, client))
                return c->worker;
    return NULL;
}

static struct worker *worker_with_fewest(const struct control *control)
{
    uint32_t counts[NODES_ENGINES_MAX], least = 0;

    (void)count_clients(control, counts);
    for (uint32_t i = 1; i < control->worker_count; i++)
        if (counts[i] < counts[least])
            least = i;
    return &control->workers[least];
}

static struct worker *choose_worker(const struct client *client)
{
    struct worker *same = worker_of_rank(client);

    return same ? same : worker_with_fewest(client->control);
}

/* Lets the engine open the client, whose rank is known. */
static void open_in_engine(struct client *c)
{
    struct call *call = client_call(c, CALL_CLIENT_OPEN, opened);

    if (!call) {
        refuse(c, -ENOMEM, "this daemon is out of memory");
        return;
    }
    client_find_relation(c);
    c->worker->clients++;
    call->client = (struct engine_client_info){
        .uid = c->uid, .pid = (uint32_t)c->pid, .rank = c->rank, .size = c->size};
    memcpy(call->client.job, c->job, sizeof(c->job));
    call_post(c->worker->progress, call);
}

void request_hello_orphan_left(const struct worker *w)
{
    for (struct client *c = w->control->clients; c; c = c->next)
        if (c->awaits_rank && c->state != CLIENT_ENDING && c->worker == w) {
            c->awaits_rank = false;
            open_in_engine(c);
        }
}

void request_hello_rank_left(const struct client *left)
{
    for (struct client *c = left->control->clients; c; c = c->next)
        if (c->awaits_rank && c->state != CLIENT_ENDING && is_same_rank(c, left)) {
            c->awaits_rank = false;
            open_in_engine(c);
        }
}

/* ---- open jobs ------------------------------------------------------------------------------- */

static const char *join_refusal(const struct client *c, int status, uint64_t instance,
                                uint32_t home, char *text, size_t size)
{
    if (status == -EINVAL)
        snprintf(text, size,
                 "job %s has a fixed number of ranks: join an open job of another name, or give "
                 "rank and size",
                 c->job);
    else if (status == -ENOTSUP)
        snprintf(
            text, size,
            "the daemon of node %u, which keeps the directory of job %s, is older than 0.6 and "
            "knows no open jobs: update it",
            home, c->job);
    else if (status == -ESTALE)
        snprintf(text, size,
                 "node %u, which keeps the directory of job %s, has lost its state since the job "
                 "began, and gives no ranks: end the job's processes",
                 home, c->job);
    else if (status == -ENOSPC && instance != 0)
        snprintf(text, size,
                 "job %s has given all its %u ranks: end the job's processes, or join a job of "
                 "another name",
                 c->job, DIRECTORY_RANKS_MAX);
    else
        return home_refusal(c, status, home, text, size);
    return text;
}

/* Takes the answer of the job's home, which has given a rank or refused one. */
static void joined(struct control *control, struct pending *p, int status, uint32_t node,
                   uint32_t engine)
{
    struct client *c = p->client;
    uint64_t instance = p->instance;
    uint32_t rank = p->rank, home = p->node;
    char text[256];

    pending_remove(&control->pending, p);
    if (status == 0 && (instance == 0 || rank >= DIRECTORY_RANKS_MAX))
        status = -EPROTO;
    /* A home that knows open jobs names the instance of the job that it refuses. */
    if (status == -EINVAL && instance == 0)
        status = -ENOTSUP;
    if (status < 0) {
        refuse(c, status, join_refusal(c, status, instance, home, text, sizeof(text)));
        return;
    }
    c->rank = rank;
    c->instance = instance;
    client_becomes(c, CLIENT_ATTACHING); /* the home counts the rank from now on */
    open_in_engine(c);
}

static void join(struct client *c)
{
    struct control *control = c->control;
    struct pending *p;
    uint64_t cookie;

    c->rank = DIRECTORY_ANY_RANK;
    p = pending_add(&control->pending, PENDING_ATTACH, c, c->hello_request, &cookie);
    if (!p) {
        refuse(c, -ENOBUFS, "too many requests wait in this daemon: try again later");
        return;
    }
    p->located = joined;
    directory_client_attach(c, cookie);
}

/* Whether a rank of the same job on this node says that the job is open where this client says that
 * its size is fixed, or the reverse. Where no such rank is here, the job's home decides. */
static bool is_of_other_kind(const struct client *client)
{
    for (const struct client *c = client->control->clients; c; c = c->next)
        if (c->state == CLIENT_SERVED && c->uid == client->uid && strcmp(c->job, client->job) == 0)
            return (c->size == DIRECTORY_OPEN) != (client->size == DIRECTORY_OPEN);
    return false;
}

static const char *refusal_of(const struct client *c, char *text, size_t size)
{
    return c->size == DIRECTORY_OPEN ? join_refusal(c, -EINVAL, 0, 0, text, size)
                                     : home_refusal(c, -EINVAL, 0, text, size);
}

void request_hello(struct client *c, uint32_t request, const Pwc__Hello *hello)
{
    char text[256];
    int rc;

    if (!acceptable(c, request, hello))
        return;
    client_becomes(c, CLIENT_OPENING);
    uv_timer_stop(&c->deadline);
    c->hello_request = request;
    c->rank = hello->rank;
    c->size = hello->size;
    snprintf(c->job, sizeof(c->job), "%s", hello->job);
    rc = quota_take(c, QUOTA_CLIENTS, 1, text, sizeof(text));
    if (rc < 0) {
        refuse(c, rc, text);
        return;
    }
    if (is_of_other_kind(c)) {
        refuse(c, -EINVAL, refusal_of(c, text, sizeof(text)));
        return;
    }
    if (is_full(c->control)) {
        refuse(c, -ENOSPC, full_text(c->control, text, sizeof(text)));
        return;
    }
    c->worker = choose_worker(c);
    if (c->size == DIRECTORY_OPEN)
        join(c);
    else
        open_in_engine(c);
}

/* Owns the questions to jobs' home nodes, and this node's answers as a home (directory_client.h).
 * Thread: control. */
#include "daemon/control/nodes/directory_client.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/nodes/peers.h"
#include "daemon/control/nodes/directory_table.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/requests/request_bind.h"
#include "daemon/control/teams/team_home.h"
#include "shm_ring/clock.h"

#define PIECE     32512u /* bytes of a result in one frame, which a socket takes completely */
#define ERRNO_MAX 4095

enum { FAILURE_TEXT_MAX = 192, CALL_WORDS = 40 };

static_assert(DIRECTORY_NAME_MAX == ENGINE_JOB_MAX, "one length for a job's name");
static_assert(DIRECTORY_ENGINES == NODES_ENGINES_MAX && HANDSHAKE_ENGINES_MAX == NODES_ENGINES_MAX,
              "one bound for a node's engines");

static void *take(void *context, size_t size)
{
    return calloc(1, size);
}

static void give(void *context, void *memory)
{
    free(memory);
}

static uint64_t draw(void *context)
{
    uint64_t number;

    randombytes_buf(&number, sizeof(number));
    return number;
}

int directory_client_open(struct control *control)
{
    int rc = directory_table_open(&control->directory_table, &control->store, control->node,
                                  control->node_count);

    if (rc < 0)
        return rc;
    control->directory = malloc(sizeof(*control->directory));
    control->sent = malloc(control->node_count);
    if (!control->directory || !control->sent)
        return -ENOMEM;
    control->directory_memory = (struct directory_memory){
        .take = take,
        .give = give,
        .table = directory_table_of(&control->directory_table),
        .empty = directory_table_empty,
        .draw = draw,
    };
    directory_init(control->directory, &control->directory_memory, control->node_count,
                   &(struct directory_shares){.jobs = (uint32_t)control->config->user_jobs,
                                              .alone = !control->config->allow_users &&
                                                       !control->config->allow_groups});
    directory_inherit(control->directory);
    directory_doubt(control->directory, control->node);
    return 0;
}

void directory_client_close(struct control *control)
{
    if (control->directory && control->sent) /* otherwise the directory is empty */
        directory_clear(control->directory);
    free(control->directory);
    free(control->sent);
    control->directory = NULL;
    control->sent = NULL;
    if (control->directory_table.base)
        mapping_destroy(&control->directory_table);
}

static uint32_t home_of(const struct control *control, const struct directory_id *id)
{
    return directory_home(id, control->node_count);
}

/* Sends a frame to a node, which may be our own. A node that cannot be reached is reported by
 * directory_client_node_lost; -ENOBUFS: there is no room to keep the frame until there is a link.
 */
static int send_to(struct control *control, uint32_t node, const Pwc__PeerFrame *frame)
{
    if (node != control->node)
        return peers_send(control, node, frame);
    (void)directory_client_frame(control, node, frame);
    return 0;
}

/* As send_to, for a frame that directory_client_node_up sends anyway: without a link it is
 * dropped. */
static void send_if_linked(struct control *control, uint32_t node, const Pwc__PeerFrame *frame)
{
    if (node != control->node)
        peers_send_now(control, node, frame);
    else
        (void)directory_client_frame(control, node, frame);
}

/* ---- exchange: pieces of the result ---------------------------------------------------------- */

/* An errno from another node, checked. */
int directory_client_errno(int32_t status)
{
    return status < -ERRNO_MAX ? -EPROTO : status;
}

/* Makes the reply to all clients for a piece without an error. */
static struct client_body *body_of(struct quota_user *user, const Pwc__Gathered *g)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Exchanged piece = PWC__EXCHANGED__INIT;

    piece.offset = g->offset;
    piece.data = g->data;
    piece.last = g->last;
    reply.body_case = PWC__CLIENT_REPLY__BODY_EXCHANGED;
    reply.exchanged = &piece;
    return client_body_new(user, &reply);
}

/* `body`: the body of the reply for a piece without an error, the same for all clients. */
static void reply_piece(struct control *control, struct pending *p, const Pwc__Gathered *g,
                        struct client_body *body)
{
    int status = directory_client_errno(g->status);
    struct client *c = p->client;
    uint32_t request = p->request;

    p->offset += g->data.len;
    if (g->last || status < 0)
        pending_remove(&control->pending, p);
    if (status < 0) {
        reply_error(c, request, status, "exchange or barrier %u of job %s: %s", g->sequence, c->job,
                    *g->why                ? g->why
                    : status == -EHOSTDOWN ? "a rank left, or its node cannot be reached, before "
                                             "it took part"
                    : status == -EDQUOT ? "this user's jobs and exchanges take as much memory at "
                                          "the job's home as it gives a user: let some end"
                                        : strerror(-status));
    } else {
        client_reply_body(c, request, body, g->last);
    }
    client_stream_resume(c);
}

/* A piece of the result, or the failure, has arrived for all of the job's ranks on this node. */
static void gathered(struct control *control, uint32_t from, const Pwc__Gathered *g)
{
    const struct directory_id id = {.uid = g->uid, .job = g->job};
    struct client_body *body = NULL;

    if (home_of(control, &id) != from)
        return;
    for (struct client *c = control->clients; c; c = c->next) {
        struct pending *p, *next;

        if (c->waiting == 0 || c->uid != g->uid || strcmp(c->job, g->job) != 0)
            continue;
        if (!body && g->status >= 0)
            body = body_of(c->user, g);
        for (p = pending_of(&control->pending, c); p; p = next) {
            next = pending_after(&control->pending, p);
            /* Any other piece is of a result that another rank has asked for again. */
            if (p->kind == PENDING_EXCHANGE && p->sequence == g->sequence &&
                (g->status < 0 || g->offset == p->offset))
                reply_piece(control, p, g, body);
        }
    }
    client_body_drop(body);
}

static void send_piece(struct control *control, uint32_t node, const Pwc__Gathered *piece)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;

    frame.body_case = PWC__PEER_FRAME__BODY_GATHERED;
    frame.gathered = (Pwc__Gathered *)(uintptr_t)piece;
    send_to(control, node, &frame);
}

/* Sends the same piece to each node that the job has ranks on. */
static void send_piece_to_all(struct control *control, const struct directory_job *job,
                              const Pwc__Gathered *piece)
{
    uint32_t at = 0, node;

    memset(control->sent, 0, control->node_count);
    while ((node = directory_next_node(job, &at, control->sent)) != DIRECTORY_NOWHERE)
        send_piece(control, node, piece);
}

static Pwc__Gathered piece_of(const struct directory_job *job, const struct directory_gather *g)
{
    Pwc__Gathered piece = PWC__GATHERED__INIT;

    piece.uid = job->uid;
    piece.job = (char *)(uintptr_t)job->name;
    piece.sequence = g->sequence;
    return piece;
}

/* Sends the result, in pieces, to node `to`, or (DIRECTORY_NOWHERE) to all nodes of the job. */
static void deliver(struct control *control, const struct directory_job *job,
                    const struct directory_gather *g, uint32_t to)
{
    uint64_t total = (uint64_t)g->length * job->size;
    Pwc__Gathered piece = piece_of(job, g);
    uint8_t bytes[PIECE];

    piece.data.data = bytes;
    do {
        uint64_t left = total - piece.offset;

        piece.data.len = left < PIECE ? left : PIECE;
        directory_gather_copy(g, piece.offset, bytes, piece.data.len);
        piece.last = piece.data.len == left;
        if (to == DIRECTORY_NOWHERE)
            send_piece_to_all(control, job, &piece);
        else
            send_piece(control, to, &piece);
        piece.offset += piece.data.len;
    } while (!piece.last);
}

/* Names the call in words: a call without data is a barrier. */
static const char *call_of(uint32_t length, char to[CALL_WORDS])
{
    snprintf(to, CALL_WORDS, "a barrier");
    if (length > 0)
        snprintf(to, CALL_WORDS, "an exchange of %u bytes", length);
    return to;
}

/* Writes which rank made the exchange fail, and how, where that is known. */
static void explain_failure(const struct directory_job *job, uint32_t sequence,
                            char why[FAILURE_TEXT_MAX])
{
    const struct directory_failure *f = directory_failure_of(job, sequence);
    char odd[CALL_WORDS], first[CALL_WORDS];

    why[0] = '\0';
    if (f && f->status == -EINVAL)
        snprintf(
            why, FAILURE_TEXT_MAX,
            "rank %u called %s, and a rank before it %s: have all ranks make the same calls in "
            "the same order",
            f->odd_rank, call_of(f->odd_length, odd), call_of(f->length, first));
    else if (f && f->status == -EHOSTDOWN && f->odd_rank < job->size)
        snprintf(why, FAILURE_TEXT_MAX,
                 "rank %u left, or its node cannot be reached, before it took part", f->odd_rank);
    else if (f && f->status == -ETIMEDOUT)
        snprintf(why, FAILURE_TEXT_MAX, "another rank has given it up before this one came");
}

static void send_failure(struct control *control, struct directory_job *job,
                         const struct directory_gather *g, int status, const char *why)
{
    Pwc__Gathered piece = piece_of(job, g);

    piece.status = status;
    piece.last = true;
    piece.why = (char *)(uintptr_t)why;
    send_piece_to_all(control, job, &piece);
}

static void fail_gather(struct control *control, struct directory_job *job,
                        struct directory_gather *g, int status)
{
    const struct directory_gather failed = {.sequence = g->sequence};
    char why[FAILURE_TEXT_MAX];

    directory_gather_fail(control->directory, job, g, status);
    explain_failure(job, failed.sequence, why);
    send_failure(control, job, &failed, status, why);
}

/* ---- at home --------------------------------------------------------------------------------- */

static void leave(struct control *control, const struct directory_id *id, uint32_t rank,
                  uint32_t node)
{
    struct directory_job *job;
    uint32_t failed;

    if (directory_detach(control->directory, id, rank, node, &job, &failed) < 0)
        return;
    team_home_rank_left(control, id, rank);
    for (uint32_t i = 0; job && i < DIRECTORY_OPEN_MAX; i++)
        if (failed & 1u << i)
            fail_gather(control, job, &job->gathers[i], -EHOSTDOWN);
}

/* Detaches the ranks of a node that `next` iterates over: all ranks, or those in doubt. */
static void leave_all(struct control *control, uint32_t node,
                      bool (*next)(const struct directory *d, uint32_t node, uint32_t *job_at,
                                   uint32_t *rank_at))
{
    uint32_t job = 0, rank = 0;

    while (next(control->directory, node, &job, &rank)) {
        const struct directory_job *j = &control->directory->jobs[job];
        char name[DIRECTORY_NAME_MAX];
        struct directory_id id = {.uid = j->uid, .job = name};

        memcpy(name, j->name, sizeof(name)); /* a copy, because the job may end with this rank */
        leave(control, &id, rank, node);
    }
}

/* After a reconnect, drops every rank that the node did not announce again: the rank left while
 * there was no link, or with an earlier process of that daemon. */
static void roll(struct control *control, uint32_t from)
{
    leave_all(control, from, directory_next_doubted);
}

static void answer(struct control *control, uint32_t to, Pwc__RankIs *is)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;

    frame.body_case = PWC__PEER_FRAME__BODY_RANK_IS;
    frame.rank_is = is;
    send_to(control, to, &frame);
}

void directory_client_answer(struct control *control, uint32_t to, uint64_t cookie, int status)
{
    Pwc__RankIs is = PWC__RANK_IS__INIT;

    is.cookie = cookie;
    is.status = status;
    answer(control, to, &is);
}

/* Gives a rank to a client of node `from`, which joins an open job. */
static void join(struct control *control, uint32_t from, const Pwc__RankAt *at)
{
    const struct directory_id id = {.uid = at->uid, .job = at->job};
    Pwc__RankIs is = PWC__RANK_IS__INIT;

    if (at->cookie == 0)
        return; /* nobody would get the rank */
    is.cookie = at->cookie;
    is.status = directory_join(control->directory, &id, from, at->engine, &is.rank);
    is.node = from;
    is.engine = at->engine;
    is.instance = directory_instance(control->directory, &id);
    is.uid = at->uid;
    if (is.status == 0)
        is.job = at->job;
    answer(control, from, &is);
}

static void rank_at(struct control *control, uint32_t from, const Pwc__RankAt *at)
{
    const struct directory_id id = {.uid = at->uid, .job = at->job};
    const struct directory_claim claim = {.rank = at->rank,
                                          .size = at->size,
                                          .node = from,
                                          .engine = at->engine,
                                          .instance = at->instance,
                                          .again = at->cookie == 0}; /* otherwise a Hello asks */
    Pwc__RankIs is = PWC__RANK_IS__INIT;
    int where;

    if (at->gone)
        leave(control, &id, at->rank, from);
    else
        is.status = directory_claim(control->directory, &id, &claim);
    if (at->cookie == 0)
        return;
    is.cookie = at->cookie;
    where = directory_where(control->directory, &id, at->rank, &is.engine);
    is.node = where < 0 ? from : (uint32_t)where;
    is.rank = at->rank;
    is.instance = directory_instance(control->directory, &id);
    answer(control, from, &is);
}

static void where_is(struct control *control, uint32_t from, const Pwc__WhereIs *question)
{
    const struct directory_id id = {.uid = question->uid, .job = question->job};
    Pwc__RankIs is = PWC__RANK_IS__INIT;
    int node = directory_where(control->directory, &id, question->rank, &is.engine);

    is.cookie = question->cookie;
    is.status = node < 0 ? node : 0;
    is.node = node < 0 ? 0 : (uint32_t)node;
    answer(control, from, &is);
}

/* Ends an exchange that a rank no longer waits for: all ranks get an error that names the ranks
 * which are missing. */
static void give_up(struct control *control, const struct directory_id *id,
                    const struct directory_part *part)
{
    struct directory_job *job;
    struct directory_gather *g = directory_give_up(control->directory, id, part, &job);
    const struct directory_gather failed = {.sequence = part->sequence};
    char missing[FAILURE_TEXT_MAX / 2], why[FAILURE_TEXT_MAX];

    if (!g)
        return; /* the gather has ended, and its answer is on its way */
    directory_missing(job, g, missing, sizeof(missing));
    snprintf(why, sizeof(why), "rank %u has given up after its timeout; not there: %s", part->rank,
             missing);
    directory_gather_fail(control->directory, job, g, -ETIMEDOUT);
    send_failure(control, job, &failed, -ETIMEDOUT, why);
}

/* Takes a rank's contribution. A contribution that does not fit fails the exchange for all ranks,
 * because it could never be completed. A rank contributes again when its daemon or ours was
 * restarted: then its contribution is known already, and a result that was sent before is sent once
 * more. */
static void contribution(struct control *control, uint32_t from, const Pwc__Contribution *c)
{
    const struct directory_id id = {.uid = c->uid, .job = c->job};
    const struct directory_part part = {.rank = c->rank,
                                        .size = c->size,
                                        .sequence = c->sequence,
                                        .node = from,
                                        .data = c->data.data,
                                        .length = (uint32_t)c->data.len};
    struct directory_job *job;
    const struct directory_gather *kept = directory_kept(control->directory, &id, &part, &job);
    struct directory_gather *gather;
    Pwc__Gathered refusal = PWC__GATHERED__INIT;
    char why[FAILURE_TEXT_MAX];
    int rc;

    if (c->give_up) {
        give_up(control, &id, &part);
        return;
    }
    if (kept) {
        deliver(control, job, kept, from);
        return;
    }
    rc = directory_contribute(control->directory, &id, &part, &job, &gather);
    if (gather && gather->since_ns == 0)
        gather->since_ns = clock_ns();
    if (rc == 1) {
        directory_gather_note(control->directory, job, gather);
        deliver(control, job, gather, DIRECTORY_NOWHERE);
        directory_gather_keep(control->directory, job, gather);
    } else if (rc < 0 && gather && rc != -EALREADY) {
        fail_gather(control, job, gather, rc);
    } else if (rc < 0 && rc != -EALREADY) {
        refusal.uid = c->uid;
        refusal.job = c->job;
        refusal.sequence = c->sequence;
        refusal.status = rc;
        refusal.last = true;
        if (job) {
            explain_failure(job, c->sequence, why);
            refusal.why = why;
        }
        send_piece(control, from, &refusal);
    }
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Gives a rank back to the home, where no client waits for it: the client has ended, or its
 * question was sent twice and answered twice. */
static void give_back(struct control *control, uint32_t from, const Pwc__RankIs *is)
{
    const struct directory_id id = {.uid = is->uid, .job = is->job};
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__RankAt at = PWC__RANK_AT__INIT;

    if (!directory_name_valid(is->job) || home_of(control, &id) != from)
        return;
    for (const struct client *c = control->clients; c; c = c->next)
        if (c->rank == is->rank && c->uid == is->uid && strcmp(c->job, is->job) == 0)
            return;
    at.uid = is->uid;
    at.job = is->job;
    at.rank = is->rank;
    at.size = DIRECTORY_OPEN;
    at.gone = true;
    frame.body_case = PWC__PEER_FRAME__BODY_RANK_AT;
    frame.rank_at = &at;
    send_if_linked(control, from, &frame);
}

static void rank_is(struct control *control, uint32_t from, const Pwc__RankIs *is)
{
    struct pending *p = pending_find(&control->pending, is->cookie, 0);
    int status = directory_client_errno(is->status);

    if (!p && is->status == 0)
        give_back(control, from, is);
    /* Only the node that was asked may answer. */
    if (!p || p->node != from || is->status > 0)
        return;
    p->rank = is->rank;
    p->instance = is->instance;
    if (p->located)
        p->located(control, p, status, is->node, is->engine);
}

int directory_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame)
{
    switch (frame->body_case) {
    case PWC__PEER_FRAME__BODY_RANK_AT:
        if (!directory_name_valid(frame->rank_at->job))
            return -EPROTO;
        if (!frame->rank_at->gone && frame->rank_at->size == DIRECTORY_OPEN &&
            frame->rank_at->rank == DIRECTORY_ANY_RANK)
            join(control, from, frame->rank_at);
        else
            rank_at(control, from, frame->rank_at);
        return 0;
    case PWC__PEER_FRAME__BODY_ROLL:
        roll(control, from);
        return 0;
    case PWC__PEER_FRAME__BODY_WHERE_IS:
        if (!directory_name_valid(frame->where_is->job))
            return -EPROTO;
        where_is(control, from, frame->where_is);
        return 0;
    case PWC__PEER_FRAME__BODY_RANK_IS:
        rank_is(control, from, frame->rank_is);
        return 0;
    case PWC__PEER_FRAME__BODY_CONTRIBUTION:
        if (!directory_name_valid(frame->contribution->job))
            return -EPROTO;
        contribution(control, from, frame->contribution);
        return 0;
    case PWC__PEER_FRAME__BODY_GATHERED:
        if (!directory_name_valid(frame->gathered->job))
            return -EPROTO;
        gathered(control, from, frame->gathered);
        return 0;
    default:
        return -EPROTO;
    }
}

/* ---- for clients ----------------------------------------------------------------------------- */

static struct directory_id id_of(const struct client *c)
{
    return (struct directory_id){.uid = c->uid, .job = c->job};
}

static void announce(struct client *c, bool gone, uint64_t cookie)
{
    struct directory_id id = id_of(c);
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__RankAt at = PWC__RANK_AT__INIT;

    at.uid = c->uid;
    at.job = c->job;
    at.rank = c->rank;
    at.size = c->size;
    at.gone = gone;
    at.engine = c->worker->engine;
    at.instance = c->instance;
    at.cookie = cookie;
    frame.body_case = PWC__PEER_FRAME__BODY_RANK_AT;
    frame.rank_at = &at;
    send_if_linked(c->control, home_of(c->control, &id), &frame);
}

/* Notes the node that a pending request waits for. */
static uint32_t wait_for_home(struct client *c, uint64_t cookie)
{
    struct directory_id id = id_of(c);
    struct pending *p = pending_find(&c->control->pending, cookie, 0);
    uint32_t home = home_of(c->control, &id);

    if (p)
        p->node = home;
    return home;
}

void directory_client_attach(struct client *c, uint64_t cookie)
{
    (void)wait_for_home(c, cookie);
    announce(c, false, cookie);
}

void directory_client_announce(struct client *c)
{
    announce(c, false, 0);
}

void directory_client_detach(struct client *c)
{
    struct directory_id id = id_of(c);

    /* A home that is given up drops our ranks by itself. */
    if (peers_in_reach(c->control, home_of(c->control, &id)))
        announce(c, true, 0);
}

void directory_client_where(struct client *c, uint32_t rank, uint64_t cookie)
{
    struct control *control = c->control;
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__WhereIs question = PWC__WHERE_IS__INIT;

    question.cookie = cookie;
    question.uid = c->uid;
    question.job = c->job;
    question.rank = rank;
    frame.body_case = PWC__PEER_FRAME__BODY_WHERE_IS;
    frame.where_is = &question;
    send_to(control, wait_for_home(c, cookie), &frame);
}

static void fail_exchange(struct control *control, struct pending *p, int status)
{
    Pwc__Gathered failure = PWC__GATHERED__INIT;

    failure.sequence = p->sequence;
    failure.status = status;
    failure.last = true;
    reply_piece(control, p, &failure, NULL);
}

void directory_client_contribute(struct client *c, uint64_t cookie, const uint8_t *data,
                                 uint32_t length)
{
    struct pending *p = pending_find(&c->control->pending, cookie, PENDING_EXCHANGE);
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Contribution part = PWC__CONTRIBUTION__INIT;

    part.uid = c->uid;
    part.job = c->job;
    part.size = c->size;
    part.sequence = p->sequence;
    part.rank = c->rank;
    part.data.data = (uint8_t *)(uintptr_t)data;
    part.data.len = length;
    frame.body_case = PWC__PEER_FRAME__BODY_CONTRIBUTION;
    frame.contribution = &part;
    /* The contribution is not sent again when the link is up. */
    if (send_to(c->control, wait_for_home(c, cookie), &frame) < 0)
        fail_exchange(c->control, p, -ENOBUFS);
}

void directory_client_give_up(struct client *c, uint32_t sequence)
{
    struct directory_id id = id_of(c);
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Contribution part = PWC__CONTRIBUTION__INIT;

    part.uid = c->uid;
    part.job = c->job;
    part.size = c->size;
    part.sequence = sequence;
    part.rank = c->rank;
    part.give_up = true;
    frame.body_case = PWC__PEER_FRAME__BODY_CONTRIBUTION;
    frame.contribution = &part;
    send_if_linked(c->control, home_of(c->control, &id), &frame);
}

/* ---- links ----------------------------------------------------------------------------------- */

static void send_roll(struct control *control, uint32_t node)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Roll all = PWC__ROLL__INIT;

    frame.body_case = PWC__PEER_FRAME__BODY_ROLL;
    frame.roll = &all;
    send_if_linked(control, node, &frame);
}

void directory_client_node_up(struct control *control, uint32_t node)
{
    struct pending *p;

    directory_doubt(control->directory, node);
    for (struct client *c = control->clients; c; c = c->next) {
        struct directory_id id = id_of(c);

        if (c->state == CLIENT_SERVED && home_of(control, &id) == node)
            announce(c, false, 0);
    }
    /* A second answer finds no pending request. */
    for (uint32_t at = 0; (p = pending_next(&control->pending, &at)) != NULL;) {
        if (p->node != node)
            continue;
        if (p->kind == PENDING_ATTACH)
            announce(p->client, false, pending_cookie(&control->pending, p));
        else if (p->kind == PENDING_WHERE)
            directory_client_where(p->client, (uint32_t)p->peer,
                                   pending_cookie(&control->pending, p));
    }
    send_roll(control, node);
}

/* Dials the nodes that have ranks, which announce their ranks again over the new link. A node that
 * cannot be reached is given up, and its ranks leave. */
void directory_client_resume(struct control *control)
{
    const struct directory *d = control->directory;

    roll(control, control->node); /* this node's ranks were announced before */
    memset(control->sent, 0, control->node_count);
    for (uint32_t i = 0; i < DIRECTORY_JOBS_MAX; i++) {
        uint32_t at = 0, node;

        while (d->jobs[i].used &&
               (node = directory_next_node(&d->jobs[i], &at, control->sent)) != DIRECTORY_NOWHERE)
            if (node != control->node)
                send_roll(control, node); /* dials where there is no link */
    }
}

void directory_client_node_down(struct control *control, uint32_t node)
{
    struct pending *p;

    for (uint32_t at = 0; (p = pending_next(&control->pending, &at)) != NULL;)
        if (p->kind == PENDING_EXCHANGE && p->node == node)
            fail_exchange(control, p, -ECONNABORTED); /* the library asks again */
}

static void fail_waiting(struct control *control, uint32_t node)
{
    struct pending *p;

    for (uint32_t at = 0; (p = pending_next(&control->pending, &at)) != NULL;) {
        if (p->node != node)
            continue;
        if (p->located)
            p->located(control, p, -EHOSTDOWN, node, 0);
        else if (p->kind == PENDING_EXCHANGE)
            fail_exchange(control, p, -EHOSTDOWN);
    }
}

void directory_client_node_lost(struct control *control, uint32_t node)
{
    leave_all(control, node, directory_next_rank_of);
    fail_waiting(control, node);
}

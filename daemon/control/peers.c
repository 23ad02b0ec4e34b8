/* Owns the policy towards other nodes (peers.h). */
#include "peers.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#include "clock.h"
#include "control.h"
#include "jobs.h"
#include "link.h"

enum {
    STRANGERS_MAX = 16,
    RETRY_FIRST_MS = 20,
    RETRY_MAX_MS = 500,
    WAITING_MAX = 4096, /* frames for a node that is not linked yet */
    BACKLOG = 128,
};

enum peer_state {
    PEER_IDLE = 0,
    PEER_DIALLING,
    PEER_LINKED,
    PEER_LOST,
};

/* A frame that waits for a link. */
struct waiting_frame {
    struct waiting_frame *next;
    size_t size;
    uint8_t bytes[];
};

struct peer {
    struct control *control;
    uint32_t node;
    enum peer_state state;
    struct link *link; /* ready, or proven and about to be */
    struct link *dial; /* ours, not proven */
    uv_timer_t retry;
    uint32_t retry_ms;
    uint64_t deadline_ns; /* of being DIALLING */
    struct waiting_frame *waiting, **waiting_tail;
    uint32_t waiting_count;
    char reason[HANDSHAKE_TEXT_MAX];
    bool ended;          /* it said that it ends: that it is not there is no news */
    uint32_t unanswered; /* calls about its end that the progress thread has not come back from */
    uv_timer_t patience; /* with the progress thread, while there are */
    uint64_t cpu_ns;     /* of the progress thread, when the patience began */
    uint64_t rounds;     /* that it had gone by then */

    /* the engine's half, of this link */
    bool wanted;      /* the engine asked for it, now or before the link */
    bool offer_asked; /* a call is under way, or waits for ENGINE_OFFER_READY */
    bool offer_waits; /* for ENGINE_OFFER_READY */
    bool offer_sent;
    bool offer_come;
    bool up;
    struct engine_offer theirs;
    uint64_t link_number; /* answers of earlier links are void */
};

struct peers {
    struct control *control;
    uv_tcp_t server;
    struct peer **table;    /* by node; made when first needed */
    struct link *strangers; /* accepted, not proven */
    uint32_t stranger_count;
};

static void dial(struct peer *p);
static void offer_step(struct peer *p);
static const struct link_events events;

static void note_reason(struct peer *p, int status, const char *text)
{
    if (status == -ESHUTDOWN)
        p->ended = true;
    /* Each reason once: attempts repeat. */
    if (strcmp(p->reason, text) != 0)
        log_line(&p->control->log, p->ended ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
                 "node %u (%s:%s): %s", p->node, p->control->nodes.nodes[p->node].host,
                 p->control->nodes.nodes[p->node].port, text);
    snprintf(p->reason, sizeof(p->reason), "%s", text);
}

static struct peer *peer_of(struct control *control, uint32_t node)
{
    struct peers *peers = control->peers;
    struct peer *p;

    if (!peers || node >= control->engine.nodes || node == control->engine.node)
        return NULL;
    if (peers->table[node])
        return peers->table[node];
    p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->control = control;
    p->node = node;
    p->waiting_tail = &p->waiting;
    p->retry.data = p->patience.data = p;
    uv_timer_init(&control->loop, &p->retry);
    uv_timer_init(&control->loop, &p->patience);
    peers->table[node] = p;
    return p;
}

/* ---- frames that wait ------------------------------------------------------------------------ */

static void drop_waiting(struct peer *p)
{
    while (p->waiting) {
        struct waiting_frame *w = p->waiting;

        p->waiting = w->next;
        free(w);
    }
    p->waiting_tail = &p->waiting;
    p->waiting_count = 0;
}

static void send_waiting(struct peer *p)
{
    struct waiting_frame *w = p->waiting;

    p->waiting = NULL;
    p->waiting_tail = &p->waiting;
    p->waiting_count = 0;
    while (w) {
        struct waiting_frame *next = w->next;
        Pwc__PeerFrame *frame = pwc__peer_frame__unpack(NULL, w->size, w->bytes);

        if (frame && p->link)
            link_send(p->link, frame);
        else if (p->link) /* so that who waits for an answer is told */
            link_close(p->link, -ENOMEM, "there is no memory for what is to be said");
        if (frame)
            pwc__peer_frame__free_unpacked(frame, NULL);
        free(w);
        w = next;
    }
}

int peers_send(struct control *control, uint32_t node, const Pwc__PeerFrame *frame)
{
    struct peer *p = peer_of(control, node);
    struct waiting_frame *w;
    size_t size;

    if (!p || control->stopping)
        return 0;
    if (p->state == PEER_LINKED) {
        link_send(p->link, frame);
        return 0;
    }
    size = pwc__peer_frame__get_packed_size(frame);
    w = p->waiting_count < WAITING_MAX ? malloc(sizeof(*w) + size) : NULL;
    if (w) {
        *w = (struct waiting_frame){.size = size};
        pwc__peer_frame__pack(frame, w->bytes);
        *p->waiting_tail = w;
        p->waiting_tail = &w->next;
        p->waiting_count++;
    }
    dial(p);
    return w ? 0 : -ENOBUFS;
}

/* ---- a fabric that dies with its peer ----------------------------------------------------------
 */

/*
 * The provider does not survive the death of another process (shm, see configuration.md): nothing
 * that is under way would ever end. Our end ends it: every client learns it at once.
 */
static void end_with(struct peer *p, const char *why)
{
    log_line(&p->control->log, LOG_LEVEL_ERROR,
             "node %u has taken this node's fabric along: %s. This daemon ends", p->node, why);
    _exit(EXIT_FAILURE);
}

static void lost_patience(uv_timer_t *timer);

static uint64_t progress_rounds(const struct control *control)
{
    struct progress_stats stats;

    progress_stats(control->progress, &stats);
    return stats.heartbeat;
}

static void have_patience(struct peer *p)
{
    p->rounds = progress_rounds(p->control);
    p->cpu_ns = progress_cpu_ns(p->control->progress);
    uv_timer_start(&p->patience, lost_patience, p->control->config->peer_deadline_ms, 0);
}

/*
 * It spins in one call: no round has ended but the one that was under way. A thread that was
 * stopped, or had no processor, is given more time; and where it was us who were late, its answer
 * is there already.
 */
static void lost_patience(uv_timer_t *timer)
{
    struct peer *p = timer->data;
    uint64_t spun = progress_cpu_ns(p->control->progress) - p->cpu_ns;
    bool one_call = progress_rounds(p->control) - p->rounds <= 1;

    if (one_call && spun / 1000000 >= p->control->config->peer_deadline_ms / 4)
        end_with(p, "the provider does not come back from a call");
    have_patience(p);
}

static void end_heard(struct call *call)
{
    struct peer *p = call->owner;

    if (--p->unanswered == 0)
        uv_timer_stop(&p->patience);
    if (call->result == -EOWNERDEAD)
        end_with(p, "the provider completes nothing any more");
}

/* Its end, told to the engine: the last that is asked of the provider about it. */
static void tell_end(struct peer *p, struct call *call)
{
    call->peer.node = p->node;
    if (p->unanswered++ == 0 && !p->control->stopping)
        have_patience(p);
    call_post(p->control->progress, call);
}

/* ---- dialling -------------------------------------------------------------------------------- */

static void lose(struct peer *p)
{
    struct call *call = call_new(&p->control->target, CALL_PEER_LOST, p, end_heard);

    log_line(&p->control->log, p->ended ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING,
             "node %u is given up after %u ms: %s", p->node,
             (unsigned)p->control->config->peer_deadline_ms, p->reason);
    p->state = PEER_LOST;
    p->wanted = false;
    drop_waiting(p);
    if (call)
        tell_end(p, call);
    jobs_node_lost(p->control, p->node);
}

static void attempt_later(struct peer *p);

static void attempt(struct peer *p)
{
    struct control *control = p->control;
    const struct node_address *at = &control->nodes.nodes[p->node];
    int rc;

    if (p->dial || p->link || p->state != PEER_DIALLING)
        return;
    rc = link_dial(control, p->node, at->host, at->port, &events, p, &p->dial);
    if (rc < 0) {
        note_reason(p, rc, strerror(-rc));
        attempt_later(p);
    }
}

static void attempt_again(uv_timer_t *timer)
{
    attempt(timer->data);
}

static void dial(struct peer *p)
{
    if (p->state == PEER_DIALLING || p->state == PEER_LINKED || p->control->stopping)
        return;
    p->state = PEER_DIALLING;
    p->retry_ms = RETRY_FIRST_MS;
    p->deadline_ns = clock_ns() + p->control->config->peer_deadline_ms * UINT64_C(1000000);
    attempt(p);
}

/* An attempt has failed. */
static void attempt_later(struct peer *p)
{
    if (p->state != PEER_DIALLING || p->link || p->control->stopping)
        return;
    if (clock_ns() >= p->deadline_ns) {
        lose(p);
        return;
    }
    uv_timer_start(&p->retry, attempt_again, p->retry_ms, 0);
    p->retry_ms = 2 * p->retry_ms < RETRY_MAX_MS ? 2 * p->retry_ms : RETRY_MAX_MS;
}

/* ---- the engine's half ----------------------------------------------------------------------- */

static struct call *peer_call(struct peer *p, enum call_kind kind, void (*done)(struct call *call))
{
    struct call *call = call_new(&p->control->target, kind, p, done);

    if (call) {
        call->peer.node = p->node;
        call->cookie = p->link_number;
    } else {
        log_line(&p->control->log, LOG_LEVEL_ERROR, "out of memory: the link with node %u",
                 p->node);
    }
    return call;
}

static void upped(struct call *call)
{
    struct peer *p = call->owner;

    if (call->result == -EOWNERDEAD)
        end_with(p, "the provider completes nothing any more");
    if (call->cookie != p->link_number || call->result == 0)
        return;
    note_reason(p, call->result,
                call->result == -EAGAIN ? "the engine was not ready for the link"
                                        : "the engine refuses its offer");
    if (p->link)
        link_close(p->link, call->result, "the engine does not take the link");
}

static void go_up(struct peer *p)
{
    struct call *call;

    if (p->up || !p->offer_sent || !p->offer_come)
        return;
    call = peer_call(p, CALL_PEER_UP, upped);
    if (!call)
        return;
    p->up = true;
    p->wanted = false;
    call->peer.offer = p->theirs;
    call_post(p->control->progress, call);
}

static void send_offer(struct peer *p, const struct engine_offer *offer)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Offer packed = PWC__OFFER__INIT;

    packed.incarnation = offer->incarnation;
    packed.state_id = offer->state_id;
    packed.peer_state_id = offer->peer_state_id;
    packed.consumed = offer->consumed;
    packed.ring_address = offer->ring_address;
    packed.ring_key = offer->ring_key;
    packed.ring_bytes = offer->ring_bytes;
    packed.flags = offer->flags;
    packed.address.data = (uint8_t *)(uintptr_t)offer->address.bytes;
    packed.address.len = offer->address.size;
    frame.body_case = PWC__PEER_FRAME__BODY_OFFER;
    frame.offer = &packed;
    p->offer_sent = true;
    link_send(p->link, &frame);
}

static void offered(struct call *call)
{
    struct peer *p = call->owner;

    if (call->cookie != p->link_number || p->state != PEER_LINKED)
        return;
    if (call->result == -EAGAIN) {
        p->offer_waits = true;
        return;
    }
    if (call->result < 0) {
        note_reason(p, call->result, "this node's engine has no ledger for it: raise ledger-bytes");
        link_close(p->link, call->result, "no ledger for this link");
        return;
    }
    send_offer(p, &call->peer.offer);
    go_up(p);
}

/* Asks for our offer when either side wants the link. */
static void offer_step(struct peer *p)
{
    struct call *call;

    if (p->state != PEER_LINKED || p->offer_asked || (!p->wanted && !p->offer_come))
        return;
    call = peer_call(p, CALL_OFFER, offered);
    if (!call)
        return;
    p->offer_asked = true;
    p->offer_waits = false;
    call_post(p->control->progress, call);
}

static int take_offer(struct peer *p, const Pwc__Offer *o)
{
    if (p->offer_come || o->address.len > FABRIC_ADDRESS_MAX)
        return -EPROTO;
    p->theirs = (struct engine_offer){
        .node = p->node,
        .incarnation = o->incarnation,
        .state_id = o->state_id,
        .peer_state_id = o->peer_state_id,
        .consumed = o->consumed,
        .ring_address = o->ring_address,
        .ring_key = o->ring_key,
        .ring_bytes = o->ring_bytes,
        .flags = o->flags,
        .address.size = (uint32_t)o->address.len,
    };
    if (o->address.len > 0)
        memcpy(p->theirs.address.bytes, o->address.data, o->address.len);
    p->offer_come = true;
    offer_step(p);
    go_up(p);
    return 0;
}

static void engine_down(struct peer *p)
{
    struct call *call;

    if (p->offer_asked) {
        call = peer_call(p, CALL_PEER_DOWN, end_heard);
        if (call)
            tell_end(p, call);
    }
    p->offer_asked = p->offer_waits = p->offer_sent = p->offer_come = p->up = false;
    p->link_number++;
}

void peers_notice(struct control *control, const struct engine_notice *notice)
{
    struct peer *p = peer_of(control, notice->node);

    if (!p)
        return;
    switch (notice->kind) {
    case ENGINE_WANT_PEER:
        if (!p->up) { /* else it asked before it was */
            p->wanted = true;
            dial(p);
            offer_step(p);
        }
        break;
    case ENGINE_OFFER_READY:
        if (p->offer_waits) {
            p->offer_asked = p->offer_waits = false;
            p->wanted = true;
            offer_step(p);
        }
        break;
    case ENGINE_PEER_BROKEN:
        note_reason(p, notice->status,
                    notice->status < 0 ? strerror(-notice->status) : "its fabric failed");
        if (p->link)
            link_close(p->link, notice->status, "the fabric lost the peer");
        break;
    default:
        break;
    }
}

/* ---- links ----------------------------------------------------------------------------------- */

static void stranger_remove(struct peers *peers, struct link *link)
{
    for (struct link **at = &peers->strangers; *at; at = &(*at)->next)
        if (*at == link) {
            *at = link->next;
            peers->stranger_count--;
            return;
        }
}

static int duplicate(const struct link *link, char *text, size_t size)
{
    snprintf(text, size,
             "node %u is live already, as another daemon: start one of the two with another --node",
             link->handshake.node);
    return -EADDRINUSE;
}

/* The other end is authentic: is this the connection that stays? */
static int link_proven(struct link *link, char *text, size_t text_size)
{
    struct control *control = link->control;
    struct peer *p = peer_of(control, link->handshake.node);
    uint32_t self = control->engine.node;
    struct handshake_rival rival;

    if (!p)
        return -ENOMEM;
    if (p->link) {
        bool ours = p->link->handshake.role == HANDSHAKE_INITIATOR;

        rival = (struct handshake_rival){.initiator = ours ? self : p->node,
                                         .boot_id = p->link->handshake.boot_id};
    } else if (p->dial && p->dial != link) {
        rival = (struct handshake_rival){.initiator = self};
    } else {
        goto take;
    }
    switch (handshake_choose(&link->handshake, &rival)) {
    case HANDSHAKE_DUPLICATE:
        log_line(&control->log, LOG_LEVEL_ERROR, "two daemons claim node number %u", p->node);
        return duplicate(link, text, text_size);
    case HANDSHAKE_KEEP:
        snprintf(text, text_size, "node %u's own connection stays", self);
        return -EALREADY;
    case HANDSHAKE_TAKE:
        break;
    }
    if (p->link)
        link_close(p->link, -EALREADY, "replaced by a newer connection");
    if (p->dial && p->dial != link)
        link_close(p->dial, -EALREADY, "the other node's connection stays");
take:
    if (p->dial == link)
        p->dial = NULL;
    else
        stranger_remove(control->peers, link);
    link->owner = p;
    p->link = link;
    uv_timer_stop(&p->retry);
    return 0;
}

static void link_ready(struct link *link)
{
    struct peer *p = link->owner;

    p->state = PEER_LINKED;
    p->reason[0] = '\0';
    p->ended = false;
    log_line(&p->control->log, LOG_LEVEL_INFO, "node %u is linked", p->node);
    /* Who our ranks are goes before what they ask. */
    jobs_node_up(p->control, p->node);
    send_waiting(p);
    offer_step(p);
}

static int link_frame(struct link *link, const Pwc__PeerFrame *frame)
{
    struct peer *p = link->owner;

    if (frame->body_case == PWC__PEER_FRAME__BODY_OFFER)
        return take_offer(p, frame->offer);
    if (frame->body_case == PWC__PEER_FRAME__BODY_REFUSAL) {
        link_close(link, -ESHUTDOWN, "it ends");
        return 0;
    }
    return jobs_frame(p->control, p->node, frame);
}

static void linked_closed(struct peer *p, int status, const char *text)
{
    bool was_linked = p->state == PEER_LINKED;

    p->link = NULL;
    engine_down(p);
    if (p->control->stopping)
        return;
    if (was_linked) {
        note_reason(p, status, text);
        p->state = PEER_IDLE;
        jobs_node_down(p->control, p->node);
        dial(p);
    } else {
        attempt_later(p);
    }
}

static void link_closed(struct link *link, int status, const char *text)
{
    struct control *control = link->control;
    struct peer *p = link->owner;

    if (p && p->link == link) {
        linked_closed(p, status, text);
    } else if (p) {
        p->dial = NULL;
        /* Giving way to the other's connection is no failure. */
        if (status != -EALREADY && !control->stopping)
            note_reason(p, status, text);
        attempt_later(p);
    } else {
        stranger_remove(control->peers, link);
        if (status == UV_EOF && link->state != LINK_PROVING && !link->handshake.text[0])
            log_hostile(&control->log, "a connection from elsewhere said nothing");
        else if (status != -EALREADY)
            log_hostile(&control->log, "a connection from elsewhere: %s", text);
    }
}

static const struct link_events events = {
    .proven = link_proven, .ready = link_ready, .frame = link_frame, .closed = link_closed};

static void on_connection(uv_stream_t *server, int status)
{
    struct peers *peers = server->data;
    struct link *link;

    if (status < 0 || link_accept(peers->control, server, &events, &link) < 0)
        return;
    link->next = peers->strangers;
    peers->strangers = link;
    peers->stranger_count++;
    if (peers->stranger_count > STRANGERS_MAX)
        link_close(link, -EUSERS, "too many connections that have not proven themselves");
}

/* ---- opening and closing --------------------------------------------------------------------- */

static int listen_at(struct peers *peers, const struct node_address *at, char *why, size_t why_size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(at->host, at->port, &hints, &found);

    if (rc != 0) {
        snprintf(why, why_size, "node %u is %s:%s in the list of nodes: %s",
                 peers->control->engine.node, at->host, at->port, gai_strerror(rc));
        return -EADDRNOTAVAIL;
    }
    rc = uv_tcp_bind(&peers->server, found->ai_addr, 0);
    freeaddrinfo(found);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&peers->server, BACKLOG, on_connection);
    if (rc == -EADDRINUSE)
        snprintf(why, why_size,
                 "%s:%s is taken: does another daemon run as node %u? give one another --node",
                 at->host, at->port, peers->control->engine.node);
    else if (rc < 0)
        snprintf(why, why_size, "cannot listen at %s:%s, which is node %u in the list of nodes: %s",
                 at->host, at->port, peers->control->engine.node, uv_strerror(rc));
    return rc;
}

int peers_open(struct control *control, char *why, size_t why_size)
{
    struct peers *peers = calloc(1, sizeof(*peers));

    if (!peers)
        return -ENOMEM;
    control->peers = peers;
    peers->control = control;
    peers->table = calloc(control->engine.nodes, sizeof(struct peer *));
    uv_tcp_init(&control->loop, &peers->server);
    peers->server.data = peers;
    if (!peers->table)
        return -ENOMEM;
    return listen_at(peers, &control->nodes.nodes[control->engine.node], why, why_size);
}

static void say_goodbye(struct link *link)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Refusal refusal = PWC__REFUSAL__INIT;

    refusal.status = -ESHUTDOWN;
    refusal.text = "this daemon ends";
    frame.body_case = PWC__PEER_FRAME__BODY_REFUSAL;
    frame.refusal = &refusal;
    link_send(link, &frame);
}

void peers_close(struct control *control)
{
    struct peers *peers = control->peers;

    if (!peers)
        return;
    uv_close((uv_handle_t *)&peers->server, NULL);
    while (peers->strangers)
        link_close(peers->strangers, -ESHUTDOWN, "this daemon ends");
    for (uint32_t i = 0; peers->table && i < control->engine.nodes; i++) {
        struct peer *p = peers->table[i];

        if (!p)
            continue;
        if (p->link)
            say_goodbye(p->link);
        if (p->link)
            link_close(p->link, -ESHUTDOWN, "this daemon ends");
        if (p->dial)
            link_close(p->dial, -ESHUTDOWN, "this daemon ends");
        uv_close((uv_handle_t *)&p->retry, NULL);
        uv_close((uv_handle_t *)&p->patience, NULL);
    }
}

void peers_free(struct control *control)
{
    struct peers *peers = control->peers;

    if (!peers)
        return;
    for (uint32_t i = 0; peers->table && i < control->engine.nodes; i++) {
        if (peers->table[i])
            drop_waiting(peers->table[i]);
        free(peers->table[i]);
    }
    links_free(control); /* a dial that the end came before */
    free(peers->table);
    free(peers);
    control->peers = NULL;
}

bool peers_in_reach(const struct control *control, uint32_t node)
{
    const struct peer *p = control->peers ? control->peers->table[node] : NULL;

    return node == control->engine.node ||
           (p && (p->state == PEER_LINKED || p->state == PEER_DIALLING));
}

const char *peers_state(const struct control *control, uint32_t node, const char **reason)
{
    static const char *const names[] = {"idle", "dialling", "linked", "lost"};
    const struct peer *p = control->peers ? control->peers->table[node] : NULL;

    *reason = p ? p->reason : "";
    if (node == control->engine.node)
        return "self";
    return p ? names[p->state] : names[PEER_IDLE];
}

/* Owns the decisions about links with other nodes (peers.h). Thread: control. */
#include "daemon/control/nodes/peers.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>
#include "shm_ring/clock.h"
#include "daemon/control/clients/accepts.h"
#include "daemon/control/control.h"
#include "daemon/control/nodes/peers_private.h"

enum {
    STRANGERS_MIN = 16, /* bounds of unproven connections, between which the number of nodes
                         * decides */
    STRANGERS_MAX = 1024,
    RETRY_FIRST_MS = 20,
    RETRY_MAX_MS = 500,
    SHORT_MS = 100,     /* a link that ends sooner may end so again */
    WAITING_MAX = 4096, /* frames for a node that is not linked yet */
    BACKLOG = STRANGERS_MAX,
    ACCEPT_AGAIN_MS = 100,
};

/* A frame that waits for a link. */
struct waiting_frame {
    struct waiting_frame *next;
    size_t size;
    uint8_t bytes[];
};

struct peers {
    struct control *control;
    const struct peers_events *events;
    uv_tcp_t server;
    uv_timer_t later;       /* runs while a connection waits to be accepted */
    struct peer **table;    /* by node; an entry is made when it is first needed */
    struct link *strangers; /* connections that are accepted and not proven */
    uint32_t stranger_count;
    struct accepts accepts;
};

static const struct link_events link_events;
static void accept_later(uv_timer_t *timer);

void peer_note_reason(struct peer *p, int status, const char *text)
{
    struct log_subject about = log_node(p->node);

    if (status == -ESHUTDOWN)
        p->ended = true;
    /* Log a reason once, because attempts repeat. */
    if (strcmp(p->reason, text) != 0)
        log_about(&p->control->log, p->ended ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, &about,
                  "node %u (%s:%s): %s", p->node, p->control->nodes.nodes[p->node].host,
                  p->control->nodes.nodes[p->node].port, text);
    snprintf(p->reason, sizeof(p->reason), "%s", text);
}

static struct peer *peer_of(struct control *control, uint32_t node)
{
    struct peers *peers = control->peers;
    struct peer *p;

    if (!peers || node >= control->node_count)
        return NULL;
    if (peers->table[node])
        return peers->table[node];
    p = calloc(1, sizeof(*p));
    if (!p)
        return NULL;
    p->control = control;
    p->node = node;
    p->waiting_tail = &p->waiting;
    p->retry.data = p;
    uv_timer_init(&control->loop, &p->retry);
    if (node == control->node) {
        p->state = PEER_LINKED;
        p->engines = control->worker_count;
    }
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
        else if (p->link) /* then the requests that wait for an answer fail */
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
    peer_dial(p);
    return w ? 0 : -ENOBUFS;
}

void peers_send_now(struct control *control, uint32_t node, const Pwc__PeerFrame *frame)
{
    struct peer *p = peer_of(control, node);

    if (!p || control->stopping)
        return;
    if (p->state == PEER_LINKED)
        link_send(p->link, frame);
    else
        peer_dial(p);
}

/* Reports the number of linked nodes to the service manager. */
static void links_changed(struct control *control)
{
    uint32_t linked = 0;

    for (uint32_t i = 0; i < control->node_count; i++) {
        const struct peer *p = control->peers->table[i];

        linked += i != control->node && p && p->state == PEER_LINKED;
    }
    service_links_changed(control, linked);
}

/* ---- dialling -------------------------------------------------------------------------------- */

static void lose(struct peer *p)
{
    struct log_subject about = log_node(p->node);

    log_about(&p->control->log, p->ended ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, &about,
              "node %u is given up after %u ms: %s", p->node,
              (unsigned)p->control->config->peer_deadline_ms, p->reason);
    p->state = PEER_LOST;
    drop_waiting(p);
    associations_lost(p);
    p->control->peers->events->lost(p->control, p->node);
}

void peer_give_up(struct peer *p, const char *why)
{
    if (p->state == PEER_LOST)
        return; /* the node is given up already */
    if (p->state == PEER_LINKED)
        peer_note_reason(p, -ETIMEDOUT, why);
    p->state = PEER_LOST; /* so that the closed link is not dialled again */
    links_changed(p->control);
    if (p->link)
        link_close(p->link, -ETIMEDOUT, p->reason);
    if (p->dial)
        link_close(p->dial, -ETIMEDOUT, p->reason);
    uv_timer_stop(&p->retry);
    lose(p); /* a frame to one of the node's ranks that have not left yet dials the node anew */
}

static void attempt_later(struct peer *p);

static void attempt(struct peer *p)
{
    struct control *control = p->control;
    const struct node_address *at = &control->nodes.nodes[p->node];
    int rc;

    if (p->dial || p->link || p->state != PEER_DIALLING)
        return;
    rc = link_dial(control, p->node, at->host, at->port, &link_events, p, &p->dial);
    if (rc < 0) {
        peer_note_reason(p, rc, strerror(-rc));
        attempt_later(p);
    }
}

static void attempt_again(uv_timer_t *timer)
{
    attempt(timer->data);
}

static void begin_to_dial(struct peer *p)
{
    p->state = PEER_DIALLING;
    p->retry_ms = RETRY_FIRST_MS;
    p->deadline_ns = clock_ns() + p->control->config->peer_deadline_ms * UINT64_C(1000000);
}

void peer_dial(struct peer *p)
{
    if (p->state == PEER_DIALLING || p->state == PEER_LINKED || p->control->stopping)
        return;
    begin_to_dial(p);
    attempt(p);
}

static uint32_t longer(uint32_t pause_ms)
{
    return 2 * pause_ms < RETRY_MAX_MS ? 2 * pause_ms : RETRY_MAX_MS;
}

/* Dials again after a link has ended: at once, or, after short links in a row, after pauses that
 * grow. An engine without memory for the link ends it each time. */
static void dial_again(struct peer *p)
{
    bool was_short = clock_ns() - p->linked_ns < SHORT_MS * UINT64_C(1000000);

    p->pause_ms = !was_short ? 0 : p->pause_ms > 0 ? longer(p->pause_ms) : RETRY_FIRST_MS;
    begin_to_dial(p);
    if (p->pause_ms > 0)
        uv_timer_start(&p->retry, attempt_again, p->pause_ms, 0);
    else
        attempt(p);
}

/* Dials again later, or gives the node up, after an attempt to connect has failed. */
static void attempt_later(struct peer *p)
{
    if (p->state != PEER_DIALLING || p->link || p->control->stopping)
        return;
    if (clock_ns() >= p->deadline_ns) {
        lose(p);
        return;
    }
    uv_timer_start(&p->retry, attempt_again, p->retry_ms, 0);
    p->retry_ms = longer(p->retry_ms);
}

void peers_notice(struct worker *worker, const struct engine_notice *notice)
{
    uint32_t nodes = worker->control->node_count;
    struct peer *p = peer_of(worker->control, notice->peer % nodes);

    if (p && notice->peer != worker->number)
        association_notice(p, worker, notice->peer / nodes, notice);
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

/* The other end is authentic. Decides which of two connections stays. */
static int link_proven(struct link *link, char *text, size_t text_size)
{
    struct control *control = link->control;
    struct peer *p = peer_of(control, link->handshake.node);
    uint32_t self = control->node;
    struct handshake_rival rival;
    struct log_subject about;

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
    /* Where the earlier connection stays, a frame shows whether its other end is gone. */
    switch (handshake_choose(&link->handshake, &rival)) {
    case HANDSHAKE_DUPLICATE:
        about = log_node(p->node);
        log_about(&control->log, LOG_LEVEL_ERROR, &about, "two daemons claim node number %u",
                  p->node);
        associations_probe(p);
        return duplicate(link, text, text_size);
    case HANDSHAKE_KEEP:
        if (p->link)
            associations_probe(p);
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

/* Forgives the strangers' debt when a node has proven itself, so that nodes that start together do
 * not wait for each other. */
static void let_strangers_in(struct peers *peers)
{
    account_forgive(&peers->control->strangers);
    peers->accepts.count = 0;
    if (uv_is_active((uv_handle_t *)&peers->later))
        uv_timer_start(&peers->later, accept_later, 0, 0);
}

static void link_ready(struct link *link)
{
    struct peer *p = link->owner;
    struct log_subject about = log_node(p->node);
    struct account *before = account_begin(p->control, NULL);

    let_strangers_in(p->control->peers);
    p->state = PEER_LINKED;
    p->linked_ns = clock_ns();
    p->engines = link->handshake.engines;
    p->reason[0] = '\0';
    p->ended = false;
    links_changed(p->control);
    log_about(&p->control->log, LOG_LEVEL_INFO, &about, "node %u is linked", p->node);
    /* Announce our ranks first, and then send the questions about them. */
    p->control->peers->events->up(p->control, p->node);
    send_waiting(p);
    associations_linked(p);
    account_end(p->control, before);
}

static int link_frame(struct link *link, const Pwc__PeerFrame *frame)
{
    struct peer *p = link->owner;

    if (frame->body_case == PWC__PEER_FRAME__BODY_OFFER)
        return associations_offer(p, frame->offer);
    if (frame->body_case == PWC__PEER_FRAME__BODY_PING)
        return associations_ping(p, frame->ping);
    if (frame->body_case == PWC__PEER_FRAME__BODY_REFUSAL) {
        link_close(link, -ESHUTDOWN, "it ends");
        return 0;
    }
    return p->control->peers->events->frame(p->control, p->node, frame);
}

static void linked_closed(struct peer *p, int status, const char *text)
{
    bool was_linked = p->state == PEER_LINKED;

    p->link = NULL;
    associations_down(p);
    if (p->control->stopping)
        return;
    if (was_linked) {
        peer_note_reason(p, status, text);
        dial_again(p);
        links_changed(p->control);
        p->control->peers->events->down(p->control, p->node);
    } else {
        attempt_later(p);
    }
}

static void link_closed(struct link *link, int status, const char *text)
{
    struct control *control = link->control;
    enum log_source source = LOG_SOURCE_NODE;
    struct peer *p = link->owner;

    if (p && p->link == link) {
        linked_closed(p, status, text);
    } else if (p) {
        p->dial = NULL;
        /* A connection that is closed in favour of the other side's is no failure. */
        if (status != -EALREADY && !control->stopping)
            peer_note_reason(p, status, text);
        attempt_later(p);
    } else {
        stranger_remove(control->peers, link);
        if (status == UV_EOF || status == UV_ECONNRESET)
            source = LOG_SOURCE_LEFT;
        if (status != -EALREADY)
            log_hostile(&control->log, source, NULL, "a connection from elsewhere: %s", text);
    }
}

static const struct link_events link_events = {
    .proven = link_proven, .ready = link_ready, .frame = link_frame, .closed = link_closed};

/* How many connections may be unproven at once. All nodes may connect at the same time when a job
 * starts. */
static uint32_t strangers_max(const struct control *control)
{
    uint32_t most = 2 * control->node_count;

    return most < STRANGERS_MIN ? STRANGERS_MIN : most < STRANGERS_MAX ? most : STRANGERS_MAX;
}

static void accept_stranger(struct peers *peers)
{
    struct link *link;
    int rc = link_accept(peers->control, (uv_stream_t *)&peers->server, &link_events, &link);

    if (rc == -ENOMEM) /* libuv keeps this connection, and accepts no other one before */
        uv_timer_start(&peers->later, accept_later, ACCEPT_AGAIN_MS, 0);
    if (rc < 0)
        return;
    link->next = peers->strangers;
    peers->strangers = link;
    peers->stranger_count++;
    /* Close the oldest one, so that silent connections do not keep others out. */
    if (peers->stranger_count > strangers_max(peers->control)) {
        while (link->next)
            link = link->next;
        link_close(link, -EUSERS, "too many connections that have not proven themselves");
    }
}

/* Accepts a connection now, or later, where strangers have used their share of this thread or of
 * this millisecond. Until then libuv accepts no other one. */
static void accept_in_turn(struct peers *peers)
{
    struct control *control = peers->control;
    uint64_t wait_ms = account_wait_ms(&control->strangers);
    struct account *before;

    if (wait_ms == 0 && !accepts_more(&peers->accepts, uv_now(&control->loop)))
        wait_ms = 1;
    if (wait_ms > 0) {
        uv_timer_start(&peers->later, accept_later, wait_ms, 0);
        return;
    }
    peers->accepts.count++;
    before = account_begin(control, &control->strangers);
    accept_stranger(peers);
    account_end(control, before);
}

static void accept_later(uv_timer_t *timer)
{
    accept_in_turn(timer->data);
}

static void on_connection(uv_stream_t *server, int status)
{
    if (status == 0)
        accept_in_turn(server->data);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static int listen_at(struct peers *peers, const struct node_address *at, char *why, size_t why_size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(at->host, at->port, &hints, &found);

    if (rc != 0) {
        snprintf(why, why_size, "node %u is %s:%s in the list of nodes: %s", peers->control->node,
                 at->host, at->port, gai_strerror(rc));
        return -EADDRNOTAVAIL;
    }
    rc = uv_tcp_bind(&peers->server, found->ai_addr, 0);
    freeaddrinfo(found);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&peers->server, BACKLOG, on_connection);
    if (rc == -EADDRINUSE)
        snprintf(why, why_size,
                 "%s:%s is taken: does another daemon run as node %u? give one another --node",
                 at->host, at->port, peers->control->node);
    else if (rc < 0)
        snprintf(why, why_size, "cannot listen at %s:%s, which is node %u in the list of nodes: %s",
                 at->host, at->port, peers->control->node, uv_strerror(rc));
    return rc;
}

int peers_open(struct control *control, const struct peers_events *events, char *why,
               size_t why_size)
{
    struct peers *peers = calloc(1, sizeof(*peers));

    if (!peers)
        return -ENOMEM;
    control->peers = peers;
    peers->control = control;
    peers->events = events;
    peers->table = calloc(control->node_count, sizeof(struct peer *));
    uv_tcp_init(&control->loop, &peers->server);
    uv_timer_init(&control->loop, &peers->later);
    peers->server.data = peers->later.data = peers;
    if (!peers->table)
        return -ENOMEM;
    return control->node_count == 1
               ? 0
               : listen_at(peers, &control->nodes.nodes[control->node], why, why_size);
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
    uv_close((uv_handle_t *)&peers->later, NULL);
    while (peers->strangers)
        link_close(peers->strangers, -ESHUTDOWN, "this daemon ends");
    for (uint32_t i = 0; peers->table && i < control->node_count; i++) {
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
        associations_close(p);
    }
}

void peers_free(struct control *control)
{
    struct peers *peers = control->peers;

    if (!peers)
        return;
    for (uint32_t i = 0; peers->table && i < control->node_count; i++) {
        if (peers->table[i]) {
            drop_waiting(peers->table[i]);
            associations_free(peers->table[i]);
        }
        free(peers->table[i]);
    }
    links_free(control); /* also frees dials that were under way */
    free(peers->table);
    free(peers);
    control->peers = NULL;
}

bool peers_in_reach(const struct control *control, uint32_t node)
{
    const struct peer *p = control->peers ? control->peers->table[node] : NULL;

    return node == control->node || (p && (p->state == PEER_LINKED || p->state == PEER_DIALLING));
}

const char *peers_state(const struct control *control, uint32_t node, const char **reason)
{
    static const char *const names[] = {"idle", "dialling", "linked", "lost"};
    const struct peer *p = control->peers ? control->peers->table[node] : NULL;

    *reason = p ? p->reason : "";
    if (node == control->node)
        return "self";
    return p ? names[p->state] : names[PEER_IDLE];
}

/*
 * Owns associations. An association brings one of our engines and one other engine to the point
 * where their fabrics can connect: both engines send an offer with addresses and keys. Each pair of
 * engines that wants to exchange operations has an association.
 *
 *     our engine wants it --+
 *                           +--> our offer is asked for --> sent ---+
 *     their offer comes ----+                                       +--> up
 *                           +---------------------------------------+
 *
 * Offers travel over the link with the node, and an association goes down with this link. Two
 * siblings (engines of this node) have no link: each has an association with the other. Their
 * offers are passed by calls, and both associations end together.
 *
 * Thread: control.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "daemon/control/nodes/peer_ping.h"
#include "daemon/control/control.h"
#include "daemon/control/nodes/peers_private.h"
#include "daemon/control/threads/spin_watch.h"

struct association {
    struct association *next; /* in the peer's list */
    struct peer *peer;
    struct worker *worker;  /* the worker of our engine */
    uint32_t engine;        /* the other engine, counted from 0 on its node */
    uint32_t number;        /* the other engine's number, as our engine uses it */
    uint32_t unanswered;    /* calls about the association's end that have not returned */
    uv_timer_t patience;    /* runs while there are such calls: bounds how long one may take */
    struct spin_watch spin; /* watches the progress thread meanwhile */
    bool wanted;            /* the engine asked for a link, now or before there was one */
    bool offer_asked;       /* our engine was asked for an offer; it may answer only with
                             * ENGINE_OFFER_READY */
    bool offer_waits;       /* our engine will give an offer after ENGINE_OFFER_READY */
    bool offer_sent;
    bool offer_come;
    bool up;
    struct engine_offer theirs;
    uint64_t link_number; /* number of the link: answers that belong to an earlier link are
                           * ignored */
    struct peer_ping ping;
};

static bool is_sibling(const struct association *a)
{
    return a->peer->node == a->peer->control->node;
}

static void send_ping(void *context, Pwc__Ping *ping);

static struct association *association_of(struct peer *p, struct worker *worker, uint32_t engine)
{
    struct association *a = p->associations;

    while (a && (a->worker != worker || a->engine != engine))
        a = a->next;
    if (a)
        return a;
    a = calloc(1, sizeof(*a));
    if (!a)
        return NULL;
    a->peer = p;
    a->worker = worker;
    a->engine = engine;
    a->number = nodes_number(p->control->node_count, p->node, engine);
    peer_ping_init(&a->ping, worker, a->number, send_ping, a);
    a->patience.data = a;
    uv_timer_init(&p->control->loop, &a->patience);
    a->next = p->associations;
    p->associations = a;
    return a;
}

/* The sibling's association with our engine, where both engines are this node's. */
static struct association *twin_of(const struct association *a)
{
    return association_of(a->peer, &a->peer->control->workers[a->engine], a->worker->engine);
}

/* ---- signs of life ----------------------------------------------------------------------------
 */

static void send_ping(void *context, Pwc__Ping *ping)
{
    struct association *a = context, *twin;
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;

    if (is_sibling(a)) {
        twin = twin_of(a);
        if (twin)
            peer_ping_take(&twin->ping, ping);
        return;
    }
    if (!a->peer->link)
        return;
    ping->engine = a->worker->engine;
    ping->peer_engine = a->engine;
    frame.body_case = PWC__PEER_FRAME__BODY_PING;
    frame.ping = ping;
    link_send(a->peer->link, &frame);
}

/* Finds the association that a frame from the other node names. */
static int named(struct peer *p, uint32_t theirs, uint32_t ours, struct association **out)
{
    if (theirs >= p->engines || ours >= p->control->worker_count)
        return -EPROTO;
    *out = association_of(p, &p->control->workers[ours], theirs);
    return *out ? 0 : -ENOMEM;
}

int associations_ping(struct peer *p, const Pwc__Ping *ping)
{
    struct association *a;
    int rc = named(p, ping->engine, ping->peer_engine, &a);

    if (rc == 0)
        peer_ping_take(&a->ping, ping);
    return rc;
}

void associations_probe(struct peer *p)
{
    struct association *a = association_of(p, &p->control->workers[0], 0);

    if (a)
        peer_ping_ask(&a->ping, 0);
}

/* ---- a fabric that dies with its peer ----------------------------------------------------------
 */

/* Ends this daemon when the provider has not survived the death of another process (shm, see
 * configuration.md). Nothing under way would ever end, but so every client learns of it at once. */
static void end_with(const struct association *a, const char *why)
{
    struct log_subject about = log_node(a->peer->node);

    log_about(&a->peer->control->log, LOG_LEVEL_ERROR, &about,
              "node %u has taken this node's fabric along: %s. This daemon ends", a->peer->node,
              why);
    _exit(EXIT_FAILURE);
}

static void lost_patience(uv_timer_t *timer);

/* Counts the rounds and commands of the progress thread: while the count grows, no call spins. */
static uint64_t progress_done(const struct association *a)
{
    struct progress_stats stats;

    progress_stats(a->worker->progress, &stats);
    return stats.rounds + atomic_load_explicit(&a->worker->counters.calls, memory_order_relaxed);
}

static void look_again(struct association *a)
{
    uv_timer_start(&a->patience, lost_patience,
                   a->peer->control->config->peer_deadline_ms / SPIN_LOOKS, 0);
}

/* Starts the timer, where the provider has calls that may not return. */
static void have_patience(struct association *a)
{
    if (!a->worker->target.fabric->traits.may_hang)
        return;
    spin_watch_begin(&a->spin, progress_done(a), progress_cpu_ns(a->worker->progress));
    look_again(a);
}

/* Looks whether the progress thread spins. Any progress since the last look restarts the looks,
 * also where this thread itself was late. */
static void lost_patience(uv_timer_t *timer)
{
    struct association *a = timer->data;
    uint64_t deadline_ns = a->peer->control->config->peer_deadline_ms * UINT64_C(1000000);

    if (spin_watch_look(&a->spin, progress_done(a), progress_cpu_ns(a->worker->progress),
                        deadline_ns / 4))
        end_with(a, "the provider does not come back from a call");
    look_again(a);
}

static void end_heard(struct call *call)
{
    struct association *a = call->owner;

    if (--a->unanswered == 0)
        uv_timer_stop(&a->patience);
    if (call->result == -EOWNERDEAD)
        end_with(a, "the provider completes nothing any more");
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct call *peer_call(struct association *a, enum call_kind kind,
                              void (*done)(struct call *call))
{
    struct call *call = call_new(&a->worker->target, kind, a, done);

    if (call) {
        call->peer.number = a->number;
        call->cookie = a->link_number;
    } else {
        log_line(&a->peer->control->log, LOG_LEVEL_ERROR, "out of memory: the link with node %u",
                 a->peer->node);
    }
    return call;
}

/* Reports an association's end to the engine, which then calls the provider for this peer for the
 * last time. */
static void post_end(struct association *a, enum call_kind kind)
{
    struct call *call = peer_call(a, kind, end_heard);

    if (!call)
        return;
    if (a->unanswered++ == 0 && a->worker->progress && !a->peer->control->stopping)
        have_patience(a);
    call_post(a->worker->progress, call);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void forget_offers(struct association *a)
{
    a->offer_asked = a->offer_waits = a->offer_sent = a->offer_come = a->up = false;
    peer_ping_forget(&a->ping);
    a->link_number++;
}

static void go_down(struct association *a)
{
    if (a->offer_asked)
        post_end(a, CALL_PEER_DOWN);
    forget_offers(a);
}

static void lose(struct association *a)
{
    a->wanted = false;
    forget_offers(a);
    post_end(a, CALL_PEER_LOST);
}

static void end_twins(struct association *a, void (*end)(struct association *a))
{
    struct association *twin = twin_of(a);

    end(a);
    if (twin)
        end(twin);
}

/* Ends the link, or the associations of two siblings: `text` is for our log, `theirs` is sent to
 * the other node. */
static void fail(struct association *a, int status, const char *text, const char *theirs)
{
    struct peer *p = a->peer;

    if (is_sibling(a)) {
        log_line(&p->control->log, LOG_LEVEL_WARNING, "engines %u and %u of this node: %s",
                 a->worker->engine, a->engine, text);
        end_twins(a, status == -EAGAIN ? go_down : lose);
        return;
    }
    peer_note_reason(p, status, text);
    if (p->link)
        link_close(p->link, status, theirs);
}

/* ---- ways up --------------------------------------------------------------------------------- */

/* Our engine cannot use a ring of that size: the reason in our log, and in that of the other node.
 */
static const char no_fit[] = "the engine refuses its ledger: ledger-start there is more than "
                             "ledger-max here, or too little for packed-max here";
static const char no_fit_there[] =
    "the ledger does not fit: ledger-start here is more than ledger-max "
    "there, or too little for packed-max there";

static void upped(struct call *call)
{
    struct association *a = call->owner;

    if (call->result == -EOWNERDEAD)
        end_with(a, "the provider completes nothing any more");
    if (call->cookie != a->link_number || call->result == 0)
        return;
    fail(a, call->result,
         call->result == -EAGAIN     ? "the engine was not ready for the link"
         : call->result == -EMSGSIZE ? no_fit
                                     : "the engine refuses its offer",
         call->result == -EMSGSIZE ? no_fit_there : "the engine does not take the link");
}

static void go_up(struct association *a)
{
    struct call *call;

    if (a->up || !a->offer_sent || !a->offer_come)
        return;
    call = peer_call(a, CALL_PEER_UP, upped);
    if (!call)
        return;
    a->up = true;
    a->wanted = false;
    call->peer.offer = a->theirs;
    call_post(a->worker->progress, call);
}

static void ask_for_offer(struct association *a);

/* Our engine has no memory for a ring: the reason in our log, and in that of the other node. */
static const char no_ledger[] = "this node's engine has no ledger for it: raise ledger-bytes";
static const char no_ledger_there[] = "no ledger for this link";
static const char no_registration[] = "this node's fabric cannot register the memory of its ledger";

static void take_offer(struct association *a, const struct engine_offer *theirs)
{
    a->theirs = *theirs;
    a->theirs.peer = a->number;
    a->offer_come = true;
    ask_for_offer(a);
    go_up(a);
}

static void send_offer(struct association *a, const struct engine_offer *offer)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
    Pwc__Offer packed = PWC__OFFER__INIT;

    packed.engine = a->worker->engine;
    packed.peer_engine = a->engine;
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
    link_send(a->peer->link, &frame);
}

static void offered(struct call *call)
{
    struct association *a = call->owner, *twin;

    if (call->cookie != a->link_number || a->peer->state != PEER_LINKED)
        return;
    if (call->result == -EAGAIN) {
        a->offer_waits = true;
        return;
    }
    if (call->result < 0) {
        fail(a, call->result, call->result == -ENOSPC ? no_registration : no_ledger,
             no_ledger_there);
        return;
    }
    a->offer_sent = true;
    twin = is_sibling(a) ? twin_of(a) : NULL;
    if (twin)
        take_offer(twin, &call->peer.offer);
    else if (!is_sibling(a))
        send_offer(a, &call->peer.offer);
    go_up(a);
}

/* Asks our engine for an offer when one of the two sides wants the link. Where the node does not
 * have the other engine, the association is lost. */
static void ask_for_offer(struct association *a)
{
    struct call *call;

    if (a->peer->state != PEER_LINKED || a->offer_asked || (!a->wanted && !a->offer_come))
        return;
    if (a->engine >= a->peer->engines) {
        lose(a);
        return;
    }
    call = peer_call(a, CALL_OFFER, offered);
    if (!call)
        return;
    a->offer_asked = true;
    a->offer_waits = false;
    call_post(a->worker->progress, call);
}

int associations_offer(struct peer *p, const Pwc__Offer *o)
{
    struct engine_offer theirs = {
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
    struct association *a;
    int rc =
        o->address.len > FABRIC_ADDRESS_MAX ? -EPROTO : named(p, o->engine, o->peer_engine, &a);

    if (rc < 0)
        return rc;
    if (a->offer_come)
        return -EPROTO;
    if (o->address.len > 0)
        memcpy(theirs.address.bytes, o->address.data, o->address.len);
    take_offer(a, &theirs);
    return 0;
}

/* Why nothing has arrived through the fabric before the deadline, in words. */
static const char *why_silent(const struct association *a)
{
    if (a->up)
        return peer_ping_why(&a->ping);
    return a->offer_sent
               ? "its daemon is linked, but its engine offers no link"
               : "its daemon is linked, but our engine has not let go of the earlier link";
}

/* The reason that goes to the other node when the link breaks. */
static const char *why_broken_there(int status)
{
    return status == -ENOMEM ? no_ledger_there : "the fabric lost the peer";
}

/* Why the engine reported the link as broken, in words. */
static const char *why_broken(const struct association *a, int status)
{
    switch (status) {
    case 0:
        return "its fabric failed";
    case -ETIMEDOUT:
        return peer_ping_why(&a->ping);
    case -ENOMEM:
        return no_ledger;
    case -ENOSPC:
        return no_registration;
    case -ENODATA:
        return "the fabric has lost a part of what it sent";
    default:
        return strerror(-status);
    }
}

void association_notice(struct peer *p, struct worker *worker, uint32_t engine,
                        const struct engine_notice *notice)
{
    struct association *a = association_of(p, worker, engine);

    if (!a)
        return;
    switch (notice->kind) {
    case ENGINE_WANT_PEER:
        if (!a->up) { /* where it is up, the engine had asked before there was a link */
            a->wanted = true;
            peer_dial(p);
            ask_for_offer(a);
        }
        break;
    case ENGINE_OFFER_READY:
        if (a->offer_waits) {
            a->offer_asked = a->offer_waits = false;
            a->wanted = true;
            ask_for_offer(a);
        }
        break;
    case ENGINE_PEER_SILENT:
        if (p->state == PEER_LINKED)
            peer_ping_ask(&a->ping, notice->length);
        break;
    case ENGINE_PEER_GONE:
        if (is_sibling(a))
            end_twins(a, lose);
        else
            peer_give_up(p, why_silent(a));
        break;
    case ENGINE_PEER_BROKEN:
        if (is_sibling(a)) {
            /* An engine that has no ring to offer would fail again at once. */
            if (a->offer_waits)
                fail(a, notice->status, why_broken(a, notice->status), NULL);
            else
                end_twins(a, go_down);
            break;
        }
        peer_note_reason(p, notice->status, why_broken(a, notice->status));
        if (p->link)
            link_close(p->link, notice->status, why_broken_there(notice->status));
        break;
    default:
        break;
    }
}

/* ---- all of a node's ------------------------------------------------------------------------- */

void associations_linked(struct peer *p)
{
    for (struct association *a = p->associations; a; a = a->next)
        ask_for_offer(a);
}

void associations_down(struct peer *p)
{
    for (struct association *a = p->associations; a; a = a->next)
        go_down(a);
}

void associations_lost(struct peer *p)
{
    for (struct association *a = p->associations; a; a = a->next)
        lose(a);
}

void associations_close(struct peer *p)
{
    for (struct association *a = p->associations; a; a = a->next)
        uv_close((uv_handle_t *)&a->patience, NULL);
}

void associations_free(struct peer *p)
{
    while (p->associations) {
        struct association *a = p->associations;

        p->associations = a->next;
        free(a);
    }
}

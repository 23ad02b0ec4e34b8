/*
 * The data path of one context over its mapped session: it writes submissions, and takes events and
 * messages.
 *
 * A channel uses no socket and makes no system call: where the daemon sleeps, channel_submit
 * returns CHANNEL_WAKES and the caller rings. So a channel works over any mapping, in tests also
 * over a mapping that an engine in the same process serves.
 *
 *     channel_submit.c    into the submit and the reply_submit ring
 *     channel_vector.c    the same for the records of a vector, all at once
 *     channel_probe.c     out of the session's rings; the order in which all rings are looked into
 *     channel_direct.c    out of the pairs' rings, which neighbours write without the daemon
 *     channel_route.c     what becomes of an event or a message, from either
 *     channel_notify.c    notifications, and the requests that ask for them
 *     channel_ends.c      peers that have ended
 *     channel_own.c       ends of what went to neighbours, without the daemon
 *     channel_requests.c  ends of persistent requests
 *
 * Event space (inbox.h): every operation holds event_bytes(its id) of the local ring. Every request
 * that may be replied to holds event_bytes(the longest block) of the reply_event ring.
 *
 * Thread: the one that owns the context; each call is short and never blocks.
 */
#ifndef PWC_CLIENTLIB_CHANNEL_H
#define PWC_CLIENTLIB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "clientlib/channel/inbox.h"
#include "clientlib/channel/kept.h"
#include "clientlib/channel/matcher.h"
#include "clientlib/channel/pending.h"
#include "clientlib/channel/request.h"
#include "clientlib/neighbours/neighbours.h"
#include "pwc/pwc.h"
#include "shm_ring/counts.h"
#include "shm_ring/ring.h"
#include "proto/session_abi.h"

/* Room for the ids of the events of one channel_probe_n: at least one of the longest ids. */
#define CHANNEL_IDS_BYTES 8192

/* Bytes of events that filters may keep. A flush may keep more: as much as a local ring holds. */
#define CHANNEL_KEPT_BYTES (UINT64_C(1) << 20)

/* The kinds whose events may be in the remote ring and in the rings of neighbours. */
#define CHANNEL_REMOTE_KINDS ((unsigned)PWC_REMOTE | (unsigned)PWC_NOTIFICATION)
/* The kinds above, and the kinds that are in the remote ring only. */
#define CHANNEL_RING_KINDS (CHANNEL_REMOTE_KINDS | (unsigned)PWC_OFFLOAD | (unsigned)PWC_PEER)
/* A further kind, of no event: the daemon has taken submissions. For a caller that waits for room
 * in their rings. */
#define CHANNEL_TAKEN (1u << 31)

/*
 * Runs the handler of an active message, which has been checked and whose block follows the event,
 * and makes sure that a request gets its reply. *status becomes the status of the message's event.
 * Returns 0; or a negative errno, and the message stays for a later call.
 */
typedef int channel_deliver(void *context, const struct event_record *event, int32_t *status);

/* The producer's view of a ring for submissions. */
struct channel_outbox {
    struct ring_producer ring;
    uint64_t record_max;        /* longest submission */
    struct submit_record *open; /* a submission that was begun, and is neither committed nor
                                   cancelled; or NULL */
};

/* Why the last pass over the remote ring left a record there. */
enum channel_hold {
    HOLD_NONE,
    HOLD_REPLY, /* the record is a request for whose reply there is no room */
    HOLD_KEPT,  /* the record is an event that no probe asks for, and no more can be kept */
};

#define CHANNEL_SPACES_OWN 65536u /* lower spaces belong to the program, higher ones to windows */

/* The space of a window. The struct is part of the window; the channel uses it while the space is
 * open. */
struct channel_space {
    struct channel_space *next;
    uint32_t number;
};

/* Notifications: started requests, and the unexpected. */
struct channel_notify {
    struct matcher matcher;
    uint64_t matched;       /* notifications that requests have taken */
    uint32_t highest_space; /* the highest number of a space that this context has opened; at first
                               the program's highest */
    struct channel_space *spaces;
    bool held; /* at the last look a neighbour's ring held a notification that could not be kept */
};

/* A peer that has ended, as the daemon has reported. */
struct channel_end {
    uint64_t peer;
    int32_t status; /* of the event */
    bool taken;     /* a probe has shown the event */
    bool back;      /* a new context with its number has come before the event was shown */
};

/* The ends of peers that are not forgotten yet. Owned by the channel. */
struct channel_ends {
    struct channel_end *list;
    uint32_t *places; /* a hash by peer, 2 * room long: 1 more than an index of `list`; 0: free */
    uint32_t count, room, untaken; /* `room` is a power of two, or 0 */
    uint64_t seen;                 /* bit i: there may be an entry whose peer is i modulo 64 */
};

static inline uint64_t channel_end_bit(uint64_t peer)
{
    return UINT64_C(1) << peer % 64;
}

/* The entry of this peer, or NULL; for a peer whose bit in `seen` is set. */
struct channel_end *channel_end_of(const struct channel_ends *ends, uint64_t peer);

static inline bool channel_has_ended(const struct channel_ends *ends, uint64_t peer)
{
    return ends->seen & channel_end_bit(peer) && channel_end_of(ends, peer);
}

struct channel {
    struct session_shared *shared;
    struct channel_outbox submit;
    struct channel_outbox reply_submit;
    struct inbox local;
    struct inbox remote;
    struct inbox reply_event;
    uint32_t message_max; /* bytes of the longest block, by which the daemon counts reply event
                             space */
    uint32_t block_max;   /* message_max, or the most that a record's length field can hold */
    uint32_t reply_max;   /* bytes of the longest reply in the reply_submit ring */
    uint32_t set_aside;   /* local event space that only replies may use */
    uint64_t submitted;   /* number of operations; compare with session_shared.left */
    uint64_t burst_end;   /* the number of operations at which a burst ends (calls/give_way.h), or
                             CHANNEL_NO_BURST */
    uint64_t flushed;     /* highest lid of a SUBMIT_FLUSH that has ended */
    bool daemon_fences;   /* the daemon can fence for us before it sleeps */
    uint32_t fenced;      /* publications for which we still fence; 0: the daemon fences */
    int over;             /* a negative errno once the session is known to be over */
    unsigned turn;        /* which of the event rings is next */
    unsigned
        direct_run; /* handlers run for events of neighbours since the last look into the rings */
    uint64_t asked_peer; /* the peer that the last probe asked for */
    struct neighbours neighbours;
    enum channel_hold hold;
    struct pending_slots pending; /* the caller opens them */
    struct request_pool requests;
    struct channel_notify notify;
    uint64_t own_limit; /* bytes that ends without the daemon may take, less the room that started
                           requests hold */
    channel_deliver *deliver;
    void *deliver_context;
    struct kept kept;
    struct channel_ends ends;
    _Alignas(8) uint8_t event[EVENT_BYTES_MAX]; /* the bytes that pwc_event.data points to */
    uint8_t ids[CHANNEL_IDS_BYTES];             /* the bytes that pwc_event.data points to after
                                                   channel_probe_n */
};

/* Makes a view of a new session. The caller keeps its mapping at `base`. -EPROTO: the header makes
 * no sense. */
int channel_init(struct channel *ch, void *base, size_t size);
void channel_destroy(struct channel *ch);
/* Called when this process has registered (doorbell_register): then it need not fence if the daemon
 * fences for it. */
void channel_set_registered(struct channel *ch);
/* Makes the client fence for itself for the next publications, so that the daemon need not
 * (doorbell_begin_fenced). Called when the daemon was asleep, and before this thread sleeps. */
void channel_begin_fenced(struct channel *ch);
/* Sets the bound of unexpected notifications, before the first one arrives. */
void channel_set_unexpected(struct channel *ch, uint32_t max);
/* From now on the channel takes messages, and sets some local event space aside for replies: 0 or
 * -ENOMEM. */
int channel_set_deliver(struct channel *ch, channel_deliver *deliver, void *context);

/* ---- submission ------------------------------------------------------------------------------ */

/* Results of a submission, besides 0: the caller acts on them. */
enum channel_submitted {
    CHANNEL_WAKES = 1,      /* the daemon sleeps: its descriptor must be written to */
    CHANNEL_ENDS_BURST = 2, /* the daemon is awake, and burst_end is reached */
};
#define CHANNEL_NO_BURST UINT64_MAX

/*
 * Submits one operation. The caller fills in `record` except size and reserve; `lid` and `rid` are
 * read where their lengths are not 0, `payload` with SUBMIT_INLINE. 0; CHANNEL_WAKES;
 * CHANNEL_ENDS_BURST; -EAGAIN: no room now, probe and try again; -EMSGSIZE: longer than record_max;
 * -EBUSY: another submission was begun; -ESHUTDOWN, -EPROTO: the session is over.
 */
int channel_submit(struct channel *ch, const struct submit_record *record, const void *lid,
                   const void *rid, const void *payload);

/*
 * The fast way to submit a put of `length` bytes (1 to packed_max) whose ids are by value. `flags`
 * are the record's, without SUBMIT_INLINE.
 */
int channel_put(struct channel *ch, uint32_t remote, uint64_t offset, const void *payload,
                uint32_t length, uint64_t lid, uint64_t rid, uint16_t flags);
/* As channel_put, for an atomic of one element, whose operands have `length` bytes. */
int channel_atomic(struct channel *ch, uint8_t code, uint32_t remote, uint64_t offset,
                   const void *operands, uint32_t length, uint64_t lid, uint64_t rid,
                   uint16_t flags);

/*
 * A submission in two steps, into either ring: the caller writes ids and payload from *at on, after
 * the record, then commits or cancels. Before the commit it may shorten the record (size). Ids and
 * an inline payload are padded to 8 bytes each: channel_append.
 */
int channel_begin(struct channel *ch, struct channel_outbox *outbox,
                  const struct submit_record *record, uint8_t **at);
/* Makes the submission visible: 0, or another result of channel_submit. */
int channel_commit(struct channel *ch, struct channel_outbox *outbox);
void channel_cancel(struct channel *ch, struct channel_outbox *outbox);

/* Publishes the records of this many operations that were written to the submit ring: as
 * channel_commit. */
int channel_publish(struct channel *ch, uint32_t records);

/* Copies `length` bytes, and pads them. Returns where the next bytes go. */
static inline uint8_t *channel_append(uint8_t *at, const void *bytes, uint32_t length)
{
    uint8_t *end = at + abi_pad8(length);

    if (length == 0)
        return at;
    memset(end - 8, 0, 8);
    memcpy(at, bytes, length);
    return end;
}

/*
 * Asks the daemon to wake a context of this node: the peer of `remote`, or, with SUBMIT_NO_REMOTE,
 * `peer`, which has bound us. Results as channel_submit; this is no operation.
 */
int channel_wake(struct channel *ch, uint32_t remote, uint64_t peer);

/* channel_note submits a record that is no operation and has no end, and fills in its size. Results
 * as channel_submit, but never CHANNEL_ENDS_BURST. channel_note_room checks that there is room for
 * two such records, so that these do not fail. */
int channel_note(struct channel *ch, const struct submit_record *record);
int channel_note_room(struct channel *ch);

/* The bytes that this submission takes in the ring; UINT64_MAX when no ring could hold it. */
uint64_t channel_record_bytes(const struct submit_record *record);

/* ---- events ---------------------------------------------------------------------------------- */

/* As pwc_probe, but without system calls. */
int channel_probe(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out);
/* As channel_probe, for up to `max` events, fewer where their ids would take more than
 * CHANNEL_IDS_BYTES. Returns how many, or an error that occurred before the first. */
int channel_probe_n(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *events,
                    unsigned max);

/* Moves all local events in the ring to the kept ones. Returns how many, or -ENOBUFS, -EPROTO. */
int channel_collect(struct channel *ch);
/* Whether one more local event can be kept. */
bool channel_can_collect(struct channel *ch);

/* For a caller that waits and takes no events: runs the handlers of messages that are there, and
 * keeps remote events before they fill their ring, because their senders may wait for us as we wait
 * for them. 0; -ENOBUFS: no more can be kept, and the ring is filling. */
int channel_run(struct channel *ch);
/* The part of channel_run that looks into the rings of neighbours. True: a request has ended by
 * this; then the caller may leave the session's rings to the next call, but not forever. */
bool channel_run_direct(struct channel *ch);
/* Also for a caller that waits and takes no events: keeps the events in neighbours' rings that are
 * filling, because channel_run looks into such a ring only for the library's own records. 0;
 * -ENOBUFS: no more can be kept. */
int channel_relieve(struct channel *ch);

/* How far all event rings have been read, in no unit: the sum grows with each record. */
uint64_t channel_position(const struct channel *ch);

/* How many submitted operations have not ended, or may not be placed yet (PWC_LCE_SOURCE). */
uint64_t channel_unended(const struct channel *ch);
static inline bool channel_idle(const struct channel *ch)
{
    return channel_unended(ch) == 0;
}
/* Whether the daemon has taken all records of the submit ring. */
bool channel_is_taken(struct channel *ch);
/* Whether a reply is still to come through the daemon, or waits in its ring for its handler. */
bool channel_awaits_reply(const struct channel *ch);

/* The error of a session that has ended. */
int channel_end_error(uint32_t state);
/* 0 while the session lives; -ESHUTDOWN when the daemon ended it; -EPROTO when one side found that
 * the other broke the protocol. */
static inline int channel_state(const struct channel *ch)
{
    uint32_t state = atomic_load_explicit(&ch->shared->state, memory_order_acquire);

    if (ch->over)
        return ch->over;
    return state == SESSION_LIVE ? 0 : channel_end_error(state);
}
/* Called when the daemon broke the protocol: returns -EPROTO, which is the channel's state from now
 * on. */
int channel_break(struct channel *ch);
/* Called when the session is found to be over, for example by a socket's hang-up. The first reason
 * stays, and so does the one that the daemon has shown in the session. */
void channel_end(struct channel *ch, int status);

/*
 * Arms the event bell (enum doorbell_mode) for these kinds (0: local and remote events), and looks
 * again into their rings, and for messages. 0: it is safe to sleep, and channel_disarm must follow;
 * 1: there is something to probe, and the bell is disarmed. While a request is held
 * (channel_holds_request), sleep only for moments.
 */
int channel_arm(struct channel *ch, uint32_t mode, unsigned kinds);
/* As channel_arm, where events of the kinds `drained` count too, from whatever peer they are. */
int channel_arm_drained(struct channel *ch, uint32_t mode, unsigned kinds, unsigned drained);
void channel_disarm(struct channel *ch);

static inline bool channel_holds_request(const struct channel *ch)
{
    return ch->hold == HOLD_REPLY;
}

/* ---- peers that have ended (channel_ends.c) -------------------------------------------------- */

/* Called when a new context with this rank and number has bound this one; an earlier one may have
 * ended. */
void channel_peer_is_back(struct channel *ch, uint64_t peer);
/* Whether the peer has ended, and nothing that it sent is left in the rings. Moves events from the
 * remote ring to the kept ones to find out. False while spilled events can come into the ring: they
 * may say that the peer is back. */
bool channel_peer_is_over(struct channel *ch, uint64_t peer);
void channel_ends_destroy(struct channel_ends *ends);

/* ---- ends of operations without the daemon
 * ---------------------------------------------------- */

/* Call this once before the others: 0 or -ENOMEM. */
int channel_own_prepare(struct channel *ch);
/* 0 when there is room for one more event with an id of this many bytes, or -EAGAIN. */
static inline int channel_own_room(const struct channel *ch, uint32_t id_len)
{
    return ch->kept.own + event_bytes(id_len) <= ch->own_limit ? 0 : -EAGAIN;
}
/* Reserves the room for one event with an id of `size` bytes until it is released: 0, -EAGAIN, or
 * -ENOMEM. */
int channel_own_hold(struct channel *ch, uint32_t id_len);
void channel_own_release(struct channel *ch, uint32_t id_len);
/* Adds the local event of an operation (enum submit_kind) that has ended, after the kept events,
 * where a probe finds it. */
void channel_own(struct channel *ch, uint8_t op, uint64_t peer, uint64_t bytes, const pwc_cid *id,
                 int32_t status);

/* ---- counts (pwc/counter.h) --------------------------------------------------------- */

/* Counts the end of an operation that the daemon does not count: one without the daemon, or with
 * SUBMIT_SLOT. */
static inline void channel_count_end(struct channel *ch, int32_t status)
{
    struct session_counts *counts = &ch->shared->client.counts;

    if (status < 0)
        count_up(&counts->failed, 1);
    count_up(&counts->ended, 1);
}

/* ---- persistent requests (request.h) -------------------------------------------------------- */

/* Posts the local event of a request whose round has ended; uses the room that the request
 * holds. */
void channel_post_event(struct channel *ch, const struct pwc_request *r);

/* Begins a round of a request that is not under way, and holds room for its local event: 0;
 * -EAGAIN: take local events first; -ENOMEM; -ESHUTDOWN, -EPROTO: the session is over. */
static inline int channel_start_request(struct channel *ch, struct pwc_request *r)
{
    int rc = channel_state(ch);

    if (rc == 0 && request_has_lid(r))
        rc = channel_own_hold(ch, r->lid_size);
    if (rc < 0)
        return rc;
    r->status.status = 0;
    r->status.count = 0;
    r->status.bytes = 0;
    r->reported = false;
    r->left = r->wanted;
    return 0;
}
/* Undoes channel_start_request. */
void channel_unstart_request(struct channel *ch, struct pwc_request *r);
/* Called when the round of a request has ended and its status is final. */
static inline void channel_ended_request(struct channel *ch, struct pwc_request *r)
{
    if (request_has_lid(r))
        channel_post_event(ch, r);
    request_show(&ch->requests, r);
}
/* Ends the round of a request that is under way, with its local event. An earlier error of the
 * round stays the status. */
void channel_end_request(struct channel *ch, struct pwc_request *r, int status);

/* ---- notifications (pwc/notify.h) ------------------------------------------------------------ */

void channel_notify_init(struct channel_notify *n);
/* Before request_pool_destroy. */
void channel_notify_destroy(struct channel *ch);
/* Sets the pattern of a request before its first start: 0 or -ENOMEM. */
int channel_notify_open(struct channel *ch, struct pwc_request *r,
                        const struct matcher_pattern *pattern);
/* Called after channel_start_request: takes notifications that have already arrived, and starts the
 * request for the rest: 0 or -ENOMEM. */
int channel_notify_start(struct channel *ch, struct pwc_request *r);
/* Stops a request that is under way: it gets no more notifications. */
void channel_notify_stop(struct channel *ch, struct pwc_request *r);

/* Open a space, with a number that no member of its window has used; and close it: its unexpected
 * and later notifications are dropped. */
void channel_space_open(struct channel *ch, struct channel_space *space);
void channel_space_close(struct channel *ch, struct channel_space *space);

/* Whether each look into a ring must route what is there, because messages may run handlers, or
 * notifications may end requests. */
static inline bool channel_sorts(const struct channel *ch)
{
    return ch->deliver || ch->notify.matcher.started > 0;
}

/* Whether the last pass over the rings left an event there because no more could be kept. A
 * notification that a request waits for may be after it. */
static inline bool channel_is_full(const struct channel *ch)
{
    return ch->hold == HOLD_KEPT || ch->notify.held;
}

#endif

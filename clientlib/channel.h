/*
 * The data path of one context over its mapped session: records in, events out.
 *
 * It knows no socket and makes no system call: where the daemon sleeps, channel_submit says so and
 * the caller rings. It can therefore stand on any mapping, in tests also on one shared with an
 * engine in the same process.
 *
 * Local event space. Every operation holds event_bytes(its id) of the local ring from submission
 * until its event has been popped, or until the daemon gives the bytes back without one
 * (`released`). So an event always finds its place:
 *
 *     reserved - returned - released  <=  session_local_limit
 *
 * Thread: the one that owns the context; each call is short and never blocks.
 */
#ifndef PWC_CLIENTLIB_CHANNEL_H
#define PWC_CLIENTLIB_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "kept.h"
#include "pwc/pwc.h"
#include "ring.h"
#include "session_abi.h"

/* Bytes of events that filters may keep; a flush may keep a local ring's worth more. */
#define CHANNEL_KEPT_BYTES (UINT64_C(1) << 20)

/*
 * Sees each local event of a get before it is shown or kept; may rewrite it within EVENT_BYTES_MAX
 * bytes. 1: show it; 0: nobody shall see it; -EPROTO: it makes no sense.
 */
typedef int channel_settle(void *context, struct event_record *event);

/* One event ring, as its consumer. */
struct channel_inbox {
    struct ring_consumer ring;
    uint8_t kind;        /* enum event_kind: the only one that may stand in it */
    uint64_t unreleased; /* bytes consumed since the space was last given back */
    uint64_t batch;      /* give it back when so much has come together */
};

struct channel {
    struct session_shared *shared;
    struct ring_producer submit;
    struct channel_inbox local;
    struct channel_inbox remote;
    uint64_t record_max; /* longest submission */
    uint64_t space_limit;
    uint64_t space_reserved; /* these three only grow */
    uint64_t space_returned;
    uint64_t space_released; /* last sight of `released` */
    uint64_t submitted;      /* operations; compare with session_shared.ended */
    uint64_t flushed;        /* highest lid of a SUBMIT_FLUSH that has ended */
    int over;                /* a negative errno once we know that the session is over */
    bool remote_next;        /* the rings take turns */
    channel_settle *settle;
    void *settle_context;
    struct kept kept;
    _Alignas(8) uint8_t event[EVENT_BYTES_MAX]; /* what pwc_event.data points into */
};

/* A view over a fresh session; `base` stays the caller's. -EPROTO: its header is not sound. */
int channel_init(struct channel *ch, void *base, size_t size);
void channel_destroy(struct channel *ch);
void channel_set_settle(struct channel *ch, channel_settle *settle, void *context);

/*
 * Submits one operation. The caller fills in `record` but for size and reserve; `lid` and `rid`
 * are read where their lengths are not 0, `payload` with SUBMIT_INLINE. 0; 1 when the daemon sleeps
 * and its descriptor must be written to; -EAGAIN: no room now, probe and try again; -EMSGSIZE:
 * longer than record_max; -ESHUTDOWN, -EPROTO: the session is over.
 */
int channel_submit(struct channel *ch, const struct submit_record *record, const void *lid,
                   const void *rid, const void *payload);

/* Bytes that this submission takes in the ring, UINT64_MAX when no ring could hold it. */
uint64_t channel_record_bytes(const struct submit_record *record);

/* As pwc_probe, without its system calls. */
int channel_probe(struct channel *ch, uint64_t peer, unsigned kinds, struct pwc_event *out);

/* Moves all local events that are there to the kept ones: how many, or -ENOBUFS, -EPROTO. */
int channel_collect(struct channel *ch);

/* All that was submitted has ended. */
bool channel_idle(const struct channel *ch);

/* 0 while the session lives; -ESHUTDOWN when the daemon ended it, -EPROTO when it or we found that
 * the other broke the protocol. */
int channel_state(const struct channel *ch);
/* The caller has found out that the session is over, for example by a socket's hang-up. */
void channel_end(struct channel *ch, int status);

/*
 * Arms the event bell (enum doorbell_mode) and looks again into the rings of these kinds: 0 when it
 * is safe to sleep; 1, and disarmed, when there is something to probe. channel_disarm after waking.
 */
int channel_arm(struct channel *ch, uint32_t mode, unsigned kinds);
void channel_disarm(struct channel *ch);

#endif

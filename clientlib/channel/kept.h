/*
 * Events that a filter passed over, kept in order until a later probe asks for them.
 *
 * A flat buffer of event records between `start` and `end`; a record that has been taken is marked
 * and skipped, and the buffer is packed when it is full to its end. The buffer is twice the quota,
 * so packing copies less than was added since the last time. Nothing is allocated before the first
 * event is kept.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_KEPT_H
#define PWC_CLIENTLIB_KEPT_H

#include <stdint.h>
#include "pwc/pwc.h"
#include "proto/session_abi.h"

/* The kind (enum pwc_kinds) by which a probe asks for an event, and which its pwc_event has. */
static inline unsigned event_shown_as(uint8_t kind)
{
    static const uint8_t shown_as[] = {
        [EVENT_LOCAL] = PWC_LOCAL,         [EVENT_REMOTE] = PWC_REMOTE,
        [EVENT_REQUEST] = PWC_MESSAGE,     [EVENT_REPLY] = PWC_MESSAGE,
        [EVENT_NOTIFY] = PWC_NOTIFICATION, [EVENT_OFFLOAD] = PWC_OFFLOAD,
        [EVENT_PEER] = PWC_PEER,
    };

    return shown_as[kind];
}

struct kept {
    uint8_t *records;
    uint64_t capacity; /* of `records`, once allocated */
    uint64_t start;
    uint64_t end;
    uint64_t bytes; /* bytes of records not yet taken */
    uint64_t own;   /* the part of `bytes` for ends of operations without the daemon, which the
                       quota of filters does not count */
    /* Where the last unsuccessful search ended, so that a spinning caller searches only new events.
     * Valid only for the same filter. */
    uint64_t searched_to;
    uint64_t searched_peer;
    unsigned searched_kinds;
};

/* `quota_max` is the largest quota that kept_room will be called with, plus the most that `own` may
 * be. */
void kept_init(struct kept *kept, uint64_t quota_max);
void kept_destroy(struct kept *kept);

/* 0 when one more event of any size may be kept; -ENOBUFS when that would exceed `quota` bytes;
 * -ENOMEM. Call this before an event leaves its ring. */
int kept_room(struct kept *kept, uint64_t quota);
/* Keeps an event, after kept_room allowed it. */
void kept_add(struct kept *kept, const struct event_record *event);

/* Adds the end of an operation without the daemon, after kept_prepare. The caller fills in all but
 * size and origin, and keeps `own` within its bound. */
struct event_record *kept_add_own(struct kept *kept, uint32_t size);
int kept_prepare(struct kept *kept);

/* Moves the oldest event of this peer (or PWC_ANY) and one of these kinds to `out`, which has
 * EVENT_BYTES_MAX bytes: 1, or 0 when there is none. */
int kept_take(struct kept *kept, uint64_t peer, unsigned kinds, struct event_record *out);

#endif

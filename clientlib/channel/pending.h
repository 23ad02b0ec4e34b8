/*
 * The operations in flight whose local event the library rewrites. Each has a slot, which keeps
 * what its end needs: the caller's completion id, and, for a destination that has a copy
 * (`shadow`), where to copy the data.
 *
 * The event of an atomic that fetches one element contains the value, so the library can copy it
 * into any memory.
 *
 * Such an operation, of any kind, is submitted with SUBMIT_SLOT, with its slot's number as
 * completion id, and without SUBMIT_NO_LCE, so that the library sees its end even when the caller
 * does not want to. Gets are submitted so. The records of a vector share a slot, which waits for
 * all their ends and keeps the first error; a piece whose data must be copied also has a slot of
 * its own. An operation with a request needs no slot for the request: the request's id takes the
 * place of the slot's number (request.h). The pieces of a series (calls/series.h) have slots as the
 * pieces of a vector do. Each record holds local event space, so `capacity` slots are almost always
 * enough; memory for them is mapped once and costs nothing until it is used.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_PENDING_H
#define PWC_CLIENTLIB_PENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "clientlib/channel/grains.h"
#include "pwc/pwc.h"
#include "proto/session_abi.h"

#define PENDING_NONE UINT32_MAX

struct pending_slot {
    uint64_t id;        /* by value, when id_len is 0 */
    void *destination;  /* where `shadow`, or the event's value, is copied to; NULL: nowhere */
    const void *shadow; /* NULL: the event brings a value, of up to 8 bytes */
    uint64_t length;    /* bytes that move */
    uint32_t next_free;
    uint32_t vector; /* for a piece: the slot of its vector; else PENDING_NONE */
    uint32_t pieces; /* for a vector: how many slots of its pieces are busy */
    uint32_t left;   /* ends that have not arrived yet */
    int32_t status;  /* the first error among the ends that have arrived */
    uint16_t id_len;
    uint8_t op;            /* for a vector: the operation that its event names; else 0 */
    struct grains_run run; /* grains of staging that the operation reads or fills; or none */
    bool silent;           /* the caller wants to see the end only if the operation fails */
    bool request;          /* `id` is the id of a request */
    bool busy;
};

struct pending_slots {
    struct pending_slot *slots;
    uint8_t *ids; /* SESSION_ID_MAX bytes a slot */
    uint32_t capacity;
    uint32_t fresh;     /* slots from here on have never been used */
    uint32_t free_slot; /* the first free slot, or PENDING_NONE */
    uint32_t busy;
    struct grains grains; /* of staging */
};

/* Makes the slots for a local ring with this many bytes of event space. */
int pending_open(struct pending_slots *p, uint32_t local_limit);
void pending_close(struct pending_slots *p);

/* Takes a slot: its number, or -EAGAIN. Two of `flags` (enum submit_flags) are used: SUBMIT_NO_LCE:
 * the caller wants to see the end only if the operation fails; SUBMIT_SLOT: `id` is the id of a
 * request. With a destination and no shadow, the event contains the value. */
int64_t pending_begin(struct pending_slots *p, const pwc_cid *id, unsigned flags, void *destination,
                      const void *shadow, uint64_t length);
/* Takes the slot of a vector, an operation `op` that moves `length` bytes: as pending_begin. The
 * caller sets its `left`. */
int64_t pending_begin_vector(struct pending_slots *p, const pwc_cid *id, unsigned flags, uint8_t op,
                             uint64_t length);
/* Takes the slot of a piece of that vector: as pending_begin. */
int64_t pending_begin_piece(struct pending_slots *p, uint32_t vector, void *destination,
                            const void *shadow, uint64_t length);
/* Gives the slot these grains of staging, until the slot is free. `shadow` is, for a get, where its
 * bytes are copied from; else NULL. */
void pending_stage(struct pending_slots *p, uint32_t slot, struct grains_run run,
                   const void *shadow);
/* From now on nothing is copied out of staging for the operation with this request, or its
 * pieces. */
void pending_drop_staged(struct pending_slots *p, uint64_t request_id);
/* Give back the slot of an operation that was not submitted (for a vector, also the slots of its
 * pieces), or of one piece. */
void pending_cancel(struct pending_slots *p, uint32_t slot);
void pending_cancel_piece(struct pending_slots *p, uint32_t slot);
/* Handles the event of an operation's end, which has room for EVENT_BYTES_MAX bytes: copies the
 * data, and turns the event into the one that the caller expects, or, if EVENT_SLOT stays set, into
 * a request's. 1: show it; 0: drop it; -EPROTO: it makes no sense. *ended: the whole operation has
 * ended, not only a part. */
int pending_settle(struct pending_slots *p, struct event_record *event, bool *ended);

#endif

/*
 * The operations in flight whose local event the library rewrites, each with a slot for what its
 * end needs: the caller's completion id, and where a copy has to go when the destination is reached
 * through a shadow.
 *
 * An atomic that fetches one element gets its value in the event, and so into any memory.
 *
 * Such an operation, of any kind, is submitted with SUBMIT_SLOT, its slot's number as completion id
 * and without SUBMIT_NO_LCE, so that the library sees its end even when the caller does not want
 * to. Gets are submitted so. The records of a vector share a slot, which waits for all their ends
 * and keeps the first error; a piece that has to be copied has a slot of its own beside it. An
 * operation that was given a request needs no slot for that: the request's id stands in the slot's
 * place (request.h). The pieces of a series (calls/series.h) have slots as those of a vector. Each
 * record holds local event space, so there are hardly ever more than `capacity`; memory for them is
 * mapped once and costs nothing until it is touched.
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
    uint32_t left;   /* ends that have not come yet */
    int32_t status;  /* the first error among those that have arrived */
    uint16_t id_len;
    uint8_t op;            /* of a vector: the operation that its event names; else 0 */
    struct grains_run run; /* of staging, which the operation reads or fills; or none */
    bool silent;           /* the caller wants to see the end only if the operation fails */
    bool request;          /* `id` is that of a request */
    bool busy;
};

struct pending_slots {
    struct pending_slot *slots;
    uint8_t *ids; /* SESSION_ID_MAX bytes a slot */
    uint32_t capacity;
    uint32_t fresh;     /* slots from here on have never been used */
    uint32_t free_slot; /* first of those given back */
    uint32_t busy;
    struct grains grains; /* of staging */
};

/* Makes the slots for a local ring with this many bytes of event space. */
int pending_open(struct pending_slots *p, uint32_t local_limit);
void pending_close(struct pending_slots *p);

/* Slot number, or -EAGAIN. Two of `flags` (enum submit_flags) count: SUBMIT_NO_LCE, the caller
 * wants to see the end only if the operation fails; SUBMIT_SLOT, `id` is that of a request. With
 * a destination and no shadow, the event brings the value. */
int64_t pending_begin(struct pending_slots *p, const pwc_cid *id, unsigned flags, void *destination,
                      const void *shadow, uint64_t length);
/* The slot of a vector, an operation `op` that moves `length` bytes: as pending_begin. Its `left`
 * is the caller's to set. */
int64_t pending_begin_vector(struct pending_slots *p, const pwc_cid *id, unsigned flags, uint8_t op,
                             uint64_t length);
/* The slot of a piece of that vector: as pending_begin. */
int64_t pending_begin_piece(struct pending_slots *p, uint32_t vector, void *destination,
                            const void *shadow, uint64_t length);
/* The slot holds these grains of staging until it is free. `shadow`: of a get, where its bytes are
 * copied from; else NULL. */
void pending_stage(struct pending_slots *p, uint32_t slot, struct grains_run run,
                   const void *shadow);
/* Nothing is copied out of staging when the operation ends, or a piece of it, that was given the
 * request with this id. */
void pending_drop_staged(struct pending_slots *p, uint64_t request_id);
/* The operation was not submitted after all; a vector with its pieces, or a piece alone. */
void pending_cancel(struct pending_slots *p, uint32_t slot);
void pending_cancel_piece(struct pending_slots *p, uint32_t slot);
/* The event of an operation's end, with room for EVENT_BYTES_MAX bytes: copies, and makes it the
 * event that the caller expects, or, still with EVENT_SLOT, that of a request. 1: show it; 0: drop
 * it; -EPROTO: it makes no sense. *ended: the operation has ended, rather than a part of it. */
int pending_settle(struct pending_slots *p, struct event_record *event, bool *ended);

#endif

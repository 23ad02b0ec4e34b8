/*
 * The gets of a context that are in flight, each with what its end needs: the caller's completion
 * id, and where a copy has to go when the destination is reached through a shadow.
 *
 * Every get is submitted with its slot's number as completion id and asks for its local event, so
 * that the library sees its end even when the caller does not want to. A get holds local event
 * space, and so there are never more than `capacity`; memory for them is mapped once and costs
 * nothing until it is touched.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_GETS_H
#define PWC_CLIENTLIB_GETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "pwc/pwc.h"
#include "proto/session_abi.h"

struct get_slot {
    uint64_t id;       /* by value, when id_len is 0 */
    void *destination; /* where `shadow` is copied to; NULL: nowhere */
    const void *shadow;
    uint64_t length;
    uint32_t next_free;
    uint16_t id_len;
    bool silent; /* the caller wants to see it only if it fails */
    bool busy;
};

struct gets {
    struct get_slot *slots;
    uint8_t *ids; /* SESSION_ID_MAX bytes a slot */
    uint32_t capacity;
    uint32_t fresh;     /* slots from here on have never been used */
    uint32_t free_slot; /* first of those given back */
    uint32_t pending;
};

int gets_open(struct gets *gets, uint32_t capacity);
void gets_close(struct gets *gets);

/* Slot number, or -EAGAIN. */
int64_t gets_begin(struct gets *gets, const pwc_cid *id, bool silent, void *destination,
                   const void *shadow, uint64_t length);
/* The get was not submitted after all. */
void gets_cancel(struct gets *gets, uint32_t slot);
/* The event of a get's end, a channel_settle: copies, and gives the caller's id back. */
int gets_settle(void *gets, struct event_record *event);

#endif

/*
 * A client that sends active messages through the five rings of its session, without the library:
 * requests and replies as the library submits them, or as it never would. The client counts the
 * event space that its operations hold, as the library does. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MESSAGE_CLIENT_H
#define PWC_TESTS_ENGINE_MESSAGE_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include "shm_ring/ring.h"
#include "tests/engine/world/world.h"

#define MESSAGE_EVENT_MAX 8192u

/* The client's rings of events. */
enum message_ring { MESSAGE_LOCAL, MESSAGE_REMOTE, MESSAGE_REPLY, MESSAGE_RINGS };

struct message_client {
    struct world *world;
    uint32_t client;
    struct session_shared *shared;
    struct ring_producer submit, answer;
    struct ring_consumer events[MESSAGE_RINGS];
    uint64_t submitted;
    uint64_t local_reserved, local_returned; /* bytes, only growing */
    uint64_t reply_reserved, reply_returned;
};

/* One message to send; fields that are 0 may be left out. */
struct message_send {
    uint8_t kind; /* enum submit_kind */
    uint16_t flags;
    uint32_t index;
    uint32_t remote; /* for a request, or a Long reply */
    uint64_t token;  /* for a reply: the token of the request's event */
    uint64_t lid;
    uint32_t count; /* number of arguments */
    uint64_t arguments[SESSION_ARGUMENTS_MAX];
    const void *payload; /* bytes of a Medium, or of an inline Long */
    uint32_t length;     /* bytes of the payload */
    uint64_t offset;     /* for a Long: place in the remote region */
    uint64_t local_offset;
};

struct message_event {
    struct event_record head;
    struct message message;
    uint8_t rest[MESSAGE_EVENT_MAX]; /* arguments, then a Medium's payload */
};

/* Opens the client over context 0 of a client of the world. Nothing else may use its rings. */
void message_client_open(struct message_client *c, struct world *w, uint32_t client);
/* Shows a handler at every index, or at none. */
void message_handlers(struct message_client *c, bool there);

/* Submits. Returns 0, or -EAGAIN where a library would return it. */
int message_request(struct message_client *c, const struct message_send *send);
int message_reply(struct message_client *c, const struct message_send *send);
/* Whether there is room for a reply, so that a handler may run. */
bool message_reply_room(struct message_client *c);
/* message_room says whether there is event space for one more operation. message_submitted counts
 * an operation of message_raw, which holds event space too. */
bool message_room(const struct message_client *c);
void message_submitted(struct message_client *c);
/* Writes a record unchanged (size and reserve too), and does not count its event space. */
int message_raw(struct message_client *c, bool answer, const void *record, uint32_t size);
/* Builds the record that message_request or message_reply would write. Returns its size. */
uint32_t message_build(const struct message_client *c, const struct message_send *send, bool answer,
                       uint8_t *to);

/* Takes the next event of a ring. Returns 1, 0 without an event, or a negative errno. */
int message_probe(struct message_client *c, enum message_ring ring, struct message_event *out);

/* Whether everything has ended, and all event space is back. */
bool message_at_rest(const struct message_client *c);
/* Bytes of reply event space that the client may not use now. */
uint64_t message_reply_held(const struct message_client *c);

#endif

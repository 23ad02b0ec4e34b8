/*
 * Requests and replies between all clients of a world, and their model. Each message has a number,
 * by which its event is known. The model checks that each message is taken once at its target, in
 * order, with its arguments and its whole payload, and that each ends once at its sender. When all
 * is over, all event space must be back.
 *
 * Memory of every client is divided into quarters: where requests of others land, where replies
 * land, sources of requests, sources of replies. Each quarter is divided among the clients, then
 * into slots.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_MESSAGE_FLOOD_H
#define PWC_TESTS_ENGINE_MESSAGE_FLOOD_H

#include <stdbool.h>
#include <stdint.h>
#include "tests/engine/world/messages/message_client.h"
#include "daemon/fabric/sim/sim_random.h"

#define FLOOD_CLIENTS  4u
#define FLOOD_SLOTS    4u
#define FLOOD_MESSAGES 8192u

struct flood_message {
    uint32_t from, to;
    uint8_t kind;
    bool reply, silent; /* silent: a reply that runs no handler */
    bool wants_reply;
    uint16_t flags;
    uint32_t index, count, length;
    uint32_t slot; /* slot of a Long; FLOOD_SLOTS: none */
    int status;    /* how it must end at its sender */
    bool shaken;   /* sender, target or link was lost: other ends are allowed */
    bool ended;    /* its local event has arrived, or none will */
    bool seen;     /* its handler has run, or none will */
};

struct flood_pair {
    bool bound;
    uint32_t remote;
    bool broken;            /* the link was lost: later messages fail in one way or another */
    uint32_t next[2];       /* lowest number whose handler has not run, for requests and replies */
    uint32_t slots[2];      /* bits of the slots in use, for requests and replies */
    uint32_t ended_next[2]; /* lowest number without a local event, for requests and replies */
};

struct flood {
    struct world *world;
    struct sim_random random;
    uint32_t clients;
    struct message_client client[FLOOD_CLIENTS];
    bool dead[FLOOD_CLIENTS];
    uint32_t silent; /* a bit for each client that takes no events */
    struct flood_pair pairs[FLOOD_CLIENTS][FLOOD_CLIENTS];
    struct flood_message messages[FLOOD_MESSAGES];
    uint32_t count;
    uint32_t short_of; /* percent of requests that want no reply */
    uint64_t events, replies, busy, failed;
};

/* Opens the flood over the first clients of the world, each of which binds each with its key. */
void flood_open(struct flood *f, struct world *w, uint32_t clients, uint64_t seed);

/* Sends a message. Returns its number, or FLOOD_MESSAGES when there is no room now. */
uint32_t flood_send(struct flood *f, uint32_t from, uint32_t to, uint8_t kind, uint16_t flags,
                    uint32_t length);
/* Sends a message with everything at random. */
uint32_t flood_some(struct flood *f);

/* Takes all events, and runs handlers, which reply. Returns the number of events. */
uint32_t flood_probe(struct flood *f);
/* Makes one round of the world and of its clients. Returns false when nothing moves any more. */
bool flood_turn(struct flood *f);
/* Makes rounds until everything has ended; checks that all space is back. */
void flood_finish(struct flood *f);

/* Lets the client die, or the link be lost: from now on messages between these may end in any way.
 */
void flood_dies(struct flood *f, uint32_t client);
void flood_link_lost(struct flood *f, uint32_t node_a, uint32_t node_b);

#endif

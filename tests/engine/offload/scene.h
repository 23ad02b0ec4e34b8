/*
 * An offload in the simulated world: client 0 on node 0 asks, client 1 on node 1 has the offload at
 * message index SCENE_INDEX, client 2 on node 0 is its target. The offload's program does what each
 * message asks for, handler by handler, and counts its runs in the region of client 1:
 *
 *     arguments of a message   0: its number     1: plan, 16 bits for each handler
 *                              2: turns of a loop, of 2 units, that each handler goes through first
 *     plan of a handler        bits 0 to 7: the value that it returns
 *                              bit 8: puts the number to the target
 *                              9: sends the target a message   10: replies   11: posts an event
 *                              12: puts its count of runs from the region to the target
 *                              13: adds 1 to the target's word at SCENE_TALLY
 *                              14: gets the number's word from the target (SCENE_SOURCE)
 *                              15: first goes through a loop of 9800 units
 *     plan of a run on a get   bits 48 to 63 of the message's plan, with the same meanings: return,
 *     that has ended           put, event, loop
 *
 * The region has these words of 8 bytes, one array after the other:
 *
 *     runs[number][handler]
 *     reruns[number][handler]
 *     bytes[number]            the sum of packets: for each, its length and its offset << 32
 *     gots[number]             runs on gets that have ended; reruns << 16; of runs and reruns,
 *                              those on gets that have failed << 32
 *
 * Or the offload takes puts to that region, and observes gets from it: number and plan stand in the
 * completion id, number << 48 | plan, and the upper half of the region is for what is placed. In a
 * scene of Longs, their payloads go there. Where a Long is cut without its record, its arguments
 * are those of the last Long that the header handler has run on.
 *
 * A helper's -EAGAIN makes the handler return AGAIN.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_OFFLOAD_SCENE_H
#define PWC_TESTS_ENGINE_OFFLOAD_SCENE_H

#include "proto/handler_abi.h"
#include "tests/engine/world/messages/message_client.h"

enum {
    SCENE_MESSAGES = 512,
    SCENE_INDEX = 5,
    SCENE_TARGET_INDEX = 9, /* index of the messages that handlers send */
    SCENE_CLIENTS = 3,
    SCENE_PUT = 1 << 8,
    SCENE_MESSAGE = 1 << 9,
    SCENE_REPLY = 1 << 10,
    SCENE_EVENT = 1 << 11,
    SCENE_PUT_HOST = 1 << 12,
    SCENE_ADD = 1 << 13,
    SCENE_GET = 1 << 14,
    SCENE_LOOP = 1 << 15,
    SCENE_TALLY = SCENE_MESSAGES * 8, /* offset in the target's region */
    SCENE_BAD_RETURN = 0x77,          /* a return value that is a fault */
    SCENE_PLACE = 32768,              /* offset in the owner's region: puts go there */
    SCENE_GOT_PLACE = 61440,    /* offset in the owner's region: gets go there, 8 bytes a number */
    SCENE_SOURCE = 16384,       /* offset in the target's region: source of the gets */
    SCENE_GOT = HANDLER_STAGES, /* the stage that counts what handlers of gets send */
    SCENE_STAGES = HANDLER_STAGES + 1,
};

/* The plan of a message, made of the plans of its three handlers (described at the top). */
static inline uint64_t scene_plan(uint32_t header, uint32_t payload, uint32_t completion)
{
    return header | (uint64_t)payload << 16 | (uint64_t)completion << 32;
}

static inline uint64_t scene_got_plan(uint32_t got)
{
    return (uint64_t)got << 48;
}

struct scene_message {
    uint64_t plan;
    uint32_t length; /* bytes of a put or a Long */
    bool sent;
    bool wants_reply;
    uint32_t ends; /* how many local events it has had */
    int status;
    uint32_t replies;           /* replies that ran a handler at the asker */
    uint32_t events[16];        /* how many events the owner had, by enum offload_event; at index 0:
                                 * how often the owner got the message itself, or the put's event */
    uint32_t deferred;          /* how often the message came to the owner because a handler has
                                 * deferred it */
    uint32_t got_events[16];    /* how many events the owner had of the message's gets, likewise */
    uint32_t own[SCENE_STAGES]; /* how many events each handler posted */
    uint32_t puts[SCENE_STAGES], host_puts[SCENE_STAGES], messages; /* arrived at the target */
    int got_status; /* status of the last of its gets that had an event */
};

struct scene {
    struct world *world;
    struct message_client client[SCENE_CLIENTS];
    uint32_t first;       /* number in the world of the scene's client 0 */
    uint32_t remote;      /* client 0's remote, to client 1 */
    uint32_t long_remote; /* client 0's remote with a key, in a scene of Longs */
    uint64_t loops;       /* turns of a loop, for messages that are sent from now on */
    bool puts;            /* the offload takes puts */
    int program, offload;
    uint32_t silent; /* a bit for each client that takes no events */
    uint32_t count;
    struct scene_message messages[SCENE_MESSAGES];
    char failure[400];
};

/* Opens the world, and an offload with these flags whose program has the handlers of this mask (bit
 * 1 << HANDLER_HEADER, ...). Returns false if the world has failed. */
bool scene_open(struct scene *s, const struct world_options *options, uint32_t flags,
                uint32_t handlers);
/* Opens a scene in a world, where it uses three clients alone, from `first` on. When the owner's
 * node dies, the scene continues when the node is back. */
bool scene_begin(struct scene *s, struct world *w, uint32_t first, uint32_t flags,
                 uint32_t handlers);
/* As scene_open and scene_begin, with this many targets, which all lead to one place: sends use the
 * last target. */
bool scene_open_many(struct scene *s, const struct world_options *options, uint32_t handlers,
                     uint32_t targets);
bool scene_begin_many(struct scene *s, struct world *w, uint32_t first, uint32_t flags,
                      uint32_t handlers, uint32_t targets);
/* As scene_open and scene_begin, with an offload that takes puts to its client's region. */
bool scene_open_puts(struct scene *s, const struct world_options *options, uint32_t flags,
                     uint32_t handlers);
bool scene_begin_puts(struct scene *s, struct world *w, uint32_t flags, uint32_t handlers);
/* As scene_open and scene_begin, and client 0 may send Longs to the offload's host window. */
bool scene_open_longs(struct scene *s, const struct world_options *options, uint32_t flags,
                      uint32_t handlers);
bool scene_begin_longs(struct scene *s, struct world *w, uint32_t flags, uint32_t handlers);
/* Loads a program with a completion handler for this client. Returns its handle. */
uint32_t scene_program(struct world *w, uint32_t client);
/* Creates an offload of this client, without targets and memory. Returns its handle or an error. */
int scene_offload(struct world *w, uint32_t client);
/* Makes all clients leave, and checks that nothing is left over. Returns NULL, or what went wrong
 * in this world. */
const char *scene_close(struct scene *s);

/* Sends a message with `payload` bytes. Returns its number, or SCENE_MESSAGES if there is no room
 * now. */
uint32_t scene_send(struct scene *s, uint64_t plan, bool wants_reply, uint32_t payload);
/* Sends a Long with `length` bytes of client 0's region, and with flags as for scene_put; otherwise
 * as scene_send. */
uint32_t scene_send_long(struct scene *s, uint64_t plan, bool wants_reply, uint32_t length,
                         uint16_t flags);
/* Puts bytes from a segment of client 0 (enum world_segment_use) with these flags (SUBMIT_INLINE:
 * the bytes are copied at once; SUBMIT_NO_RCE). Returns as scene_send. */
uint32_t scene_put(struct scene *s, uint64_t plan, uint32_t length, uint16_t flags,
                   uint32_t segment);
/* Gets bytes from the place to which scene_put puts them; otherwise as scene_put. */
uint32_t scene_get(struct scene *s, uint64_t plan, uint32_t length, uint16_t flags);
/* Takes all events. Returns whether there were any. */
bool scene_look(struct scene *s);
/* Makes one round, and takes all events. Returns false when nothing moves any more. */
bool scene_turn(struct scene *s);
/* Makes turns until nothing moves, and all messages have ended. */
void scene_finish(struct scene *s);

/* Other events of a random run: in how many of 100 rounds each happens. */
struct scene_troubles {
    uint32_t breaks; /* breaks of the link */
    uint32_t deaths; /* deaths of a node, which comes back some rounds later */
    uint32_t sleeps; /* the owner or the target stops looking at its events, or begins to */
};
/* Brings about the troubles of one round. */
void scene_trouble(struct scene *s, const struct scene_troubles *t, struct sim_random *random);
/* Revives all nodes, waits until all messages have ended, checks each, and closes the scene.
 * Returns NULL, or what went wrong. */
const char *scene_conclude(struct scene *s, const char *(*check)(uint32_t number));
/* How often a handler has run on a message, and how often again after AGAIN or a crash. */
uint64_t scene_runs(const struct scene *s, uint32_t number, uint32_t stage);
uint64_t scene_reruns(const struct scene *s, uint32_t number, uint32_t stage);
/* Whether payload handlers have run once on each packet of a put or a Long, packets having `size`
 * bytes. */
bool scene_got_all(const struct scene *s, uint32_t number, uint32_t size);

/* scene_gots: how often the completion handler has run on gets of the message that have ended.
 * scene_got_reruns: how often again. scene_gots_failed: how many of these runs were on gets that
 * have failed. scene_got_word: whether their bytes are there. */
uint32_t scene_gots(const struct scene *s, uint32_t number);
uint32_t scene_got_reruns(const struct scene *s, uint32_t number);
uint32_t scene_gots_failed(const struct scene *s, uint32_t number);
bool scene_got_word(const struct scene *s, uint32_t number);

/* A word of the target's region. */
uint64_t scene_target_word(const struct scene *s, uint64_t offset);

/* Calls into the owner's engine. */
int scene_enable(struct scene *s, bool enable);
int scene_destroy(struct scene *s);

#endif

/*
 * A stream fabric under test with sockets in place of its peers: the test decides what they send
 * and what they read. Everything that waits polls the fabric meanwhile, and logs its events.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_FABRIC_NEAR_H
#define PWC_TESTS_FABRIC_NEAR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include "daemon/fabric/stream/stream.h"

#define NEAR_PEERS    8u
#define NEAR_COOKIES  2048u
#define NEAR_MEMORY   65536u
#define NEAR_PATIENCE 10000 /* ms that any wait lasts before it counts as a failure */

enum near_memory {
    NEAR_ALL,        /* peers read and write */
    NEAR_READ_ONLY,  /* peers read */
    NEAR_WRITE_ONLY, /* peers write */
    NEAR_LOCAL,      /* peers do neither */
    NEAR_MEMORIES,
};

struct near_peer {
    uint32_t broken; /* times */
    int status;      /* the last */
    uint32_t arrived;
    uint32_t immediate;           /* the last */
    uint32_t arrived_when_broken; /* before that */
    uint32_t disorder;            /* arrivals that did not follow the previous one */
};

struct near {
    struct fabric *fabric;
    struct sockaddr_in address;
    uint8_t token[STREAM_TOKEN];
    int room; /* of each poll */
    uint8_t *memory[NEAR_MEMORIES];
    struct fabric_memory registered[NEAR_MEMORIES];
    struct near_peer peers[NEAR_PEERS];
    uint8_t ended[NEAR_COOKIES]; /* times */
    int status[NEAR_COOKIES];
    uint32_t ended_count;
    uint32_t memory_events;
    struct fabric_event memory_event; /* the last */
    uint32_t wrong;                   /* events that cannot be */
};

/* Opens the near fabric and registers memory of each kind, filled with 0xa0 + kind. */
bool near_open(struct near *n, const struct stream_config *config);
void near_close(struct near *n);
/* Polls once and returns the number of events. */
int near_poll(struct near *n);
/* Polls until the counter, which events change, has reached this value. */
bool near_until(struct near *n, const uint32_t *counter, uint32_t value);
bool near_until_ended(struct near *n, uint32_t cookie);
/* Returns whether that memory is as it was filled. */
bool near_untouched(const struct near *n, enum near_memory memory);
/* Polls until no event comes and the fabric lets its caller sleep. Returns false if neither happens
 * in time. */
bool near_rest(struct near *n, int *descriptor);

/* The token of the peer that a socket plays: a peer that connects, or one that the fabric connects
 * to. */
void raw_token(uint32_t peer, bool connects, uint8_t token[STREAM_TOKEN]);
/* Lets the fabric connect to a peer at that port. */
int raw_announce(struct near *n, uint32_t peer, bool connects, uint16_t port);
/* Returns a nonblocking socket connected to the fabric, without a greeting yet. */
int raw_dial(const struct near *n);
struct stream_greeting raw_greeting(const struct near *n, uint32_t peer);
/* Connects that peer with the fabric, completes one write, and returns the socket. */
int raw_peer(struct near *n, uint32_t peer);
bool raw_send(struct near *n, int socket, const void *bytes, size_t size);
/* Sends writes of no bytes that are announced, numbered from 0 on. */
void raw_announcements(const struct near *n, struct stream_frame *frames, uint32_t count);
/* Receives `size` bytes, or fewer at the end of the stream. Returns how many came. */
size_t raw_take(struct near *n, int socket, void *bytes, size_t size);
/* Returns whether the connection ends; drops what comes before. */
bool raw_ends(struct near *n, int socket);
/* Does an 8-byte write with `placed` into NEAR_ALL and awaits its answer: so the connection is
 * alive. */
bool raw_alive(struct near *n, int socket);
bool raw_done_comes(struct near *n, int socket, uint64_t error);

#endif

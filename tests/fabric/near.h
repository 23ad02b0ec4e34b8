/*
 * A stream fabric under test, with raw sockets in place of its peers: the test decides what these
 * send and read. All functions that wait poll the fabric meanwhile, and log its events.
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
    uint32_t broken; /* how often the peer was reported broken */
    int status;      /* status of the last such event */
    uint32_t arrived;
    uint32_t immediate;           /* immediate of the last arrival */
    uint32_t arrived_when_broken; /* arrivals before the peer was reported broken */
    uint32_t disorder;            /* arrivals out of order */
};

struct near {
    struct fabric *fabric;
    struct sockaddr_in address;
    uint8_t token[STREAM_TOKEN];
    int room; /* room for events of each poll */
    uint8_t *memory[NEAR_MEMORIES];
    struct fabric_memory registered[NEAR_MEMORIES];
    struct near_peer peers[NEAR_PEERS];
    uint8_t ended[NEAR_COOKIES]; /* number of events by cookie */
    int status[NEAR_COOKIES];
    uint32_t ended_count;
    uint32_t memory_events;
    struct fabric_event memory_event; /* the last one */
    uint32_t wrong;                   /* impossible events */
};

/* Opens the near fabric and registers memory of each kind, filled with 0xa0 + kind. */
bool near_open(struct near *n, const struct stream_config *config);
void near_close(struct near *n);
/* near_begin and near_finish are the same for tests, which fail where the fabric does not open, or
 * where impossible events came. `config` NULL: room for NEAR_PEERS peers. */
void near_begin(struct near *n, const struct stream_config *config);
void near_finish(struct near *n);
/* Registers memory that peers read and write, and waits until it is registered. */
struct fabric_memory near_add(struct near *n, void *base, uint64_t length);
/* Posts a write of these bytes to peer 1. Results as those of fabric_post_write. */
int near_write_from(struct near *n, uint32_t index, const void *source, uint64_t length,
                    uint64_t cookie);
/* Polls once and returns the number of events. */
int near_poll(struct near *n);
/* Polls until the counter, which events change, has reached this value. */
bool near_until(struct near *n, const uint32_t *counter, uint32_t value);
bool near_until_ended(struct near *n, uint32_t cookie);
/* Returns whether that memory is unchanged since near_open. */
bool near_untouched(const struct near *n, enum near_memory memory);
/* Polls until there is no event and the fabric allows a sleep on *descriptor. Returns false if that
 * does not happen in time. */
bool near_rest(struct near *n, int *descriptor);

/* Makes the token of the peer that a socket plays: of a peer that connects, or of one that the
 * fabric connects to. */
void raw_token(uint32_t peer, bool connects, uint8_t token[STREAM_TOKEN]);
/* Gives the fabric the address of a peer, with that port (fabric_connect). */
int raw_announce(struct near *n, uint32_t peer, bool connects, uint16_t port);
/* Returns a nonblocking socket connected to the fabric, without a greeting yet. */
int raw_dial(const struct near *n);
struct stream_greeting raw_greeting(const struct near *n, uint32_t peer);
/* Connects that peer with the fabric, lets it complete one write, and returns the peer's socket. */
int raw_peer(struct near *n, uint32_t peer);
bool raw_send(struct near *n, int socket, const void *bytes, size_t size);
/* Makes the frames of `count` announced writes of 0 bytes, with immediate data from 0 on. */
void raw_announcements(const struct near *n, struct stream_frame *frames, uint32_t count);
/* Receives `size` bytes, or fewer at the end of the stream. Returns their number. */
size_t raw_take(struct near *n, int socket, void *bytes, size_t size);
/* Returns whether the fabric closes the connection; drops bytes that come before. */
bool raw_ends(struct near *n, int socket);
/* Returns whether the connection works: makes a placed write of 8 bytes into NEAR_ALL, and waits
 * for its answer. */
bool raw_alive(struct near *n, int socket);
bool raw_done_comes(struct near *n, int socket, uint64_t error);

#endif

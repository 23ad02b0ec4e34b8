/*
 * A daemon for one client, as small as can be: it answers the control protocol over a real socket
 * and carries puts, gets and active messages out between the client's own contexts and regions, in
 * order. The test may take over single requests, hold the data path back, and make the daemon die.
 *
 * Threads: the daemon runs on one of its own, which owns everything but what the test is offered
 * below. The test may look at the rest once fake_daemon_stop has returned.
 */
#ifndef PWC_TESTS_CLIENTLIB_FAKE_DAEMON_H
#define PWC_TESTS_CLIENTLIB_FAKE_DAEMON_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "proto/control.pb-c.h"
#include "tests/clientlib/session/fake_session.h"
#include "shm_ring/mapping.h"

enum {
    FAKE_PACKED_MAX = 4096,
    FAKE_BOUNCE_MAX = 1 << 20,
    FAKE_MESSAGE_MAX = 1 << 26,
    FAKE_SESSIONS = 4,
    FAKE_SEGMENTS = 16,
    FAKE_REGIONS = 64,
    FAKE_REMOTES = 1024, /* handles are never used again */
    FAKE_PAIRS = 16,
};

struct fake_daemon;

/* Sees each request first. True: it has replied, or not, as it likes. */
typedef bool fake_hook(struct fake_daemon *daemon, const Pwc__ClientRequest *request);

struct fake_context {
    struct fake_session session;
    int doorbell_fd;
    int wake_fd; /* our end of the pair */
    uint64_t peer;
    bool direct; /* the context takes part in pairs */
    bool open;
    int failing; /* 0, or the status of a record whose series goes on */
};

struct fake_region {
    uint32_t segment;
    uint64_t offset, length;
    uint32_t rights;
    bool open;
};

struct fake_remote {
    uint64_t peer;
    int region; /* -1: the peer alone */
};

struct fake_pair {
    struct fake_context *origin, *target;
    struct mapping ring; /* until one of them is gone */
};

struct fake_daemon {
    /* The test's to set before it attaches. */
    fake_hook *hook;

    /* The test's to use while the daemon runs. */
    char path[108];
    _Atomic bool hold;         /* submissions stay in their ring */
    _Atomic bool hold_answers; /* and so do replies */
    _Atomic bool pairs;        /* remotes that are bound from now on go without the daemon */
    _Atomic bool lose_notes;   /* the target of a pair gets no note */
    _Atomic uint32_t handles;  /* handles of remotes start here; a multiple of FAKE_REMOTES */
    _Atomic unsigned executed; /* operations */
    _Atomic unsigned fences;   /* of these, those with SUBMIT_FENCE */
    _Atomic unsigned fail_at; /* the operation with this number fails with -EKEYREJECTED; 0: none */
    _Atomic unsigned wakes;   /* asked for by SUBMIT_WAKE */
    _Atomic unsigned segments_open;
    _Atomic unsigned regions_open;
    _Atomic unsigned sessions_open;

    /* The daemon's own. */
    char directory[64];
    pthread_t thread;
    int listen_fd, client_fd, stop_fd;
    struct fake_context contexts[FAKE_SESSIONS];
    struct mapping segments[FAKE_SEGMENTS];
    struct fake_region regions[FAKE_REGIONS];
    struct fake_remote remotes[FAKE_REMOTES];
    uint32_t remote_count;
    struct fake_pair pair_list[FAKE_PAIRS];
    uint32_t pair_count;
    bool lose_descriptors;
    uint32_t rank;
};

int fake_daemon_start(struct fake_daemon *daemon, fake_hook *hook);
/* Ends it; what the client still has of it hangs up. */
void fake_daemon_stop(struct fake_daemon *daemon);
/* Wakes it to look at `hold` again. */
void fake_daemon_kick(struct fake_daemon *daemon);

/* For hooks: send a reply, with descriptors. */
void fake_daemon_reply(struct fake_daemon *daemon, Pwc__ClientReply *reply, const int *fds,
                       int fd_count);
/* For hooks: what happens to a request that no hook takes. */
void fake_daemon_handle(struct fake_daemon *daemon, const Pwc__ClientRequest *request);
/* From now on: replies come without. */
void fake_lose_descriptors(struct fake_daemon *daemon, bool lose);
void fake_daemon_error(struct fake_daemon *daemon, uint32_t id, int status, const char *text);

/* ---- between the daemon's files ------------------------------------------------------------- */

struct fake_context *fake_context_of(struct fake_daemon *daemon, uint64_t peer);
const struct fake_remote *fake_remote_of(struct fake_daemon *daemon,
                                         const struct submit_record *record);
/* Where an operation begins in the remote region, or NULL; *status says why. */
uint8_t *fake_remote_memory(struct fake_daemon *daemon, const struct submit_record *record,
                            int *status);
/* The status of a record, whose own is `status`, as a part of its series. Call this once for each.
 */
int fake_fail_together(struct fake_context *context, const struct submit_record *record,
                       int status);
/* Moves the bytes of a put or get: 0 or the status. */
int fake_move_bytes(struct fake_daemon *daemon, const struct submit_record *record);
/* Ends an operation, with its local event where it has one. */
void fake_end(struct fake_daemon *daemon, struct fake_context *context,
              const struct submit_record *record, uint64_t peer, int status, uint64_t bytes);
void fake_wake_client(struct fake_context *context);

/* fake_pairs.c: the pair in the reply to a bind, and its descriptors: how many, or -1. */
int fake_pair_connect(struct fake_daemon *daemon, struct fake_context *origin,
                      const struct fake_remote *remote, Pwc__Pair *out, int *fds);
void fake_pairs_end(struct fake_daemon *daemon, struct fake_context *context);
void fake_carry_wake(struct fake_daemon *daemon, const struct submit_record *record);

/* fake_atomics.c: carries an atomic out: its status. *bytes is what its local event has there. */
int fake_carry_atomic(struct fake_daemon *daemon, const struct submit_record *record,
                      uint64_t *bytes);

/* Changes the word of a put with signal: the put's status. */
int fake_carry_signal(struct fake_daemon *daemon, const struct submit_record *record);

/* fake_vectors.c: places the pieces of a block, or does nothing for a vector's end: its status. */
int fake_carry_vector(struct fake_daemon *daemon, const struct submit_record *record);

/* fake_messages.c: carries a request, or a reply, out. */
void fake_carry_request(struct fake_daemon *daemon, struct fake_context *context,
                        const struct submit_record *record);
void fake_carry_reply(struct fake_daemon *daemon, struct fake_context *context,
                      const struct submit_record *record);

#endif

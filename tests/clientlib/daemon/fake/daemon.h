/*
 * A daemon for one client, as small as can be: it answers the control protocol over a real socket
 * and carries out puts, gets and active messages between the client's own contexts and regions, in
 * order. The test may answer single requests itself, stop the data path for a while, and make the
 * daemon die.
 *
 * Threads: the daemon runs on a thread of its own, which owns everything except the fields that are
 * the test's. The test may look at the other fields once fake_daemon_stop has returned. The daemon
 * holds `data` while it carries out records, so a test that takes `data` finds no record half done.
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
    FAKE_REMOTES = 1024, /* a handle is never given twice */
    FAKE_PAIRS = 16,
};

struct fake_daemon;

/* Sees each request before the daemon does. True: the hook has dealt with the request (it need not
 * have replied), so the daemon ignores it. */
typedef bool fake_hook(struct fake_daemon *daemon, const Pwc__ClientRequest *request);

struct fake_context {
    struct fake_session session;
    int doorbell_fd;
    int wake_fd; /* our end of the pair */
    uint64_t peer;
    bool direct; /* the context takes part in pairs */
    bool open;
    int failing; /* 0, or the error of an earlier record of the series that is under way */
};

struct fake_region {
    uint32_t segment;
    uint64_t offset, length;
    uint32_t rights;
    bool open;
};

struct fake_remote {
    uint64_t peer;
    int region; /* -1: bound to the peer without a region */
};

struct fake_pair {
    struct fake_context *origin, *target;
    struct mapping ring; /* until one of the two contexts is closed */
};

struct fake_daemon {
    /* The test sets this before it attaches. */
    fake_hook *hook;

    /* The test may use these while the daemon runs. */
    char path[108];
    _Atomic bool pairs;       /* binds from now on are answered with a pair */
    _Atomic bool lose_notes;  /* the daemon does not announce a pair to its target */
    _Atomic uint32_t handles; /* handles of remotes start here; a multiple of FAKE_REMOTES */
    _Atomic unsigned fail_at; /* the operation with this number fails with -EKEYREJECTED; 0: none */
    _Atomic unsigned fences;  /* records with SUBMIT_FENCE, counted before their events */
    _Atomic unsigned strided; /* records with SUBMIT_STRIDED, counted before their events */
    _Atomic unsigned segments_open;
    _Atomic unsigned regions_open;
    _Atomic unsigned sessions_open;

    /* The daemon's own fields. */
    char directory[64];
    pthread_t thread;
    pthread_mutex_t data;
    _Atomic bool hold;
    _Atomic bool hold_answers;
    unsigned executed;
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
/* Ends the daemon; a client that is still attached sees its connection closed. */
void fake_daemon_stop(struct fake_daemon *daemon);
/* Whether the daemon takes nothing from submit rings. No record is under way any more when the call
 * returns. */
void fake_hold(struct fake_daemon *daemon, bool hold);
/* Whether the daemon takes nothing from rings of submitted replies. */
void fake_hold_answers(struct fake_daemon *daemon, bool hold);
/* Number of operations carried out. Counted operations have posted their events, and an operation
 * that has posted an event is counted. */
unsigned fake_executed(struct fake_daemon *daemon);

/* For hooks: sends a reply, with descriptors. */
void fake_daemon_reply(struct fake_daemon *daemon, Pwc__ClientReply *reply, const int *fds,
                       int fd_count);
/* For hooks: handles a request as the daemon does without a hook. */
void fake_daemon_handle(struct fake_daemon *daemon, const Pwc__ClientRequest *request);
/* Whether replies come without their descriptors from now on. */
void fake_lose_descriptors(struct fake_daemon *daemon, bool lose);
void fake_daemon_error(struct fake_daemon *daemon, uint32_t id, int status, const char *text);

/* ---- between the daemon's files ------------------------------------------------------------- */

struct fake_context *fake_context_of(struct fake_daemon *daemon, uint64_t peer);
const struct fake_remote *fake_remote_of(struct fake_daemon *daemon,
                                         const struct submit_record *record);
/* The first byte of the remote region that an operation reaches, or NULL with the reason in
 * *status. */
uint8_t *fake_remote_memory(struct fake_daemon *daemon, const struct submit_record *record,
                            int *status);
/* The status that a record has as a part of its series: `status`, its own, where that is an error,
 * else the error of an earlier record. Call this once for each record. */
int fake_fail_together(struct fake_context *context, const struct submit_record *record,
                       int status);
/* Moves the bytes of a put or get: 0 or the status. */
int fake_move_bytes(struct fake_daemon *daemon, const struct submit_record *record);
/* Ends an operation, with its local event where it has one. */
void fake_end(struct fake_daemon *daemon, struct fake_context *context,
              const struct submit_record *record, uint64_t peer, int status, uint64_t bytes);
void fake_wake_client(struct fake_context *context);

/* pairs.c: fills in the pair for the reply to a bind, and its descriptors. Returns their
 * number, or -1. */
int fake_pair_connect(struct fake_daemon *daemon, struct fake_context *origin,
                      const struct fake_remote *remote, Pwc__Pair *out, int *fds);
void fake_pairs_end(struct fake_daemon *daemon, struct fake_context *context);
/* Ends the pair with this number, if there is one. */
void fake_pair_end(struct fake_daemon *daemon, uint64_t number);
void fake_carry_wake(struct fake_daemon *daemon, const struct submit_record *record);

/* atomics.c: carries out an atomic and returns its status; *bytes is the length for its local
 * event. */
int fake_carry_atomic(struct fake_daemon *daemon, const struct submit_record *record,
                      uint64_t *bytes);

/* Changes the word of a put with signal, and returns the put's status. */
int fake_carry_signal(struct fake_daemon *daemon, const struct submit_record *record);

/* vectors.c: places the pieces of a block, and returns the status. A vector's last record
 * without pieces places nothing. */
int fake_carry_vector(struct fake_daemon *daemon, const struct submit_record *record);
/* Copies equal elements out of the client's segment, and returns the status. */
int fake_carry_strided(struct fake_daemon *daemon, const struct submit_record *record);

/* messages.c: carry out a request, or a reply. */
void fake_carry_request(struct fake_daemon *daemon, struct fake_context *context,
                        const struct submit_record *record);
void fake_carry_reply(struct fake_daemon *daemon, struct fake_context *context,
                      const struct submit_record *record);

#endif

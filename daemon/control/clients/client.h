/*
 * A client: one connection to the Unix socket, and what it has in the engine.
 *
 *     STRANGER --Hello--> OPENING --the engine--> ATTACHING --the job's home--> SERVED
 *         \--Inspect--> LOOKING --Hello--> OPENING
 *     any of these --hang-up, exit of the process, error of protocol--> ENDING --> freed
 *
 * A client ends at its hang-up or at the exit of its process, whichever is first. Its socket is
 * closed when the engine has released everything, so a process that waits for this may attach
 * again.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_CLIENT_H
#define PWC_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>
#include "daemon/control/clients/quota.h"
#include "daemon/control/clients/sched_group.h"
#include "daemon/control/control.h"
#include "proto/board_abi.h"
#include "proto/control.pb-c.h"
#include "shm_ring/mapping.h"

#define CLIENT_FRAME_MAX     65536u
#define CLIENT_REPLY_MAX     (1u << 20)
#define CLIENT_STRANGERS_MAX 32u   /* one user's connections that have sent nothing yet */
#define CLIENT_LOOKERS_MAX   16u   /* one user's connections with Inspect but without Hello */
#define CLIENT_DEADLINE_MS   5000u /* the time to say Hello, to complete a frame, or to ask again */
#define CLIENT_PENDING_MAX   256u  /* requests under way: with more, read nothing from the client */
#define CLIENT_OUTPUT_PAUSE  (256u << 10) /* unsent bytes: with more, read nothing from it */
#define CLIENT_OUTPUT_MAX    (96u << 20)  /* unsent bytes: with more, end the client */
#define CLIENT_USER_OUTPUT_MAX                                                                     \
    (UINT64_C(256) << 20) /* unsent bytes of all clients of a user, shared bodies counted once:    \
                           * with more, end the client with the most */
#define CLIENT_DESCRIPTORS 3u
#define CLIENT_BOUNCE_MAX  (UINT64_C(4) << 20)
#define CLIENT_NONE        UINT32_MAX
#define REQUEST_WHY_MAX    192u
#define CLIENT_NOT_SERVED  "this daemon does not serve your user: see --allow-users"

enum client_state {
    CLIENT_STRANGER = 1, /* the client has sent nothing yet */
    CLIENT_LOOKING,      /* the client has asked for views, and may still say Hello */
    CLIENT_OPENING,      /* Hello is with the engine, or waits until an earlier client of the same
                            rank, which has ended, has left the engine */
    CLIENT_ATTACHING,    /* Hello is with the job's home */
    CLIENT_SERVED,       /* a rank of a job */
    CLIENT_ENDING,
};

/* Why a client is ended soon, by the loop. It cannot be ended at once, because the present caller
 * may be using its tables. */
enum client_doom {
    CLIENT_LIVES = 0,
    CLIENT_OVERFULL,     /* more output waits than the client may have */
    CLIENT_UNANSWERED,   /* there was no memory for a reply, so the client would wait forever */
    CLIENT_UNREGISTERED, /* memory that the client had is not registered or mapped any more */
};

/* The body of a reply: the part after the request's number, which several replies may share. The
 * user is charged for its bytes. */
struct client_body {
    uint32_t refs;
    struct quota_user *user;
    size_t size;
    uint8_t bytes[];
};

/* A reply that is being sent: its own bytes, then the bytes of the body. */
struct client_output {
    struct client_output *next;
    size_t size, sent;
    size_t own;
    struct client_body *body;            /* NULL: there is none */
    uint32_t answers;                    /* the request that this reply answers; 0: none */
    int descriptors[CLIENT_DESCRIPTORS]; /* we close them */
    uint32_t descriptor_count;
    uint8_t bytes[];
};

/* Counts of the operations that a context has done without the daemon, as its client reports them.
 */
struct direct_counts {
    uint64_t put_ops, put_bytes, get_ops, get_bytes, am_ops, am_bytes;
    /* Operations of neighbours that have changed the context's memory, through pairs that still
     * exist. The client's own counts contain those through pairs that are gone. */
    uint64_t arrived;
    /* The fullest ring that a neighbour writes for the context, 0 where there is none: its bytes,
     * how many are used now, and the neighbour's rank. */
    uint64_t pair_size, pair_used, pair_rank;
};

/* The last call about a session or a segment: the engine's progress thread forgets the mapping. The
 * call's memory is a part of the session or segment, so the call cannot fail. */
struct client_detach {
    struct call call;
    uint32_t request; /* the request that has closed the session or segment, or 0 */
    void *object;
    void (*forget)(void *object);
};

/* A context. Kept until the engine has closed it. */
struct client_session {
    struct client_session *next; /* of its client */
    struct client *client;
    uint32_t handle;     /* CLIENT_NONE: being opened */
    uint32_t generation; /* of the handle */
    uint32_t context;
    struct mapping mapping;
    bool direct;                            /* takes part in pairs (pairs.h) */
    uint32_t pairs;                         /* pairs in which it is the origin */
    struct pair *pairs_from;                /* list of the pairs in which it is the origin */
    struct pair *pairs_to;                  /* list of the pairs in which it is the target */
    uint64_t board_slots[BOARD_SLOTS / 64]; /* a bit for each slot of the board that a pair uses */
    int board;                    /* descriptor of the board for neighbours that reach the context
                                   * by pairs (board_abi.h), or -1 */
    struct direct_counts counted; /* by pairs that are gone */
    int doorbell;
    int wake;
    int range;
    /* The descriptors for the client, until they are sent. */
    int client_memory, client_wake, client_doorbell;
    uint32_t request; /* the request that opens the context, then the one that closes it */
    bool closing;
    bool watched;
    uint32_t offloads; /* offloads of the context that its client is charged for */
    struct client_detach detach;
};

struct client_segment {
    struct client_segment *next;
    struct client *client;
    uint32_t handle;
    uint32_t generation;    /* of the handle */
    struct mapping mapping; /* keeps its descriptor, for neighbours and the store; or -1 */
    int reader;             /* a descriptor that can only read the segment, or -1 */
    int range;
    uint32_t request;
    bool opening; /* not registered yet: its request waits */
    bool closing;
    struct client_detach detach;
};

struct inspection;
struct tracer;

/* A client's connection calls client_on_request for each complete request, and client_on_end at its
 * end, with `reason` as for client_end. */
typedef void (*client_on_request)(struct client *c, const Pwc__ClientRequest *request);
typedef void (*client_on_end)(struct client *c, const char *reason);

struct client {
    struct client *next; /* in the list of all clients */
    struct control *control;
    enum client_state state;
    int descriptor;
    int pidfd;     /* -1: none */
    uint32_t slot; /* in the table of requests under way (inflight.h) */
    pid_t pid;
    uid_t uid;
    bool may_serve;               /* the client is a rank of a job; otherwise it only looks */
    bool sees_all;                /* is shown other users' clients, too */
    enum sched_relation relation; /* to this daemon, when it said Hello; not looked for, and
                                   * unknown, where the progress thread never sleeps */
    uv_poll_t socket, process;
    client_on_request on_request;
    client_on_end on_end;
    uv_timer_t deadline;
    uint32_t uv_handles; /* open handles: the deadline, the socket, the process, opened in this
                          * order; the client is freed when the last one is closed */
    bool partial;        /* a frame was begun and is not complete */
    struct client_output *output, **output_tail;
    size_t output_bytes;
    enum client_doom doom;

    struct worker *worker; /* the worker whose engine serves it; NULL before Hello */
    uint32_t number;       /* the engine's handle, also for the log and pwcctl; CLIENT_NONE before
                            * there is one */
    char job[ENGINE_JOB_MAX];
    uint32_t rank;     /* DIRECTORY_ANY_RANK: the home of the open job has not given a rank yet */
    uint32_t size;     /* ranks of its job; DIRECTORY_OPEN: the job is open */
    uint64_t instance; /* of its job; 0: the job's home does not say */
    uint32_t hello_request;
    bool awaits_rank; /* its Hello waits for an earlier client of the rank (request_hello.h) */
    struct inspection *asks; /* the view that the client asks for (request_inspect.h); NULL: none */
    struct client *asks_beside; /* the next client that asks for the same view */
    uint32_t asks_request;
    bool in_line;           /* waits for its user's next turn (turns.h) */
    struct client *behind;  /* the next client that waits in line */
    uint32_t calls;         /* calls into engines that have not returned */
    uint32_t first_pending; /* first of its entries in control.pending (pending.h) */
    uint32_t waiting;       /* how many entries it has in control.pending */
    struct client_session *sessions;
    struct client_segment *segments;
    struct quota_user *user;
    uint64_t held[QUOTA_KINDS];
    struct tracer *tracer; /* NULL: the client does not read the trace (tracing.h) */
    struct call leave;     /* the last call about the client, which cannot fail */
};

/* Makes a client of an accepted descriptor, which it takes over. */
void client_accept(struct control *control, int descriptor, client_on_request on_request);
/* Takes over an inherited connection, with its slot of the table of requests under way and the
 * pidfd of its process (-1: none). NULL without memory: both descriptors stay the caller's. */
struct client *client_accept_inherited(struct control *control, uint32_t slot, int descriptor,
                                       int process, client_on_request on_request);
/* Ends the client; `reason` NULL: it hung up. A second call does nothing. */
void client_end(struct client *c, const char *reason);

#endif

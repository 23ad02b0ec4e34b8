/*
 * A client: one connection to the Unix socket, and what it has in the engine.
 *
 *     STRANGER --Hello--> GREETING --Welcome--> SERVED --hang-up, exit, offence--> ENDING --> freed
 *         \--Inspect--> LOOKING (no rank of a job) ------------------------------/
 *
 * It ends at hang-up or at the exit of its process, whichever is first. Its socket is closed when
 * the engine has let go of everything, so that a client that waits for that may attach again.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_CLIENT_H
#define PWC_CONTROL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>
#include "daemon/control/control.h"
#include "proto/control.pb-c.h"
#include "shm_ring/mapping.h"
#include "daemon/control/clients/quota.h"

#define CLIENT_FRAME_MAX     65536u
#define CLIENT_REPLY_MAX     (1u << 20)
#define CLIENT_STRANGERS_MAX 32u          /* of one user, without Hello */
#define CLIENT_LOOKERS_MAX   16u          /* of one user, with Inspect alone */
#define CLIENT_DEADLINE_MS   5000u        /* to say Hello, to end a frame, to ask again */
#define CLIENT_PENDING_MAX   256u         /* requests under way; then it is not read from */
#define CLIENT_OUTPUT_PAUSE  (256u << 10) /* bytes unsent; then it is not read from */
#define CLIENT_OUTPUT_MAX    (96u << 20)  /* bytes unsent; then it is dropped */
#define CLIENT_DESCRIPTORS   3u
#define CLIENT_BOUNCE_MAX    (UINT64_C(4) << 20)
#define CLIENT_NONE          UINT32_MAX
#define REQUEST_WHY_MAX      192u
#define CLIENT_NOT_SERVED    "this daemon does not serve your user: see --allow-users"

enum client_state {
    CLIENT_STRANGER = 1,
    CLIENT_LOOKING,
    CLIENT_GREETING,
    CLIENT_SERVED,
    CLIENT_ENDING,
};

/* A reply on its way. */
struct client_output {
    struct client_output *next;
    size_t size, sent;
    uint32_t answers;                    /* the request that it ends; 0: none */
    int descriptors[CLIENT_DESCRIPTORS]; /* ours to close */
    uint32_t descriptor_count;
    uint8_t bytes[];
};

/* What a context has done without the daemon, by its own word. */
struct direct_counts {
    uint64_t put_ops, put_bytes, get_ops, get_bytes, am_ops, am_bytes;
};

/* A context. Kept until the engine has let go of it. */
struct client_session {
    struct client_session *next; /* of its client */
    struct client *client;
    uint32_t handle; /* CLIENT_NONE: being opened */
    uint32_t context;
    struct mapping mapping;
    bool direct;                  /* it takes part in pairs (pairs.h) */
    uint32_t pairs;               /* that it is the origin of */
    int board;                    /* of who reaches it by pairs (board_abi.h), or -1 */
    struct direct_counts counted; /* by pairs that are gone */
    int doorbell;
    int wake;
    int range;
    /* The client's, until they are sent. */
    int client_memory, client_wake, client_doorbell;
    uint32_t request; /* that opens it, then that closes it */
    bool closing;
    bool watched;
    struct call detach; /* its last: it cannot fail */
};

struct client_segment {
    struct client_segment *next;
    struct client *client;
    uint32_t handle;
    struct mapping mapping; /* its descriptor stays, for neighbours */
    int reader;             /* a descriptor to read it by, or -1 */
    int range;
    uint32_t request;
    bool opening; /* not registered yet: its request waits */
    bool closing;
    struct call detach; /* its last: it cannot fail */
};

struct tracer;

struct client {
    struct client *next; /* of all */
    struct control *control;
    enum client_state state;
    int descriptor;
    int pidfd;     /* -1: none */
    uint32_t slot; /* of the table of requests under way (inflight.h) */
    pid_t pid;
    uid_t uid;
    bool served;   /* may be a rank; else it only looks */
    bool sees_all; /* others' clients too */
    uv_poll_t socket, process;
    uv_timer_t deadline;
    uint32_t uv_handles; /* open ones: the client is freed behind the last */
    bool partial;        /* a frame was begun and is not whole */
    struct client_output *output, **output_tail;
    size_t output_bytes;
    bool reading;    /* not held back */
    bool overfull;   /* to be ended for its output */
    bool unanswered; /* to be ended: there was no memory for a reply */

    struct worker *worker; /* whose engine serves it; NULL before Hello */
    uint32_t number;       /* for the log and pwcctl: the engine's handle, CLIENT_NONE before */
    bool in_engine;
    bool attached; /* the job's home knows it */
    char job[ENGINE_JOB_MAX];
    uint32_t rank, size;
    uint32_t hello_request;
    uint32_t calls;   /* to the engine, not back yet */
    uint32_t waiting; /* entries of control.pending */
    struct client_session *sessions;
    struct client_segment *segments;
    struct quota_user *user;
    uint64_t held[QUOTA_KINDS];
    struct tracer *tracer; /* it reads the trace (tracing.h), or NULL */
    struct call leave;     /* its last to the engine: it cannot fail */
};

/* ---- client.c: life ------------------------------------------------------------------------ */

/* Takes an accepted descriptor over. */
void client_accept(struct control *control, int descriptor);
/* Takes over an inherited connection, with its slot of the table of requests under way and the
 * pidfd of its process (-1: none). NULL without memory: both stay the caller's. */
struct client *client_adopt(struct control *control, uint32_t slot, int descriptor, int process);
/* What is under way of it. */
struct inflight_entry *client_inflight(const struct client *c);
/* It is a rank of a job from now on: its connection is kept. */
void client_keep(struct client *c);
/* Connections of a user in this state. */
uint32_t clients_count(const struct control *control, uid_t uid, enum client_state state);
/* One that looks has to ask again in time. */
void client_await_question(struct client *c);
/* Ends it; `reason` NULL: it hung up. Safe to call again. */
void client_end(struct client *c, const char *reason);
/* For the log. */
struct log_subject client_subject(const struct client *c);
/* Asks the engine to let go of it. */
void client_leave_engine(struct client *c);
/* Frees it when nothing of it is left. Call after anything that it waited for. */
void client_settle(struct client *c);
/* A call to its engine, or another, on its behalf: counted, so that it outlives it. NULL without
 * memory. */
struct call *client_call(struct client *c, enum call_kind kind, void (*done)(struct call *call));
struct call *client_call_to(struct client *c, const struct worker *worker, enum call_kind kind,
                            void (*done)(struct call *call));
/* The first in memory that is there. */
void client_call_in(struct client *c, struct call *call, enum call_kind kind,
                    void (*done)(struct call *call));
/* At the start of each such call's done: the client it was for. */
struct client *client_of_call(struct call *call);

/* ---- client_stream.c: bytes in and out ----------------------------------------------------- */

int client_stream_open(struct client *c);
/* Frees what is buffered. The descriptor and its handle are the caller's to close. */
void client_stream_free(struct client *c);
/* Descriptors are taken over, whatever happens. */
void client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                  uint32_t descriptor_count);
/* Reads on where there is room for what may come of it. */
void client_stream_resume(struct client *c);
/* The number of the request at the head of its socket; 0: there is none. */
uint32_t client_next_request(struct client *c);
/* control.resume: ends those whose output is too much. */
void clients_resume(uv_async_t *async);
/* control.again: looks at frames that were not whole. */
void clients_look_again(uv_timer_t *timer);

/* ---- requests.c ---------------------------------------------------------------------------- */

void request_handle(struct client *c, const Pwc__ClientRequest *request);
void reply_done(struct client *c, uint32_t request);
/* With the process that has done, or does, what was asked for. */
void reply_done_by(struct client *c, uint32_t request, pid_t pid);
__attribute__((format(printf, 4, 5))) void reply_error(struct client *c, uint32_t request,
                                                       int status, const char *format, ...);

/* ---- request_*.c: one group of requests each ----------------------------------------------- */

void request_hello(struct client *c, uint32_t request, const Pwc__Hello *hello);
/* The answer of the job's home. */
void hello_answered(struct control *control, uint64_t cookie, int status, uint32_t node);

void request_context_open(struct client *c, uint32_t request, const Pwc__ContextOpen *open);
void request_context_close(struct client *c, uint32_t request, const Pwc__ContextClose *close);
struct client_session *client_session_find(struct client *c, uint32_t handle);
void session_closed(struct worker *w, uint32_t handle);
/* For a client that still looks at it; that it was quarantined stays to be read. */
void session_say_closed(struct client_session *s);
/* Frees what the engine never saw, or has let go of. */
void session_free(struct client_session *s);

void request_segment_open(struct client *c, uint32_t request, const Pwc__SegmentOpen *open);
void request_segment_close(struct client *c, uint32_t request, const Pwc__SegmentClose *close);
void segment_ready(struct worker *w, uint32_t handle, int status);
void segment_closed(struct worker *w, uint32_t handle);
void segment_free(struct client_segment *s);

void request_region_open(struct client *c, uint32_t request, const Pwc__RegionOpen *open);
void request_region_close(struct client *c, uint32_t request, const Pwc__RegionClose *close);
void region_closed(struct control *control, uint64_t cookie);

void request_bind(struct client *c, uint32_t request, const Pwc__Bind *bind);
void request_unbind(struct client *c, uint32_t request, const Pwc__Unbind *unbind);
/* `number`: of the peer's engine (nodes.h). */
void bind_located(struct control *control, uint64_t cookie, int status, uint32_t number);
void bind_ended(struct control *control, const struct engine_notice *notice);

void request_exchange(struct client *c, uint32_t request, const Pwc__Exchange *exchange);

/* Who only looks takes none of the places kept for those who may greet, and few of its own. */
bool client_may_look(struct client *c, uint32_t request);
void request_inspect(struct client *c, uint32_t request, const Pwc__Inspect *inspect);

#endif

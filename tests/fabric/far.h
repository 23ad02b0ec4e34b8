/*
 * The far end of a fabric under test: a process of its own that does what the near end asks for
 * over a socket, polling its fabric meanwhile; for the loop, the same in this process.
 */
#ifndef PWC_TESTS_FABRIC_FAR_H
#define PWC_TESTS_FABRIC_FAR_H

#include <sys/types.h>
#include "tests/fabric/end.h"

#define OTHER 1u /* how each end numbers the other */

enum far_request_kind {
    FAR_HELLO = 1,  /* reply: address, address and key of its memory */
    FAR_CONNECT,    /* address */
    FAR_DISCONNECT, /* */
    FAR_EXPECT,     /* immediate, offset, length, seed: what must stand there at that arrival */
    FAR_AWAIT,      /* count: of arrivals in all; reply: violations so far */
    FAR_FILL,       /* offset, length, seed */
    FAR_CHECK,      /* offset, length, seed; reply: 0 or -EBADMSG */
    FAR_WRITE,      /* offset, length, immediate, target and key: announced, to the near end */
    FAR_SLEEP, /* count: sleeps until this many arrivals. Replies twice: when it goes to sleep, and
                  in the end, with the times that it slept */
    FAR_PAUSE, /* no polling until the next request */
    FAR_QUIT,
};

struct far_request {
    uint32_t kind;
    uint32_t immediate;
    uint32_t seed;
    uint32_t count;
    uint64_t offset;
    uint64_t length;
    uint64_t target;
    uint64_t key;
    struct fabric_address address;
};

struct far_reply {
    int32_t status;
    uint32_t count;
    uint64_t target;
    uint64_t key;
    struct fabric_address address;
};

struct far {
    pid_t pid;  /* 0: in this process */
    int socket; /* -1: none */
    struct end end;
};

/* Starts a far process that speaks to `near`, and sends hello. -ENODEV: its fabric does not open.
 */
int far_start(struct far *far, struct end *near, const struct rig *rig, struct far_reply *hello);
/* Sends a request and awaits the reply, pumping `near` meanwhile. -ETIMEDOUT; -EPIPE: the far
 * process died. */
int far_call(struct far *far, struct end *near, const struct far_request *request,
             struct far_reply *reply);
/* Awaits a further reply to the last request. */
int far_again(struct far *far, struct end *near, struct far_reply *reply);
/* Ends the far process and waits until it is gone. */
void far_stop(struct far *far, struct end *near);
void far_kill(struct far *far);

/* This is the main function of the far process. */
int far_main(const char *rig, const char *role, int socket);

#endif

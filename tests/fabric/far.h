/*
 * The far end of a fabric under test: a process of its own. The near end sends requests over a
 * socket; the far end carries them out, and polls its fabric meanwhile. For the fabric `loop`, the
 * far end is in the test's own process.
 */
#ifndef PWC_TESTS_FABRIC_FAR_H
#define PWC_TESTS_FABRIC_FAR_H

#include <sys/types.h>
#include "tests/fabric/end.h"

#define OTHER 1u /* the number of the other end, at both ends */

/* The requests. A comment names the fields of struct far_request that a request uses. */
enum far_request_kind {
    FAR_HELLO = 1,  /* reply: address of the far end; address and key of its memory */
    FAR_CONNECT,    /* address */
    FAR_DISCONNECT, /* none */
    FAR_EXPECT,     /* immediate, and offset, length and seed of the pattern that memory must hold
                       when a write with this immediate arrives */
    FAR_AWAIT,      /* count: total of arrivals; reply: violations so far */
    FAR_FILL,       /* offset, length and seed of the pattern to write into memory */
    FAR_CHECK,      /* offset, length and seed of the pattern in memory; reply: 0 or -EBADMSG */
    FAR_WRITE,      /* offset, length, immediate, target, key: an announced write to near */
    FAR_SLEEP, /* count: sleeps until so many writes have arrived. Replies before the sleep, and at
                  the end with the number of sleeps */
    FAR_PAUSE, /* does not poll until the next request */
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
/* Waits for a further reply to the last request. */
int far_again(struct far *far, struct end *near, struct far_reply *reply);
/* Ends the far process and waits until it is gone. */
void far_stop(struct far *far, struct end *near);
void far_kill(struct far *far);

/* This is the main function of the far process. */
int far_main(const char *rig, const char *role, int socket);

#endif

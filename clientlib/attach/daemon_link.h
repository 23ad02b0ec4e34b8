/*
 * Requests to the daemon over its Unix socket, and their replies.
 *
 * Any thread may call. Calls of several threads may be under way at once; a reply has the id of its
 * call. The library has no thread of its own: one of the waiting callers reads for all.
 *
 * Locks: `lock` guards everything except the reader's side of `frames`, which belongs to the caller
 * that has set `reading`. The lock is held while a request is written, but not while a caller waits
 * for a reply.
 */
#ifndef PWC_CLIENTLIB_DAEMON_LINK_H
#define PWC_CLIENTLIB_DAEMON_LINK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "proto/control.pb-c.h"
#include "clientlib/attach/frames.h"
#include "clientlib/attach/late.h"

#define DAEMON_TEXT_MAX 256

/*
 * Called for each reply of the expected kind, with the lock held. Returns 1 when the call is
 * complete, 0 when more replies follow, or a negative errno that ends the call. Sets the
 * descriptors that it keeps to -1.
 */
typedef int daemon_accept(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count);

struct daemon_post;

/* A call under way. If its caller waits, the struct is on the caller's stack. */
struct daemon_call {
    struct daemon_call *next;
    uint32_t id;
    Pwc__ClientReply__BodyCase expected;
    daemon_accept *accept;
    void *context;
    struct daemon_post *post; /* the post that the call belongs to; NULL: its caller waits */
    bool done;
    int result;
};

/* Posts in order. */
struct daemon_posts {
    struct daemon_post *first, *last;
};

struct daemon_link {
    struct frames frames;
    int timeout_ms;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct daemon_call *calls;
    struct late *late;        /* requests whose callers gave up (late.h) */
    struct daemon_posts held; /* posts that have not been sent yet (daemon_post.h) */
    uint32_t posted;          /* number of posts that were sent and not answered yet */
    uint32_t posted_max;
    uint32_t last_id;
    bool reading;
    uint32_t at_work; /* calls whose caller works now */
    int bell;         /* eventfd, rung for the caller at work; -1: the process can open no more */
    bool rung;
    int over;                   /* 0, or the error of every call from now on */
    char text[DAEMON_TEXT_MAX]; /* the daemon's or our own text about the last failure */
};

/* Takes the connected, nonblocking socket. */
int daemon_link_open(struct daemon_link *link, int fd, int timeout_ms);
/* Hangs up and waits a moment until the daemon has noticed. No call may be under way. */
void daemon_link_close(struct daemon_link *link);

/*
 * Sends a request (its id is filled in) and waits until `accept` has seen a complete reply. 0, an
 * error that the daemon sent or `accept` gave, -ETIMEDOUT, -ESHUTDOWN (the daemon is gone),
 * -EPROTO (the reply made no sense; the connection is given up). A NULL `accept` waits for one
 * reply.
 */
int daemon_call(struct daemon_link *link, Pwc__ClientRequest *request,
                Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context);

/* As daemon_call, with a deadline in place of the link's timeout. */
int daemon_call_until(struct daemon_link *link, Pwc__ClientRequest *request,
                      Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context,
                      int64_t deadline);

/*
 * A caller's work while it waits for a reply that may take long: `work` is called again and again
 * without the lock. `work` returns when `fd` or `bell` is readable, at the deadline, or earlier.
 * `fd` is -1 while another thread reads. That thread rings the bell when it has read a frame, or
 * when it stops reading. Where `bell` is -1, `work` must return within a moment. Only one call of a
 * link may have work at a time.
 */
struct daemon_meanwhile {
    void (*work)(void *context, int fd, int bell, int64_t deadline);
    void *context;
    int64_t deadline; /* of the call; replaces the link's timeout */
};
int daemon_call_meanwhile(struct daemon_link *link, Pwc__ClientRequest *request,
                          Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context,
                          const struct daemon_meanwhile *meanwhile);
/* Sends a request without waiting for its reply: 0, or why it cannot be sent. */
int daemon_send(struct daemon_link *link, Pwc__ClientRequest *request);
/* As daemon_send; -ETIMEDOUT: the socket has no room now. */
int daemon_try_to_send(struct daemon_link *link, Pwc__ClientRequest *request);

/*
 * As daemon_call, for a request that may be carried out twice. A daemon that was restarted
 * meanwhile (-ECONNABORTED) may or may not have carried it out, so the request is sent again. What
 * the first one has made stays until the client ends. -ECONNABORTED: daemons were restarted again
 * and again; perhaps the request itself ends them.
 */
int daemon_call_again(struct daemon_link *link, Pwc__ClientRequest *request,
                      Pwc__ClientReply__BodyCase expected, daemon_accept *accept, void *context);

/*
 * As daemon_call, for a request that ends something: a context, a segment, a region, a remote. A
 * daemon that was restarted meanwhile (-ECONNABORTED) may or may not have ended the thing, so the
 * request is sent again. 0: the thing has ended, also where the daemon does not know it (-EINVAL)
 * or has hung up. After an error the thing may still exist, and may end later.
 */
int daemon_end(struct daemon_link *link, Pwc__ClientRequest *request);

/* Called at the start of a call: forgets the text about an earlier one, unless the connection is
 * over. */
void daemon_link_begin(struct daemon_link *link);

/* The library itself refuses a call: keeps `text` for daemon_link_text. Returns `error`. */
int daemon_link_refuse(struct daemon_link *link, int error, const char *text);

/* Copies the text about the last failure, cut to `size`. Returns its whole length. */
size_t daemon_link_text(struct daemon_link *link, char *text, size_t size);

/* ---- for daemon_post.c, with the lock held --------------------------------------------------- */

/* Gives the request its id, and sends it: 0; -ETIMEDOUT: not a byte has left by the deadline. */
int daemon_link_send(struct daemon_link *link, Pwc__ClientRequest *request, int64_t deadline);
/* Takes a call out of the list of calls. */
void daemon_link_forget(struct daemon_link *link, struct daemon_call *call);
/* Reads one frame, without the lock meanwhile, unless another thread reads: 0, -ETIMEDOUT. */
int daemon_link_read(struct daemon_link *link, int64_t deadline);

#endif

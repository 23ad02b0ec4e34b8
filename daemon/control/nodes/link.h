/*
 * A link: one TCP connection with another daemon, from connect or accept to close.
 *
 * A link carries frames and runs the handshake (handshake.h). Its owner (peers.c) decides what a
 * proven connection is used for. A connection that is not proven has at most 4 KiB a frame, and 3 s
 * in all.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_LINK_H
#define PWC_CONTROL_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "proto/control.pb-c.h"
#include "daemon/control/nodes/frame.h"
#include "daemon/peering/handshake.h"
#include "daemon/peering/seal.h"

#define LINK_STRANGER_FRAME 4096u
#define LINK_FRAME_MAX      (65536u + 128u)
#define LINK_DEADLINE_MS    3000u
#define LINK_OUTPUT_MAX     (192u << 20)

struct link;
struct control;

/* The greeting of a frame as the handshake reads it, with pointers into the frame. */
struct handshake_greeting link_greeting(const Pwc__Greeting *g);

/* The functions of its owner that a link calls, on the control thread. */
struct link_events {
    /* The other side is authentic. The owner accepts it (0), or refuses it with a status and
     * text. */
    int (*proven)(struct link *link, char *text, size_t text_size);
    /* Both sides have proven themselves: frames may be sent. */
    void (*ready)(struct link *link);
    /* A frame has arrived. Returns 0, or a negative errno that ends the connection. */
    int (*frame)(struct link *link, const Pwc__PeerFrame *frame);
    /* The last call, also for a link that was never ready. `status` and `text` say why the link
     * ended. */
    void (*closed)(struct link *link, int status, const char *text);
};

enum link_state {
    LINK_CONNECTING = 1,
    LINK_GREETING,
    LINK_PROVING,
    LINK_READY,
    LINK_CLOSED,
};

struct link {
    struct link *next; /* in the owner's list */
    struct control *control;
    const struct link_events *events;
    void *owner; /* of the callbacks: a peer, or NULL before it is known */
    uv_tcp_t tcp;
    uv_timer_t deadline;
    uv_connect_t connect;
    uv_getaddrinfo_t resolve;
    bool resolving;        /* `resolve` is under way */
    struct link *all_next; /* the next link in control's list; all_at: the pointer that leads to
                            * this link */
    struct link **all_at;
    uint32_t references; /* open handles, lookups, and calls of MUNGE under way */
    enum link_state state;
    struct handshake handshake;
    struct munge_async *munge; /* the call of MUNGE under way, during which frames wait; or NULL */
    struct seal seal;
    struct frame_parser frames;
    int status; /* why the link was closed */
    bool refused_by_other;
    char text[HANDSHAKE_TEXT_MAX];
};

/* Frees all links, whose handles are closed. Blocks while a lookup or a call of MUNGE is under way.
 */
void links_free(struct control *control);

/* Dials `node` at host and port. */
int link_dial(struct control *control, uint32_t node, const char *host, const char *port,
              const struct link_events *events, void *owner, struct link **out);
/* Accepts a connection of a listening stream. */
int link_accept(struct control *control, uv_stream_t *server, const struct link_events *events,
                struct link **out);
/* Sends a frame on a ready link. If it cannot be sent, the link is closed. */
void link_send(struct link *link, const Pwc__PeerFrame *frame);
/* Sends the reason to the other side, then closes. */
void link_refuse(struct link *link, int status, const char *text);
/* Closes the link; calls `closed` at once, unless it was called already. */
void link_close(struct link *link, int status, const char *text);

#endif

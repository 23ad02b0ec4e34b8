/*
 * State that the decisions about nodes (peers.c) and the associations of engines (association.c)
 * share.
 * Thread: control.
 */
#ifndef PWC_CONTROL_PEERS_PRIVATE_H
#define PWC_CONTROL_PEERS_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "daemon/control/nodes/link.h"
#include "daemon/control/nodes/peers.h"

enum peer_state {
    PEER_IDLE = 0,
    PEER_DIALLING,
    PEER_LINKED,
    PEER_LOST,
};

struct association;
struct waiting_frame;

/* A node. Our own node has no link and is always LINKED, because its engines are peers of each
 * other. */
struct peer {
    struct control *control;
    uint32_t node;
    enum peer_state state;
    struct link *link; /* the connection that is ready, or proven and almost ready */
    struct link *dial; /* the connection that we dial, not proven */
    uv_timer_t retry;
    uint32_t retry_ms;
    uint32_t pause_ms;    /* before the dial that followed the last link; 0: none */
    uint64_t linked_ns;   /* when the last link began */
    uint64_t deadline_ns; /* until when it is dialled */
    struct waiting_frame *waiting, **waiting_tail;
    uint32_t waiting_count;
    char reason[HANDSHAKE_TEXT_MAX];
    bool ended;       /* the node has said that it ends, so log its absence without a warning */
    uint32_t engines; /* how many engines it says it has; 0: it was never linked */
    struct association *associations;
};

/* ---- peers.c --------------------------------------------------------------------------------- */

void peer_note_reason(struct peer *p, int status, const char *text);
/* Gives the node up, and closes its connections. */
void peer_give_up(struct peer *p, const char *why);
/* Dials the node unless it is linked, or being dialled. */
void peer_dial(struct peer *p);

/* ---- association.c --------------------------------------------------------------------------- */

/* Handles a notice of the worker's engine about engine number `engine` of the node. */
void association_notice(struct peer *p, struct worker *worker, uint32_t engine,
                        const struct engine_notice *notice);
/* Handles an offer that has arrived over the link. -EPROTO: it makes no sense. */
int associations_offer(struct peer *p, const Pwc__Offer *offer);
/* Handles a ping, or the answer to one, that has arrived over the link. -EPROTO: it makes no
 * sense. */
int associations_ping(struct peer *p, const Pwc__Ping *ping);
/* Sends a ping over the link, so that it ends if its other end is gone. */
void associations_probe(struct peer *p);
/* Makes the offers that have waited until the link is ready. */
void associations_linked(struct peer *p);
/* Takes all associations down, after the link has ended. */
void associations_down(struct peer *p);
/* Ends all associations with a node that is given up. */
void associations_lost(struct peer *p);
/* Closes the handles; associations_free frees the memory, after the loop. */
void associations_close(struct peer *p);
void associations_free(struct peer *p);

#endif

/*
 * The policy towards other nodes (peers.c) and the associations of engines over it
 * (association.c) share this. Thread: control.
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

/* A node. Our own has no link and is always LINKED: its engines are peers of each other. */
struct peer {
    struct control *control;
    uint32_t node;
    enum peer_state state;
    struct link *link; /* ready, or proven and about to be */
    struct link *dial; /* the one we dial, not proven */
    uv_timer_t retry;
    uint32_t retry_ms;
    uint64_t deadline_ns; /* of being DIALLING */
    struct waiting_frame *waiting, **waiting_tail;
    uint32_t waiting_count;
    char reason[HANDSHAKE_TEXT_MAX];
    bool ended;       /* the node said that it ends: its absence is no warning */
    uint32_t engines; /* its engines, as it says; 0: it was never linked */
    struct association *associations;
};

/* ---- peers.c --------------------------------------------------------------------------------- */

void peer_note_reason(struct peer *p, int status, const char *text);
/* Gives the node up, and closes its connections. */
void peer_give_up(struct peer *p, const char *why);
/* Dials the node unless it is linked, or being dialled. */
void peer_dial(struct peer *p);

/* ---- association.c --------------------------------------------------------------------------- */

/* A notice of the worker's engine about this engine of the node. */
void association_notice(struct peer *p, struct worker *worker, uint32_t engine,
                        const struct engine_notice *notice);
/* An offer has arrived over the link. -EPROTO: it makes no sense. */
int associations_offer(struct peer *p, const Pwc__Offer *offer);
/* A sign of life has arrived over the link, or is asked for. -EPROTO: it makes no sense. */
int associations_ping(struct peer *p, const Pwc__Ping *ping);
/* Sends pings over the link: if its other end is gone, that comes to light. */
void associations_probe(struct peer *p);
/* The link is ready: makes offers that wait for it. */
void associations_linked(struct peer *p);
/* The link has ended. */
void associations_down(struct peer *p);
/* The node is given up. */
void associations_lost(struct peer *p);
/* Closes handles, then frees memory. */
void associations_close(struct peer *p);
void associations_free(struct peer *p);

#endif

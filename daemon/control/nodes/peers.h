/*
 * Decides about other nodes: which node is dialled, which of two connections stays, when a node is
 * given up. Also carries what engines exchange before they are linked (association.c), for engines
 * of this node, too.
 *
 *     IDLE --wanted--> DIALLING <--retry--> (waits) --deadline--> LOST
 *                         \--ready--> LINKED --closed--> DIALLING ...
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_PEERS_H
#define PWC_CONTROL_PEERS_H

#include <stdbool.h>
#include <stdint.h>
#include "proto/control.pb-c.h"
#include "daemon/engine/engine.h"

struct control;
struct peers;
struct worker;

/* The functions that are called when a node sends a frame, is linked, or is lost. */
struct peers_events {
    /* A frame of the directory. -EPROTO closes the link. */
    int (*frame)(struct control *control, uint32_t node, const Pwc__PeerFrame *frame);
    void (*up)(struct control *control, uint32_t node); /* a link is new */
    /* The link was lost; the node is dialled again. */
    void (*down)(struct control *control, uint32_t node);
    void (*lost)(struct control *control, uint32_t node); /* the node is given up */
};

/* Listens at our own address in the list of nodes, if there are other nodes. */
int peers_open(struct control *control, const struct peers_events *events, char *why,
               size_t why_size);
/* Closes all links. */
void peers_close(struct control *control);
/* Frees links and nodes, after the loop. */
void peers_free(struct control *control);

/* Sends a frame, or keeps it until there is a link, and dials. A node that cannot be reached is
 * reported by `lost`. -ENOBUFS: too many frames wait, or there is no memory. */
int peers_send(struct control *control, uint32_t node, const Pwc__PeerFrame *frame);
/* Sends a frame where there is a link; else drops it, and dials. */
void peers_send_now(struct control *control, uint32_t node, const Pwc__PeerFrame *frame);

/* Handles the notices ENGINE_WANT_PEER, ENGINE_OFFER_READY, ENGINE_PEER_BROKEN, _SILENT and
 * _GONE. */
void peers_notice(struct worker *worker, const struct engine_notice *notice);

/* Whether a node is linked or being dialled. */
bool peers_in_reach(const struct control *control, uint32_t node);

/* The state in a word ("linked", "dialling", ...), and why the last connection ended ("" if it did
 * not). */
const char *peers_state(const struct control *control, uint32_t node, const char **reason);

#endif

/*
 * Jobs over all nodes: where ranks are, and exchanges; each job's directory is at its home node.
 *
 * A question to the home travels as a peer frame, or is answered at once where the home is this
 * node: the same code, without the wire.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_DIRECTORY_CLIENT_H
#define PWC_CONTROL_DIRECTORY_CLIENT_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

struct client;

/* Names end up in logs, on screens and in other nodes' tables. */
bool directory_name_valid(const char *name);

int directory_client_open(struct control *control);
void directory_client_close(struct control *control);

/* ---- for clients of this node -------------------------------------------------------------- */

/* hello_answered (client.h) brings the answer. */
void directory_client_attach(struct client *c, uint64_t cookie);
void directory_client_detach(struct client *c);
/* It is here still, after this daemon was started anew: the home may have forgotten it with us. */
void directory_client_announce(struct client *c);
/* bind_located brings the answer. */
void directory_client_where(struct client *c, uint32_t rank, uint64_t cookie);
/* The replies go to the pending request, as pieces come in. */
void directory_client_contribute(struct client *c, uint64_t cookie, const uint8_t *data,
                                 uint32_t length);

/* ---- from other nodes ---------------------------------------------------------------------- */

/* A frame of the directory; -EPROTO: it is none, or makes no sense. */
int directory_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* A link is new: its node is told of all our ranks whose home it is, and asked again what it was.
 */
void directory_client_node_up(struct control *control, uint32_t node);
/* A link was lost: what was on its way may be lost with it. */
void directory_client_node_down(struct control *control, uint32_t node);
/* A node is given up: its ranks are gone, what waits for it fails. */
void directory_client_node_lost(struct control *control, uint32_t node);

#endif

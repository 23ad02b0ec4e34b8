/*
 * Jobs over all nodes: where ranks are, and exchanges. Each job's directory is at its home node.
 *
 * A question to the home travels as a peer frame; where the home is this node, the same code
 * answers at once.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_DIRECTORY_CLIENT_H
#define PWC_CONTROL_DIRECTORY_CLIENT_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

struct client;

int directory_client_open(struct control *control);
void directory_client_close(struct control *control);

/* ---- for clients of this node ---------------------------------------------------------------- */

/* Announces a rank to the job's home, or asks it for one of an open job. pending.located brings the
 * answer. */
void directory_client_attach(struct client *c, uint64_t cookie);
void directory_client_detach(struct client *c);
/* Announces an inherited rank: the home may have dropped it when the earlier process ended. */
void directory_client_announce(struct client *c);
/* Asks the home where a rank is. pending.located brings the answer. */
void directory_client_where(struct client *c, uint32_t rank, uint64_t cookie);
/* Sends a rank's contribution. The pending request is answered piece by piece. */
void directory_client_contribute(struct client *c, uint64_t cookie, const uint8_t *data,
                                 uint32_t length);
/* The rank no longer waits: the home fails the exchange for all ranks, and its answer ends the
 * pending request, unless that was answered already. */
void directory_client_give_up(struct client *c, uint32_t sequence);

/* Shared with names_client.c: RankIs as a plain status, and an errno of another node, checked. */
void directory_client_answer(struct control *control, uint32_t to, uint64_t cookie, int status);
int directory_client_errno(int32_t status);

/* ---- from other nodes ---------------------------------------------------------------------- */

/* Handles a frame of the directory. -EPROTO: the frame is none of the directory's, or makes no
 * sense. */
int directory_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* After a takeover: of jobs whose home this is, ranks are still attached or have left meanwhile. */
void directory_client_resume(struct control *control);
/* A link is new: announces all our ranks whose home the node is, and repeats open questions. */
void directory_client_node_up(struct control *control, uint32_t node);
/* A link was lost, and perhaps frames under way with it. */
void directory_client_node_down(struct control *control, uint32_t node);
/* A node is given up: drops its ranks, and fails the requests that wait for its answer. */
void directory_client_node_lost(struct control *control, uint32_t node);

#endif

/*
 * Finds where ranks of jobs are, and carries out exchanges, over all nodes. Each job's directory is
 * at its home node.
 *
 * A question to the home is a peer frame. Where this node is the home, the same code answers the
 * frame at once.
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

/* Announces a rank to the job's home, or asks the home of an open job for a rank. pending.located
 * gets the answer. */
void directory_client_attach(struct client *c, uint64_t cookie);
void directory_client_detach(struct client *c);
/* Announces an inherited rank, which the home may have dropped when the earlier process ended. */
void directory_client_announce(struct client *c);
/* Asks the home where a rank is. pending.located gets the answer. */
void directory_client_where(struct client *c, uint32_t rank, uint64_t cookie);
/* Sends a rank's contribution. The pending request is answered piece by piece. */
void directory_client_contribute(struct client *c, uint64_t cookie, const uint8_t *data,
                                 uint32_t length);
/* Ends a rank's waiting: the home fails the exchange for all ranks, and its answer ends the pending
 * request, unless this was answered already. */
void directory_client_give_up(struct client *c, uint32_t sequence);

/* Also for names_client.c: sends a RankIs that has only a status; checks an errno that another node
 * has sent. */
void directory_client_answer(struct control *control, uint32_t to, uint64_t cookie, int status);
int directory_client_errno(int32_t status);

/* ---- from other nodes ---------------------------------------------------------------------- */

/* Handles a frame of the directory. -EPROTO: the frame does not belong to the directory, or makes
 * no sense. */
int directory_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* After a takeover, finds out which ranks of jobs whose home is this node are still attached. */
void directory_client_resume(struct control *control);
/* Over a new link, announces all our ranks to the node that is their job's home, and repeats
 * questions without an answer. */
void directory_client_node_up(struct control *control, uint32_t node);
/* A link was lost, and perhaps frames on it: ends the exchanges that wait for this node. */
void directory_client_node_down(struct control *control, uint32_t node);
/* Drops the ranks of a node that is given up, and fails the requests that wait for its answer. */
void directory_client_node_lost(struct control *control, uint32_t node);

#endif

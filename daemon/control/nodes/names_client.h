/*
 * Publishes names and looks for names over all nodes. Each job's home keeps the job's names
 * (daemon/peering/names.h). Where this node is the home, the same code answers at once.
 *
 * A client's names are also in its membership (survive/membership.h), so that this node can
 * announce them again to a home whose link is new.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_NAMES_CLIENT_H
#define PWC_CONTROL_NAMES_CLIENT_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

struct client;
struct pending;

/* Sends to the home what the pending request asks for: to publish p->name with its data in the
 * client's membership, to take the name back, or to look for it. pending.located gets the answer,
 * except for a name that a lookup has found, which is sent to the client. */
void names_client_ask(struct control *control, struct pending *p);
/* Lets the home forget a lookup that the client does not wait for any more. */
void names_client_give_up(struct control *control, const struct pending *p);
/* Announces the names of an inherited client. */
void names_client_announce(struct client *c);

/* Handles Publication, LookFor and NameIs. -EPROTO: the frame is none of these, or makes no
 * sense. */
int names_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* Over a new link, announces the names of our ranks whose home is this node, and repeats questions
 * without an answer. */
void names_client_node_up(struct control *control, uint32_t node);

#endif

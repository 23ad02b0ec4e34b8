/*
 * Published names over all nodes: kept at each job's home (daemon/peering/names.h), published and
 * looked for from every node. Where the home is this node, the same code answers at once.
 *
 * A client's names also stand in its membership (survive/membership.h): this node announces them
 * anew to a home whose link is new.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_NAMES_CLIENT_H
#define PWC_CONTROL_NAMES_CLIENT_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

struct client;
struct pending;

/* Asks the home what the pending request asks for: to publish p->name with what the client's
 * membership has of it, to take it back, or to look for it. pending.located brings the answer to
 * the first two, and an error of a lookup; what a lookup has found goes to the client. */
void names_client_ask(struct control *control, struct pending *p);
/* The lookup waits no longer: the home forgets it. */
void names_client_give_up(struct control *control, const struct pending *p);
/* Announces the names of an inherited client. */
void names_client_announce(struct client *c);

/* Handles Publication, LookFor and NameIs. -EPROTO: it is none, or makes no sense. */
int names_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* A link is new: announces the names of all our ranks whose home the node is, and repeats open
 * questions. */
void names_client_node_up(struct control *control, uint32_t node);

#endif

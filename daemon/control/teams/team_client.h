/*
 * This node's side of forming teams. The requests of its clients with one call over one parent
 * are a *gather* here too: it goes from the first TeamJoin to the home's TeamStart.
 *
 *     TeamJoin --> TeamCall --> home --> TeamGroup --> teams opened --> TeamReady
 *     TeamFormed <------------------------------------------- TeamStart <-- home
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_CLIENT_H
#define PWC_CONTROL_TEAM_CLIENT_H

#include "daemon/control/teams/team.h"

/* One member's call, as its client made it. Owned by its gather, once that exists. */
struct team_join {
    struct team_join *next;
    uint64_t cookie;  /* of its request that waits */
    uint32_t session; /* that is to be a member */
    bool counted;     /* in its client's quota of teams */
    struct teams_call call;
};

/* Sends the call to the job's home. `join` is copied. -ENOMEM, -ENOBUFS: it was not sent. */
int team_client_call(struct control *control, const struct teams_key *key,
                     const struct team_join *join);
/* A member asks again, after a restart, for what has ended already: replies as it was answered.
 * False: the call has not ended here. */
bool team_client_again(struct client *c, uint32_t request, const struct teams_key *key,
                       struct team_join *join);

/* TeamAsk, TeamGroup, TeamStart. -EPROTO: it makes no sense. */
int team_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* This process has taken over: what the one before had begun to open is opened. */
void team_client_resume(struct control *control);
/* A link to a home is new: calls and answers may be lost. */
void team_client_node_up(struct control *control, uint32_t node);
/* A home is given up. */
void team_client_node_lost(struct control *control, uint32_t node);
void team_client_close(struct control *control);

#endif

/*
 * Forms teams for the clients of this node, with the job's home. As at the home, the requests of
 * one call over one parent are a *gather*, from the first TeamJoin to the home's TeamStart.
 *
 *     TeamJoin --> TeamCall --> home --> TeamGroup --> teams opened --> TeamReady
 *     TeamFormed <------------------------------------------- TeamStart <-- home
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_CLIENT_H
#define PWC_CONTROL_TEAM_CLIENT_H

#include "daemon/control/teams/team.h"

/* One member's call, as its client made it. Owned by its gather. */
struct team_join {
    struct team_join *next;
    uint64_t cookie;  /* of the pending request */
    uint32_t session; /* the session that is to be a member */
    bool counted;     /* in its client's quota of teams */
    struct teams_call call;
};

/* Sends the call to the job's home. `join` is copied. -ENOMEM, -ENOBUFS: it was not sent. */
int team_client_call(struct control *control, const struct teams_key *key,
                     const struct team_join *join);
/* Replies to a member that asks again, after a restart, for a call that has ended, as it was
 * answered before. False: the call has not ended here. */
bool team_client_again(struct client *c, uint32_t request, const struct teams_key *key,
                       struct team_join *join);
/* The client no longer waits for this call, which `session` was to join: the team breaks when it
 * has started, since the others would wait for this member. The call need not be known here: an
 * earlier process may have taken it. False: the call has ended in another way, and the session is
 * in no team that it made. */
bool team_client_withdraw(struct client *c, const struct teams_key *key, uint32_t session);

/* Handles TeamAsk, TeamGroup and TeamStart. -EPROTO: the frame makes no sense. */
int team_client_frame(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
/* After a takeover, opens the teams that the earlier process had begun to open, lets members that
 * have given up leave the started ones, and notes which of their parts have been closed. */
void team_client_resume(struct control *control);
/* Repeats calls and answers to a home over a new link, because they may be lost. */
void team_client_node_up(struct control *control, uint32_t node);
/* Fails the calls that wait for a home that is given up. */
void team_client_node_lost(struct control *control, uint32_t node);
void team_client_close(struct control *control);

#endif

/*
 * The teams that contexts of this node are members of. A part of a team is what one engine has of
 * it: the members that are contexts of this engine's clients, and the area that these members
 * share.
 *
 *     COMING --all members named--> OPENING --all engines--> READY --TeamStart--> STARTED
 *                                       \                      \                    \
 *                                        a failure, or TeamStart with one, or all members left
 *                                          --> parts close, one engine after another --> freed
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_TEAM_H
#define PWC_CONTROL_TEAM_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/teams/team_roll.h"

#define TEAM_WHY_MAX 192u

enum team_phase {
    TEAM_COMING = 1,
    TEAM_OPENING,
    TEAM_READY,
    TEAM_STARTED,
    TEAM_DROPPED,
};

struct team;

/* A member on this node; owned by its part. */
struct team_member {
    struct client_session *session; /* NULL: the member has left */
    uint32_t job_rank, rank, context;
    _Atomic uint64_t *answer; /* of its last call whose parent is this team (team_answers.h); points
                               * into the team's roll */
    bool counted;             /* counted in its client's quota of teams */
    uint64_t bytes;           /* bytes of the area that its client's quota of memory is charged
                               * for */
    struct call leave;        /* the last call about the member, which cannot fail */
};

struct team_part {
    struct team *team;
    struct worker *worker;
    uint32_t handle; /* the engine's handle of the team; CLIENT_NONE: the engine does not have it */
    uint32_t me;     /* the number that this engine has as a participant */
    struct mapping area;
    int range; /* of sigbus.h, or -1 */
    bool closed;
    struct team_member *members; /* in order of team rank */
    struct engine_team_member *local;
    uint32_t count;
    struct call open, end; /* the calls that open and break the part */
};

struct team {
    struct team *next; /* in the list of all teams */
    struct control *control;
    enum team_phase phase;
    uint64_t number;
    uint32_t window;
    struct coll_choices choices; /* choices of the process that began the team */
    uint32_t size;               /* members on all nodes */
    uint32_t fullest;            /* members of the engine that has the most members */
    struct teams_run *runs;
    uint32_t run_count, run_room;
    struct mapping roll; /* the runs and the answers, for the next process (team_roll.h) */
    struct engine_team_participant *participants;
    uint32_t participant_count;
    struct team_part *parts;
    uint32_t part_count;
    uint32_t opening; /* engines that have not answered */
    int status;       /* the first failure to open it */
    char why[TEAM_WHY_MAX];
    void (*opened)(struct team *team);
    /* the gather that made it */
    uint32_t uid;
    char job[ENGINE_JOB_MAX];
    uint64_t parent;
    uint32_t context, call;
    uint64_t first; /* number of the gather's first team */
};

/* Finds a team; NULL: this node has no members of it. */
struct team *team_find(const struct control *control, uint64_t number);
/* Whether this gather has made the team. */
bool team_is_of(const struct team *t, const struct teams_key *key);

/* Begins a team; its members are named later. NULL without memory. */
struct team *team_begin(struct control *control, const struct teams_key *key, uint64_t number,
                        uint64_t first, uint32_t window);
/* Marks a team as started, also for the next process: its members may use it from now on. */
void team_start(struct team *t);
/* Ends a team that was not started, so its members have no answer yet. Frees the team, at once or
 * later. */
void team_drop(struct team *t);
/* After a takeover, for a started team: engines that do not have their part closed it before, since
 * all of its members had left. */
void team_close_rest(struct team *t);
/* Frees a team that no engine has. */
void team_free(struct team *t);

/* Handles the notice ENGINE_TEAM_CLOSED. */
void team_closed(struct worker *w, uint32_t handle);

/* Frees all teams, after the workers have ended. */
void node_teams_free(struct control *control);

#endif

/* Rows of teams, through the library: a row's two processes are ranks 0 and 1 of jobs, each on its
 * own node. */
#include <stdio.h>
#include <pwc/collective.h>
#include "tests/lib/rank.h"
#include "tests/siege/row.h"

#define CLIENTS      16u
#define CLIENT_TEAMS 64u /* more than a client may have by default are refused */
#define WAIT_MS      1000

/* The teams of one rank; both ranks make them in the same order. */
struct holder {
    struct rank rank;
    pwc_request *request;
    pwc_team *teams[CLIENT_TEAMS];
    unsigned count;
};

/* Makes teams until one is refused, which the other rank's daemon refuses, too. */
static void take_teams(struct attack *a, struct holder *h)
{
    int rc = pwc_team_world(h->rank.ctx, NULL, &h->teams[0]);

    attack_counts(a, rc);
    while (rc == 0 && ++h->count < CLIENT_TEAMS) {
        rc = pwc_team_dup(h->teams[0], NULL, &h->teams[h->count]);
        attack_counts(a, rc);
    }
}

static int call_barrier(struct holder *h, pwc_team *team)
{
    struct pwc_status status = {0};
    int rc = pwc_team_barrier(team, pwc_cid_request(h->request), 0);

    if (rc == 0 && pwc_request_wait(h->request, &status, WAIT_MS) == 1)
        rc = status.status;
    return rc;
}

/* Takes as many teams as a user may have, and calls barriers on all of them. */
static void run_teams(struct attack *a)
{
    static struct holder holders[CLIENTS];

    for (unsigned i = 0; i < CLIENTS; i++) {
        struct holder *h = &holders[i];
        char job[48];

        snprintf(job, sizeof(job), "%s-%u", a->job, i);
        if (rank_attach(&h->rank, a->sockets[a->process], job, a->process, 2, 4096) < 0 ||
            pwc_request_create(h->rank.ctx, &h->request) < 0)
            return;
    }
    attack_begins(a);
    for (unsigned i = 0; i < CLIENTS; i++)
        take_teams(a, &holders[i]);
    for (;;)
        for (unsigned i = 0; i < CLIENTS; i++)
            for (unsigned k = 0; k < holders[i].count; k++) {
                int rc = call_barrier(&holders[i], holders[i].teams[k]);

                attack_counts(a, rc);
                if (rc < 0)
                    return;
            }
}

const struct row rows_teams[] = {
    {"teams", "takes as many teams as a user may have, and calls barriers on all of them", 2,
     ROW_ALONE, NULL, run_teams},
    {0},
};

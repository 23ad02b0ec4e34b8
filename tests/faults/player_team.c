/* Makes teams, and their collectives (player_team.h). */
#include "tests/faults/player_team.h"

#include <errno.h>
#include <time.h>
#include "pwc/collective.h"
#include "pwc/request.h"

enum {
    LIMIT_MS = 15000,
    ROUNDS = 6,
    WORDS = 100, /* words of the longer allreduces, which use data rows */
    LATE_NS = 500000,
};

/* Whether a call has ended in the way that a member's death ends it. */
static bool is_death(struct player *p, int rc)
{
    if (rc != -EHOSTDOWN || !p->may_lose)
        return false;
    p->lost = true;
    return true;
}

/* ---- collectives ----------------------------------------------------------------------------- */

/* Waits for the end of a collective whose call returned `rc`. Returns its status. */
static int finish(pwc_request *request, int rc)
{
    struct pwc_status status;

    if (rc == 0)
        rc = pwc_request_wait(request, &status, LIMIT_MS);
    return rc == 1 ? status.status : rc == 0 ? -ETIMEDOUT : rc;
}

/* Makes an allreduce: each member gives `mine`, and every word of the result must be `expected`. */
static int sum(struct player *p, pwc_team *team, pwc_request *request, uint32_t words, int64_t mine,
               int64_t expected)
{
    int64_t in[WORDS] = {0}, out[WORDS] = {0};
    int rc;

    for (uint32_t i = 0; i < words; i++)
        in[i] = mine;
    rc = finish(request, pwc_team_allreduce(team, in, out, words, PWC_I64, PWC_ADD,
                                            pwc_cid_request(request), 0));
    for (uint32_t i = 0; rc == 0 && i < words; i++)
        if (out[i] != expected)
            return player_wrong(p, -EIO, "word %u of a sum is %lld instead of %lld", i,
                                (long long)out[i], (long long)expected);
    return rc;
}

/* Delays this member in every other round, so that victim and others are last in turns. */
static void come_late(const struct player *p, int round)
{
    if ((round % 2 == 0) == (p->number == VICTIM))
        nanosleep(&(struct timespec){.tv_nsec = LATE_NS}, NULL);
}

/* Makes some collectives of each kind that has a path of its own, until one ends with an error. */
static int rounds(struct player *p, pwc_team *team, pwc_request *request, int64_t expected)
{
    int rc = 0;

    for (int i = 0; rc == 0 && i < ROUNDS; i++) {
        int64_t word = pwc_team_rank(team) == 0 ? 7 + i : 0;

        come_late(p, i);
        rc = sum(p, team, request, i % 3 == 2 ? WORDS : 1, p->number, expected);
        if (rc == 0)
            rc = finish(request,
                        pwc_team_bcast(team, &word, sizeof(word), 0, pwc_cid_request(request), 0));
        if (rc == 0 && word != 7 + i)
            return player_wrong(p, -EIO, "round %d brings %lld", i, (long long)word);
        if (rc == 0)
            rc = finish(request, pwc_team_barrier(team, pwc_cid_request(request), 0));
    }
    return rc;
}

/* ---- teams ----------------------------------------------------------------------------------- */

static int leave(struct player *p, pwc_team *team)
{
    int rc = pwc_team_free(team);

    return rc < 0 ? player_wrong(p, rc, "leaving a team: %s", pwc_strerror(rc)) : 0;
}

/* Makes a team for each node: one of victim and near, one of far. Where the parent is broken no
 * team is made. */
static int work_by_node(struct player *p, pwc_request *request)
{
    pwc_team *here;
    int rc = pwc_team_split_node(p->world, &here);
    int left;

    if (rc < 0)
        return rc;
    rc = rounds(p, here, request, p->number == FAR ? FAR : VICTIM + NEAR);
    left = leave(p, here);
    return rc < 0 ? rc : left;
}

static int work(struct player *p, pwc_request *request)
{
    int rc = pwc_team_world(p->ctx, NULL, &p->world);

    if (rc < 0) {
        p->world = NULL;
        return rc;
    }
    rc = rounds(p, p->world, request, VICTIM + FAR + NEAR);
    if (rc == 0)
        rc = work_by_node(p, request);
    /* The far rank is not in the victim's second team, so it continues in p->world. */
    if (rc == 0 || rc == -EHOSTDOWN) {
        int last = sum(p, p->world, request, 1, p->number, VICTIM + FAR + NEAR);

        rc = rc < 0 ? rc : last;
    }
    return rc;
}

int player_team_work(struct player *p)
{
    pwc_request *request;
    int rc = pwc_request_create(p->ctx, &request);

    if (rc == 0)
        rc = work(p, request);
    pwc_request_free(request);
    if (rc == 0 || is_death(p, rc))
        return 0;
    if (!p->why[0])
        pwc_error_text(p->client, p->why, sizeof(p->why));
    return player_wrong(p, rc, "in teams: %s", pwc_strerror(rc));
}

int player_team_go_on(struct player *p)
{
    pwc_request *request;
    pwc_team *left;
    int rc;

    if (!p->world)
        return 0;
    rc = pwc_team_shrink(p->world, &left);
    if (rc == 0)
        rc = leave(p, p->world);
    if (rc == 0)
        rc = pwc_request_create(p->ctx, &request);
    if (rc < 0) {
        pwc_error_text(p->client, p->why, sizeof(p->why));
        return player_wrong(p, rc, "those who are left: %s", pwc_strerror(rc));
    }
    rc = pwc_team_size(left) == 2 ? sum(p, left, request, 1, p->number, FAR + NEAR) : -EBADMSG;
    pwc_request_free(request);
    if (rc == 0)
        rc = leave(p, left);
    return rc < 0 ? player_wrong(p, rc, "the team of those who are left: %s", pwc_strerror(rc)) : 0;
}

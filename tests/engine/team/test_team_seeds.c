/*
 * Random runs of teams: collectives of all kinds while links break and are cut, daemons die and
 * take over, members die, peers are given up and daemons lose their state. Each run checks that no
 * result is wrong, no member hangs, and everything is given back; and that where a team breaks, all
 * its members see that.
 *
 *     test_team_seeds [--seeds N] [--first S]    all of them; a failing one prints its replay
 *     test_team_seeds --seed S [--trace]         one of them again
 *
 * Thread: one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/engine/world/teams.h"

#define JOBS         2u
#define SEED_SECONDS 30u
#define CALLS_MAX    80u
#define ROUNDS       60000u

enum trouble { CALM, BREAKS, CUTS, CRASHES, DEATH, LOSS, FRESH, TROUBLES };

struct run {
    struct world *world;
    struct teams teams;
    struct sim_random random;
    struct teams_spec list[CALLS_MAX];
    uint32_t nodes, ranks;
    uint32_t trouble; /* bits of enum trouble */
    uint32_t cut[2];
    uint64_t restore_at; /* round in which the cut link works again; 0: no link is cut */
    uint64_t reopen_at;
    uint32_t reopen;
    bool fresh, ended; /* `ended`: a team may break, because a member, a peer or a state has gone */
};

static uint32_t below(struct run *r, uint32_t n)
{
    return (uint32_t)sim_random_below(&r->random, n);
}

static bool may(const struct run *r, enum trouble trouble)
{
    return r->trouble >> trouble & 1;
}

static void two_nodes(struct run *r, uint32_t *a, uint32_t *b)
{
    *a = below(r, r->nodes);
    *b = (*a + 1 + below(r, r->nodes - 1)) % r->nodes;
}

static void trouble_links(struct run *r)
{
    uint32_t a, b;

    two_nodes(r, &a, &b);
    if (may(r, BREAKS) && below(r, 300) == 0)
        world_link_break(r->world, a, b);
    if (may(r, CUTS) && r->restore_at == 0 && below(r, 600) == 0) {
        world_link_cut(r->world, a, b);
        r->cut[0] = a;
        r->cut[1] = b;
        r->restore_at = r->world->rounds + 1 + below(r, 400);
    }
    if (r->restore_at != 0 && r->world->rounds >= r->restore_at) {
        world_link_restore(r->world, r->cut[0], r->cut[1]);
        r->restore_at = 0;
    }
    if (may(r, LOSS) && !r->ended && below(r, 2000) == 0) {
        world_link_lost(r->world, a, b);
        r->ended = true;
    }
}

static void forget_node(struct run *r, uint32_t node)
{
    for (uint32_t i = 0; i < r->ranks; i++)
        if (r->teams.place[r->teams.member[i].place].node == node)
            r->teams.member[i].dead = true;
    for (uint32_t p = 0; p < r->teams.places; p++)
        if (r->teams.place[p].node == node)
            r->teams.place[p].closed = true;
}

static void trouble_nodes(struct run *r)
{
    uint32_t node = below(r, r->nodes);
    bool fresh = may(r, FRESH) && !r->ended && below(r, 4) == 0;

    if (r->reopen_at == 0 && (may(r, CRASHES) || fresh) && below(r, 500) == 0) {
        world_node_crash(r->world, node);
        r->reopen = node;
        r->fresh = fresh;
        r->ended |= fresh;
        r->reopen_at = r->world->rounds + 1 + below(r, 200);
        if (fresh)
            forget_node(r, node);
    }
    if (r->reopen_at != 0 && r->world->rounds >= r->reopen_at) {
        r->reopen_at = 0;
        world_node_reopen(r->world, r->reopen, r->fresh);
    }
    if (may(r, DEATH) && !r->ended && below(r, 1500) == 0) {
        teams_kill(&r->teams, below(r, r->ranks));
        r->ended = true;
    }
}

/* Checks that no team breaks without a reason, and that a broken team is broken for every member.
 */
static void check_breaks(struct run *r)
{
    for (uint32_t i = 0; i < r->world->link_count; i++)
        r->ended |= r->world->links[i].gone > 0; /* a link was silent for too long */
    for (uint32_t i = 0; i < r->ranks && !r->world->failed; i++) {
        const struct teams_member *m = &r->teams.member[i];

        if (m->dead || m->status == 0)
            continue;
        if (!r->ended || m->status != -EHOSTDOWN)
            world_fail(r->world, "rank %u: its team is broken: %s", i, strerror(-m->status));
    }
}

static void settle_troubles(struct run *r)
{
    r->trouble = 0;
    if (r->reopen_at != 0)
        world_node_reopen(r->world, r->reopen, r->fresh);
    if (r->restore_at != 0)
        world_link_restore(r->world, r->cut[0], r->cut[1]);
    r->reopen_at = r->restore_at = 0;
}

static void run_team(struct run *r, uint64_t seed, uint64_t number)
{
    static const uint32_t windows[] = {1, 2, 4, 16, 64};
    uint32_t fullest = 0, members[WORLD_NODES_MAX] = {0}, window;
    uint32_t count = 1 + below(r, CALLS_MAX);

    for (uint32_t i = 0; i < r->ranks; i++) {
        uint32_t here = ++members[r->world->clients[i].node];

        fullest = here > fullest ? here : fullest;
    }
    window = windows[below(r, 5)];
    for (uint32_t i = 0; i < count; i++)
        r->list[i] = teams_random_spec(&r->random, r->ranks, fullest);
    teams_open(&r->teams, r->world, number, r->ranks, window, r->list, count, seed);
    for (uint32_t i = 0; i < ROUNDS && !r->world->failed && !teams_over(&r->teams); i++) {
        if (i < 4000) {
            trouble_links(r);
            trouble_nodes(r);
        } else if (i == 4000) {
            settle_troubles(r);
        }
        teams_turn(&r->teams);
        world_round(r->world);
        if (i % 64 == 0)
            world_check_counts(r->world);
    }
    settle_troubles(r);
    teams_run(&r->teams, ROUNDS);
    check_breaks(r);
    teams_close(&r->teams);
}

/* Returns NULL, or what went wrong. */
static const char *run_seed(uint64_t seed, FILE *trace, char failure[400])
{
    static struct run run;
    struct run *r = &run;
    struct world_options options = {
        .seed = seed,
        .trace = trace,
        .limits = {.team_bytes = 32u << 20, .keepalive_ns = 40000, .peer_deadline_ns = 4000000}};

    memset(r, 0, sizeof *r);
    r->random.state = seed * 77 + 5;
    r->nodes = options.nodes = 2 + below(r, 5);
    if (world_open(&options, &r->world) != 0)
        return "the world does not open";
    r->trouble = below(r, 1u << TROUBLES);
    for (uint32_t n = 0; n < r->nodes; n++)
        for (uint32_t k = 1 + below(r, 3); k > 0; k--)
            world_client_open(r->world, n, r->ranks++, 1);
    run_team(r, seed, 1000 + seed);
    world_leave(r->world);
    memcpy(failure, r->world->failure, sizeof r->world->failure);
    if (r->world->failed) {
        world_close(r->world);
        return failure;
    }
    world_close(r->world);
    return NULL;
}

static int run_job(const char *name, uint64_t first, uint64_t count, uint32_t job)
{
    char failure[400];
    int failed = 0;

    for (uint64_t i = job; i < count && failed < 5; i += JOBS) {
        const char *wrong;

        alarm(SEED_SECONDS);
        wrong = run_seed(first + i, NULL, failure);
        if (!wrong)
            continue;
        failed++;
        printf("seed %llu: %s\n  again: %s --seed %llu --trace\n", (unsigned long long)(first + i),
               wrong, name, (unsigned long long)(first + i));
        fflush(stdout);
    }
    return failed;
}

static int run_all(const char *name, uint64_t first, uint64_t count)
{
    pid_t pids[JOBS];
    int failed = 0;

    for (uint32_t i = 0; i < JOBS; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            exit(run_job(name, first, count, i) != 0);
    }
    for (uint32_t i = 0; i < JOBS; i++) {
        int status = 1;

        waitpid(pids[i], &status, 0);
        if (WIFSIGNALED(status))
            printf("a job ends by signal %d\n", WTERMSIG(status));
        failed |= status;
    }
    return failed != 0;
}

int main(int argc, char **argv)
{
    uint64_t seeds = 1000, first = 1, seed = 0;
    bool trace = false;
    char failure[400];

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0)
            trace = true;
        else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0)
            seeds = strtoull(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--first") == 0)
            first = strtoull(argv[++i], NULL, 0);
        else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[++i], NULL, 0);
    }
    if (seed != 0) {
        const char *wrong = run_seed(seed, trace ? stdout : NULL, failure);

        printf("%s\n", wrong ? wrong : "well");
        return wrong != NULL;
    }
    return run_all(argv[0], first, seeds);
}

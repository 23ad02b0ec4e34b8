/* Starts the processes of a run, watches them, and compares what daemons hold (trial.h). */
#include "tests/faults/trial.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_MS = 20000 };

struct survivor {
    struct player player;
    pthread_t thread;
    const struct trial *trial;
    const struct trial_plan *plan;
    const char *job;
    uint32_t number;
    int rc;
};

bool trial_open(struct trial *t, const struct cluster_options *options, const char *victim)
{
    *t = (struct trial){.victim = victim};
    t->stage = stage_share(sizeof(*t->stage), &t->stage_fd);
    if (!t->stage || cluster_open(&t->cluster, options) < 0) {
        fprintf(stderr, "%s\n", t->stage ? t->cluster.failure : "no memory to share");
        return false;
    }
    return true;
}

bool trial_close(struct trial *t)
{
    bool good = cluster_close(&t->cluster) == 0;

    if (!good)
        fprintf(stderr, "%s\n", t->cluster.failure);
    if (t->stage) {
        stage_unshare(t->stage, sizeof(*t->stage), t->stage_fd);
        t->stage = NULL;
    }
    return good;
}

/* ---- one run --------------------------------------------------------------------------------- */

static pid_t start_victim(const struct trial *t, const struct trial_plan *plan, const char *job)
{
    char role[8];
    pid_t pid;

    snprintf(role, sizeof(role), "%d", (int)plan->role);
    pid = fork();
    if (pid == 0) {
        stage_name(STAGE_FD, t->stage_fd);
        plan->in_victim(plan->context);
        execl(t->victim, t->victim, t->cluster.nodes[0].socket, job, role, NULL);
        _exit(127);
    }
    return pid;
}

static void *survive(void *argument)
{
    struct survivor *s = argument;

    s->rc = player_run(&s->player, s->trial->stage, s->plan->role, s->number,
                       s->trial->cluster.nodes[s->number == FAR ? 1 : 0].socket, s->job);
    return NULL;
}

/* Waits for the victim's end. Returns false when the process had to be killed. */
static bool await_victim(const struct trial *t, const struct trial_plan *plan, pid_t pid,
                         int *status)
{
    struct pollfd exited = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    int left = LIMIT_MS;

    while (poll(&exited, 1, 1) == 0 && left-- > 0) {
        if (t->stage->may_begin || !t->stage->bound)
            continue;
        plan->bound(plan->context);
        t->stage->may_begin = 1;
    }
    if (left <= 0) {
        fprintf(stderr, "the victim does not end\n");
        kill(pid, SIGKILL);
    }
    waitpid(pid, status, 0);
    close(exited.fd);
    return left > 0;
}

static bool check(const struct survivor *s)
{
    if (s->rc == 0 || s->plan->may_fail == TRIAL_LATE ||
        (s->plan->may_fail == TRIAL_IN_TIME && s->rc != -ETIMEDOUT))
        return true;
    fprintf(stderr, "rank %u: %s\n", s->number, s->player.why);
    return false;
}

bool trial_run(struct trial *t, const struct trial_plan *plan, int *status)
{
    struct survivor survivors[2];
    char job[32];
    bool good;
    pid_t pid;

    snprintf(job, sizeof(job), "trial-%u", t->runs++);
    memset(t->stage, 0, sizeof(*t->stage));
    t->stage->call_ms = plan->call_ms;
    t->stage->may_begin = plan->bound == NULL;
    pid = start_victim(t, plan, job);
    for (uint32_t i = 0; i < 2; i++) {
        survivors[i] =
            (struct survivor){.trial = t, .plan = plan, .job = job, .number = i == 0 ? FAR : NEAR};
        pthread_create(&survivors[i].thread, NULL, survive, &survivors[i]);
    }
    good = await_victim(t, plan, pid, status);
    t->stage->over = 1;
    for (int i = 0; i < 2; i++) {
        pthread_join(survivors[i].thread, NULL);
        good = check(&survivors[i]) && good;
    }
    return good;
}

/* ---- resources after a run ------------------------------------------------------------------ */

bool trial_settles(struct trial *t)
{
    bool good = cluster_runs(&t->cluster);

    if (!good)
        fprintf(stderr, "%s\n", t->cluster.failure);
    for (int i = 0; good && i < 2; i++)
        good = look_node_returns_to(&t->cluster.nodes[i], &t->quiet[i]);
    return good;
}

bool trial_note_quiet(struct trial *t)
{
    return look_node_holdings(&t->cluster.nodes[0], &t->quiet[0]) &&
           look_node_holdings(&t->cluster.nodes[1], &t->quiet[1]);
}

bool trial_serves(struct trial *t)
{
    struct bystanders others;

    if (bystanders_start(&others, &t->cluster, "bystanders") < 0)
        return false;
    bystanders_go_on(&others);
    return bystanders_stop(&others);
}

/*
 * Runs a job. One thread; everything it waits for is a descriptor (signals, readiness, output) or
 * the deadline of its phase.
 */
#include "tools/pwcrun/job.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/pwcrun/node.h"
#include "tools/pwcrun/rank.h"
#include "tools/pwcrun/child.h"
#include "proto/clock.h"

#define START_MS INT64_C(60000) /* for all daemons to serve */
#define TERM_MS  INT64_C(3000)  /* from SIGTERM to SIGKILL, for ranks */
#define STOP_MS  INT64_C(10000) /* from SIGTERM to SIGKILL, for daemons */
#define NEVER    INT64_MAX

enum phase {
    STARTING,    /* daemons are starting */
    RUNNING,     /* ranks run, none has failed */
    GRACE,       /* one rank has failed, the others may end on their own */
    TERMINATING, /* SIGTERM has been sent to the ranks */
    KILLING,     /* the ranks have been killed */
    STOPPING,    /* no rank is left; SIGTERM has been sent to the daemons */
    FORCING,     /* daemons have been killed */
    DONE,
};

struct job {
    const struct options *options;
    const struct workdir *dir;
    struct reaper *reaper;
    struct node *nodes;
    struct rank *ranks;
    char *list; /* the daemons' list of nodes */
    char name[32];
    char daemon[4096];
    unsigned nodes_alive, ranks_alive;
    enum phase phase;
    int64_t deadline; /* of the phase, ms */
    int status;       /* of the first failure */
    unsigned ending;  /* ending signals forwarded so far */
    int signals;      /* signalfd */
    struct pollfd *polled;
};

static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

static bool is_ignored(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

/* A signalfd gives a blocked signal even where it is ignored. What our parent ignores, as nohup(1)
 * ignores SIGHUP, is not for us and not for the ranks. */
static void signal_set(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (size_t i = 0; i < sizeof(forwarded) / sizeof(forwarded[0]); i++)
        if (!is_ignored(forwarded[i]))
            sigaddset(set, forwarded[i]);
}

int job_block_signals(void)
{
    sigset_t set;
    signal_set(&set);
    /* With SIGCHLD ignored, as some parents leave it, our children's statuses would be lost. */
    if (signal(SIGCHLD, SIG_DFL) == SIG_ERR || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return -errno;
    return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static void enter(struct job *job, enum phase phase, int64_t allowed_ms)
{
    job->phase = phase;
    job->deadline = allowed_ms == NEVER ? NEVER : now_ms() + allowed_ms;
}

/* Signals the process groups, so that processes that the ranks have started get the signal too. */
static void signal_ranks(const struct job *job, int number)
{
    for (unsigned i = 0; i < job->options->ranks; i++)
        if (job->ranks[i].pid > 0)
            kill(-job->ranks[i].pid, number);
}

static void signal_nodes(const struct job *job, int number)
{
    for (unsigned i = 0; i < job->options->nodes; i++)
        if (job->nodes[i].pid > 0)
            kill(-job->nodes[i].pid, number);
}

/* From now on pwcrun ends processes, so daemons log that ranks and peers have gone. These lines are
 * kept, and shown only if a daemon itself fails. */
static void hold_logs(struct job *job)
{
    for (unsigned i = 0; !job->options->verbose && i < job->options->nodes; i++)
        output_hold(&job->nodes[i].log);
}

static void stop_nodes(struct job *job)
{
    hold_logs(job);
    signal_nodes(job, SIGTERM);
    enter(job, STOPPING, STOP_MS);
}

/* Notes a failure: keeps the first status, and lets the run end. Writes the message by one call, so
 * that no line of a rank comes into its middle. */
__attribute__((format(printf, 3, 4))) static void fail(struct job *job, int status,
                                                       const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "pwcrun: %s\n", text);
    if (job->status == 0)
        job->status = status;
    if (job->phase == STARTING) {
        stop_nodes(job);
    } else if (job->phase == RUNNING) {
        if (job->ranks_alive > 0)
            fprintf(stderr, "pwcrun: ending the others in %g s (--grace)\n", job->options->grace_s);
        enter(job, GRACE, (unsigned)(job->options->grace_s * 1000));
    }
}

/* ---- starting -------------------------------------------------------------------------------- */

static void start_nodes(struct job *job)
{
    enter(job, STARTING, START_MS);
    for (unsigned i = 0; i < job->options->nodes && job->phase == STARTING; i++) {
        struct node *node = &job->nodes[i];
        if (node_start(node, job->daemon, job->list, job->options, job->dir, job->reaper) < 0) {
            fail(job, PWCRUN_FAILED, "node %u could not be started", i);
            return;
        }
        job->nodes_alive++;
        if (job->options->verbose)
            fprintf(stderr, "pwcrun: node %u: pid %d, %s:%u, socket %s%s%s\n", i, (int)node->pid,
                    node->host, node->port, node->socket, node->netns[0] != '\0' ? ", netns " : "",
                    node->netns);
    }
}

static void not_started(struct job *job, int rc)
{
    int status = rc == -ENOENT   ? PWCRUN_NOT_FOUND
                 : rc == -EACCES ? PWCRUN_NOT_EXECUTABLE
                                 : PWCRUN_FAILED;
    fail(job, status, "%s: %s", job->options->program[0], strerror(-rc));
}

/* With --hold: starts the launcher, or prints where the daemons are. */
static void hold(struct job *job)
{
    char *sockets = nodes_sockets(job->nodes, job->options->nodes);
    int rc = sockets != NULL ? 0 : -ENOMEM;
    enter(job, RUNNING, NEVER);
    if (rc == 0 && job->options->ranks == 0) {
        printf("%s\n", sockets);
        fflush(stdout);
    } else if (rc == 0) {
        rc = rank_start_launcher(&job->ranks[0], sockets, job->options, job->reaper);
        job->ranks_alive = rc == 0;
    }
    free(sockets);
    if (rc < 0)
        not_started(job, rc);
}

/* Whether the daemons serve until a signal comes. */
static bool holds(const struct job *job)
{
    return job->options->ranks == 0 && job->phase == RUNNING && job->ending == 0;
}

static void start_ranks(struct job *job)
{
    enter(job, RUNNING, NEVER);
    unsigned count = job->options->ranks;
    for (unsigned i = 0; i < count && job->phase == RUNNING; i++) {
        struct rank *rank = &job->ranks[i];
        const struct node *node = &job->nodes[rank_node(i, count, job->options->nodes)];
        int rc = rank_start(rank, i, node, job->name, job->options, job->reaper);
        if (rc < 0) {
            not_started(job, rc);
            return;
        }
        job->ranks_alive++;
        if (job->options->verbose)
            fprintf(stderr, "pwcrun: rank %u: pid %d, node %u\n", i, (int)rank->pid, node->number);
    }
}

/* ---- ends of processes, signals -------------------------------------------------------------- */

/* Formats "ended with status 3", "was ended by signal 9 (Killed)". */
static const char *how_ended(int wait_status, char out[80])
{
    if (WIFSIGNALED(wait_status))
        snprintf(out, 80, "was ended by signal %d (%s)", WTERMSIG(wait_status),
                 strsignal(WTERMSIG(wait_status)));
    else
        snprintf(out, 80, "ended with status %d", WEXITSTATUS(wait_status));
    return out;
}

static void rank_ended(struct job *job, struct rank *rank, int wait_status)
{
    char how[80];
    rank->pid = 0;
    job->ranks_alive--;
    output_drain(&rank->out); /* the rank's last lines come first */
    output_drain(&rank->err);
    if (wait_status != 0 && job->status == 0)
        fail(job, child_status(wait_status), "%s %u %s", job->options->hold ? "launcher" : "rank",
             rank->number, how_ended(wait_status, how));
}

static void node_ended(struct job *job, struct node *node, int wait_status)
{
    char how[80];
    reaper_sweep_shm(node->pid);
    node->pid = 0;
    job->nodes_alive--;
    /* A daemon that was stopped before it served may end in any way: libraries handle SIGTERM. */
    if (job->phase >= STOPPING && (wait_status == 0 || !node->serving))
        return;
    output_drain(&node->log); /* the daemon's last lines come first */
    output_release(&node->log);
    fail(job, PWCRUN_FAILED, "the daemon of node %u %s", node->number, how_ended(wait_status, how));
}

static void child_ended(struct job *job, pid_t pid, int wait_status)
{
    for (unsigned i = 0; i < job->options->ranks; i++) {
        if (job->ranks[i].pid == pid) {
            rank_ended(job, &job->ranks[i], wait_status);
            return;
        }
    }
    for (unsigned i = 0; i < job->options->nodes; i++) {
        if (job->nodes[i].pid == pid) {
            node_ended(job, &job->nodes[i], wait_status);
            return;
        }
    }
}

static void reap(struct job *job)
{
    siginfo_t info = {0};
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
        pid_t pid = info.si_pid;
        info.si_pid = 0;
        if (pid == job->reaper->pid) {
            reaper_lost(job->reaper);
            continue;
        }
        /* Until the pid is reaped, no other process or group can have its number. */
        kill(-pid, SIGKILL);
        reaper_ended(job->reaper, pid);
        int status;
        waitpid(pid, &status, 0);
        child_ended(job, pid, status);
    }
}

static void take_signal(struct job *job, int number)
{
    if (number == SIGCHLD) {
        reap(job);
        return;
    }
    bool ends = number != SIGUSR1 && number != SIGUSR2;
    if (job->phase == STARTING) {
        if (ends)
            fail(job, 128 + number, "%s before the daemons were ready", strsignal(number));
        return;
    }
    signal_ranks(job, number);
    if (ends)
        hold_logs(job);
    /* Ranks may take their time after the first signal; a second one kills them. */
    if (ends && ++job->ending > 1 && job->ranks_alive > 0 && job->phase < KILLING) {
        if (job->status == 0)
            job->status = 128 + number;
        signal_ranks(job, SIGKILL);
        enter(job, KILLING, NEVER);
    }
}

static void take_signals(struct job *job)
{
    struct signalfd_siginfo info;
    while (read(job->signals, &info, sizeof(info)) == sizeof(info))
        take_signal(job, (int)info.ssi_signo);
}

static void deadline_passed(struct job *job)
{
    switch (job->phase) {
    case STARTING:
        fail(job, PWCRUN_FAILED, "the daemons were not ready within %lld s (--verbose shows more)",
             (long long)(START_MS / 1000));
        break;
    case GRACE:
        hold_logs(job);
        signal_ranks(job, SIGTERM);
        enter(job, TERMINATING, TERM_MS);
        break;
    case TERMINATING:
        signal_ranks(job, SIGKILL);
        enter(job, KILLING, NEVER);
        break;
    case STOPPING:
        fprintf(stderr, "pwcrun: %u daemons have not ended within %lld s of SIGTERM: killed\n",
                job->nodes_alive, (long long)(STOP_MS / 1000));
        if (job->status == 0)
            job->status = PWCRUN_FAILED;
        signal_nodes(job, SIGKILL);
        enter(job, FORCING, NEVER);
        break;
    case RUNNING:
    case KILLING:
    case FORCING:
    case DONE:
        break;
    }
}

/* Takes the steps that follow from the states of the children. */
static void advance(struct job *job)
{
    if (job->phase == STARTING) {
        unsigned serving = 0;
        for (unsigned i = 0; i < job->options->nodes; i++)
            serving += job->nodes[i].serving;
        if (serving == job->options->nodes && job->options->hold)
            hold(job);
        else if (serving == job->options->nodes)
            start_ranks(job);
    }
    if (job->phase > STARTING && job->phase < STOPPING && job->ranks_alive == 0 && !holds(job))
        stop_nodes(job);
    if (job->phase >= STOPPING && job->nodes_alive == 0)
        enter(job, DONE, NEVER);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static unsigned poll_outputs(struct job *job, unsigned at, struct output *output)
{
    if (output->from >= 0)
        job->polled[at++] = (struct pollfd){.fd = output->from, .events = POLLIN};
    return at;
}

static void wait_for_something(struct job *job)
{
    unsigned count = 0;
    job->polled[count++] = (struct pollfd){.fd = job->signals, .events = POLLIN};
    for (unsigned i = 0; i < job->options->nodes; i++) {
        struct node *node = &job->nodes[i];
        if (node->ready >= 0)
            job->polled[count++] = (struct pollfd){.fd = node->ready, .events = POLLIN};
        count = poll_outputs(job, count, &node->log);
    }
    for (unsigned i = 0; i < job->options->ranks; i++) {
        count = poll_outputs(job, count, &job->ranks[i].out);
        count = poll_outputs(job, count, &job->ranks[i].err);
    }
    int64_t left = job->deadline == NEVER ? -1 : job->deadline - now_ms();
    poll(job->polled, count, job->deadline == NEVER ? -1 : left > 0 ? (int)left : 0);
}

static void forward_all(struct job *job, void (*forward)(struct output *))
{
    for (unsigned i = 0; i < job->options->nodes; i++)
        forward(&job->nodes[i].log);
    for (unsigned i = 0; i < job->options->ranks; i++) {
        forward(&job->ranks[i].out);
        forward(&job->ranks[i].err);
    }
}

static void loop(struct job *job)
{
    start_nodes(job);
    while (advance(job), job->phase != DONE) {
        wait_for_something(job);
        forward_all(job, output_forward);
        for (unsigned i = 0; i < job->options->nodes; i++)
            if (job->nodes[i].ready >= 0)
                node_read_ready(&job->nodes[i]); /* SIGCHLD reports an early end */
        take_signals(job);
        if (job->deadline != NEVER && now_ms() >= job->deadline)
            deadline_passed(job);
    }
    forward_all(job, output_close);
}

int job_run(const struct options *options, const struct workdir *dir, const struct network *network,
            struct reaper *reaper)
{
    struct job job = {.options = options, .dir = dir, .reaper = reaper};
    snprintf(job.name, sizeof(job.name), "pwcrun-%d", (int)network->owner);
    job.status = PWCRUN_FAILED;

    sigset_t set;
    signal_set(&set);
    job.signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    job.nodes = calloc(options->nodes, sizeof(*job.nodes));
    job.ranks = calloc(options->ranks, sizeof(*job.ranks));
    job.polled =
        calloc(1 + 2 * (size_t)options->nodes + 2 * (size_t)options->ranks, sizeof(*job.polled));
    if (job.signals < 0 || job.nodes == NULL || job.ranks == NULL || job.polled == NULL) {
        perror("pwcrun: preparing the run");
        goto out;
    }
    for (unsigned i = 0; i < options->ranks; i++)
        job.ranks[i].out.from = job.ranks[i].err.from = -1;
    if (node_daemon_path(options, job.daemon, sizeof(job.daemon)) < 0)
        goto out;
    int rc = nodes_plan(job.nodes, options, dir, network);
    if (rc < 0) {
        fprintf(stderr, "pwcrun: finding free ports: %s\n", strerror(-rc));
        goto out;
    }
    job.list = nodes_list(job.nodes, options->nodes);
    if (job.list == NULL) {
        perror("pwcrun: listing the nodes");
        goto out;
    }
    job.status = 0;
    loop(&job);
out:
    free(job.list);
    free(job.polled);
    free(job.ranks);
    free(job.nodes);
    if (job.signals >= 0)
        close(job.signals);
    return job.status;
}

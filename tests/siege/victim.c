/*
 * The victim of the siege: two ranks on two nodes that play ping-pong with puts of 8 bytes.
 *
 *     victim --socket PATH --socket PATH [--user NUMBER]
 *
 * Reads commands from standard input, one on a line, and answers each with a line of JSON:
 *
 *     play MS    plays for so long, and prints the rate, the times, and what failed
 *     attach     attaches a rank of a new job at each node, for each home that a job may have
 *
 * The end of standard input ends the program.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/peering/directory.h"
#include "tests/lib/rank.h"

#define NODES       2u
#define SAMPLES_MAX (1u << 22)
#define ROUND_MS    20000 /* a longer round counts as failed */
#define WAIT_MS     1000
#define BYTES       8

static const char *sockets[NODES];
static char job[32];
static uint32_t samples[SAMPLES_MAX]; /* times of round trips, ns */

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Puts once. Local events only report failures. Returns 0 or a negative errno. */
static int hit(struct rank *r, uint64_t round, int64_t until)
{
    struct pwc_event event;

    for (;;) {
        int rc = pwc_put(r->remote, 0, r->memory, BYTES, pwc_cid_u64(round), pwc_cid_u64(round),
                         PWC_NO_LCE);

        if (rc != -EAGAIN)
            return rc;
        if (now_ns() > until)
            return -ETIMEDOUT;
        rc = pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL, &event, 1);
        if (rc == 1 && event.status < 0)
            return event.status;
    }
}

/* Waits for the other side's put. Returns 0, or an error. */
static int take(struct rank *r, uint64_t round, int64_t until)
{
    struct pwc_event event;

    for (;;) {
        int rc = pwc_wait(r->ctx, PWC_ANY, PWC_LOCAL | PWC_REMOTE, &event, WAIT_MS);

        if (rc == 1 && event.status < 0)
            return event.status;
        if (rc == 1 && event.kind == PWC_REMOTE)
            return event.id == round && event.length == BYTES ? 0 : -EBADMSG;
        if (rc < 0 && rc != -ETIMEDOUT && rc != -EAGAIN)
            return rc;
        if (now_ns() > until)
            return -ETIMEDOUT;
    }
}

_Noreturn static void echo(struct rank *r)
{
    int rc = 0;

    for (uint64_t round = 1; rc == 0; round++) {
        rc = take(r, round, INT64_MAX);
        if (rc == 0)
            rc = hit(r, round, now_ns() + ROUND_MS * INT64_C(1000000));
    }
    fprintf(stderr, "victim: rank 1: %s\n", pwc_strerror(rc));
    exit(1);
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static double at(size_t count, double share)
{
    return count > 0 ? samples[(size_t)(share * (double)(count - 1))] / 1e3 : 0;
}

/* Plays for `ms` and prints the result. Returns false when a round has failed, so that no more can
 * be played. */
static bool play(struct rank *r, uint64_t *round, long ms)
{
    int64_t start = now_ns(), now = start, longest = 0, end = start + ms * INT64_C(1000000);
    size_t count = 0;
    int rc = 0;

    while (rc == 0 && now < end && count < SAMPLES_MAX) {
        int64_t began = now, until = began + ROUND_MS * INT64_C(1000000);

        rc = hit(r, ++*round, until);
        if (rc == 0)
            rc = take(r, *round, until);
        now = now_ns();
        longest = now - began > longest ? now - began : longest;
        if (rc == 0)
            samples[count++] = now - began < UINT32_MAX ? (uint32_t)(now - began) : UINT32_MAX;
    }
    qsort(samples, count, sizeof(samples[0]), compare);
    printf("{\"rounds\": %zu, \"rate\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
           "\"longest_us\": %.1f, \"failed\": %d, \"why\": \"%s\"}\n",
           count, (double)count * 1e9 / (double)(now - start), at(count, 0.5), at(count, 0.99),
           (double)longest / 1e3, rc < 0, rc < 0 ? pwc_strerror(rc) : "");
    return rc == 0;
}

/* Attaches the only rank of a new job with this home, makes an exchange, and leaves. */
static int attach_one(unsigned node, unsigned home, unsigned *number)
{
    char name[60];
    struct directory_id id = {getuid(), name};
    struct rank r;
    uint64_t mine = 0, all;
    int rc;

    do
        snprintf(name, sizeof(name), "%s-%u", job, ++*number);
    while (directory_home(&id, NODES) != home);
    rc = rank_attach(&r, sockets[node], name, 0, 1, 4096);
    if (rc < 0)
        return rc;
    rc = pwc_exchange(r.ctx, &mine, sizeof(mine), &all);
    rank_detach(&r);
    return rc;
}

static void attach(void)
{
    static unsigned number;
    int64_t longest = 0;
    unsigned failed = 0;
    const char *why = "";

    for (unsigned i = 0; i < NODES * NODES; i++) {
        int64_t began = now_ns();
        int rc = attach_one(i / NODES, i % NODES, &number);

        if (rc < 0) {
            failed++;
            why = pwc_strerror(rc);
        }
        began = now_ns() - began;
        longest = began > longest ? began : longest;
    }
    printf("{\"attached\": %u, \"failed\": %u, \"longest_us\": %.1f, \"why\": \"%s\"}\n",
           NODES * NODES - failed, failed, (double)longest / 1e3, why);
}

static bool enter(struct rank *r, uint32_t number)
{
    return rank_attach(r, sockets[number], job, number, 2, 4096) == 0 && rank_bind_other(r) == 0;
}

static int serve(void)
{
    struct rank r;
    uint64_t round = 0;
    char line[64];

    if (!enter(&r, 0))
        return 1;
    printf("{\"ready\": true}\n");
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        long ms = 0;
        bool goes_on = true;

        if (sscanf(line, "play %ld", &ms) == 1)
            goes_on = play(&r, &round, ms);
        else if (strcmp(line, "attach\n") == 0)
            attach();
        else
            return 2;
        fflush(stdout);
        if (!goes_on)
            return 1;
    }
    rank_detach(&r);
    return 0;
}

static bool become(uid_t uid)
{
    return (uid == getuid() || (setgroups(0, NULL) == 0 && setresgid(uid, uid, uid) == 0 &&
                                setresuid(uid, uid, uid) == 0)) &&
           prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"socket", required_argument, NULL, 's'}, {"user", required_argument, NULL, 'u'}, {0}};
    unsigned count = 0;
    uid_t uid = getuid();
    pid_t parent, other;
    int c, status;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
        if (c == 's' && count < NODES)
            sockets[count++] = optarg;
        else if (c == 'u')
            uid = (uid_t)strtoul(optarg, NULL, 10);
        else
            return 2;
    if (count != NODES || optind != argc) {
        fprintf(stderr, "usage: victim --socket PATH --socket PATH [--user NUMBER]\n");
        return 2;
    }
    if (!become(uid)) {
        fprintf(stderr, "victim: becoming user %u: %s\n", (unsigned)uid, strerror(errno));
        return 1;
    }
    parent = getpid();
    snprintf(job, sizeof(job), "victim-%d", (int)parent);
    other = fork();
    if (other == 0) {
        struct rank r;

        if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent && enter(&r, 1))
            echo(&r);
        _exit(1);
    }
    if (other < 0)
        return 1;
    status = serve();
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    return status;
}

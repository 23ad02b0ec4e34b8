/*
 * Five programs hang at the same time, for five reasons, and pwcctl doctor must name each: a rank
 * that takes no events, a rank that is missing in a barrier, a peer that has ended, a link that is
 * down, and a neighbour's ring that is full.
 *
 *     test_hangs PWCD PWCCTL
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"

enum { NODES = 3, BYTES = 4096, LOOKS_S = 90, PATIENCE_MS = 300000 };

/* Set by main; then only the test's thread uses them. */
static const char *pwcd, *pwcctl;
static struct cluster cluster;

/* A job of two ranks. */
struct pair {
    struct rank ranks[2];
};

/* Attaches both ranks, and binds the first to the second. */
static void open_pair(struct pair *p, const char *job, unsigned first_node, unsigned second_node)
{
    CU_ASSERT_EQUAL_FATAL(
        rank_attach(&p->ranks[0], cluster.nodes[first_node].socket, job, 0, 2, BYTES), 0);
    CU_ASSERT_EQUAL_FATAL(
        rank_attach(&p->ranks[1], cluster.nodes[second_node].socket, job, 1, 2, BYTES), 0);
    CU_ASSERT_EQUAL_FATAL(rank_bind(&p->ranks[0], &p->ranks[1]), 0);
}

/* Attaches a rank whose timeout is long enough to wait in a barrier during all looks. */
static void attach_patiently(struct rank *r, unsigned node, uint32_t number)
{
    const struct pwc_attr attr = {.socket = cluster.nodes[node].socket,
                                  .job = "absent",
                                  .rank = number,
                                  .size = 2,
                                  .timeout_ms = PATIENCE_MS};

    *r = (struct rank){.number = number};
    CU_ASSERT_EQUAL_FATAL(pwc_init(&attr, &r->client), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(r->client, NULL, &r->ctx), 0);
}

static void close_pair(struct pair *p)
{
    rank_detach(&p->ranks[0]);
    rank_detach(&p->ranks[1]);
}

static int put(struct rank *r)
{
    return pwc_put(r->remote, 0, r->memory, 8, pwc_cid_u64(0), pwc_cid_u64(1), PWC_NO_LCE);
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Puts until the submit ring is full. */
static void fill(struct rank *r)
{
    int rc = 0;

    while (rc == 0)
        rc = put(r);
    CU_ASSERT_EQUAL(rc, -EAGAIN);
}

/* The target takes some events, so that it maps the ring in which its neighbour writes. */
static void warm_up(struct pair *p)
{
    struct pwc_event event;

    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL(put(&p->ranks[0]), 0);
        CU_ASSERT_EQUAL(pwc_wait(p->ranks[1].ctx, PWC_ANY, PWC_REMOTE, &event, RANK_WAIT_MS), 1);
        CU_ASSERT_EQUAL(pwc_flush(p->ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    }
}

static void *wait_in_barrier(void *argument)
{
    struct rank *r = argument;

    CU_ASSERT_EQUAL(pwc_barrier(r->ctx), 0);
    return NULL;
}

/* Returns the output of a pwcctl command about the daemons of two nodes. */
static const char *look(const char *what)
{
    static char text[32768];
    char command[1024];
    size_t used;
    FILE *from;

    snprintf(command, sizeof(command), "COLUMNS=400 %s --socket %s --socket %s %s 2>&1", pwcctl,
             cluster.nodes[0].socket, cluster.nodes[1].socket, what);
    from = popen(command, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    used = fread(text, 1, sizeof(text) - 1, from);
    text[used] = '\0';
    pclose(from);
    return text;
}

/* pwcctl top names the same reasons above its tables, from its second look on. */
static void check_top(void)
{
    static const char *const named[] = {
        "! rank 1 has taken no events for ",
        "! job absent: 1 of 2 ranks have waited",
        "! job dead: rank 1 has ended, and 1 of its ranks live on",
        "operations wait for a link; the oldest, a put of rank 0 to rank 1, for ",
        "! rank 1 has read nothing of its neighbour rank 0 for ",
        "  nodes 0, 1 of 3  ",
    };
    const char *text = look("top --batch --count 2 --watch 1.1");

    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        if (!strstr(text, named[i]))
            fprintf(stderr, "no \"%s\" in:\n%s", named[i], text);
        CU_ASSERT_PTR_NOT_NULL(strstr(text, named[i]));
    }
}

static void all_are_named(void)
{
    static const char *const named[] = {
        "events         rank 1 has taken no events for a second",
        "barriers       job absent: 1 of 2 ranks have waited",
        "in a barrier for rank 1",
        "ranks          job dead: rank 1 has ended, and 1 of its ranks live on",
        "operations wait for a link; the oldest, a put of rank 0 to rank 1, for ",
        "node 2 cannot be reached: ",
        "neighbours     rank 1 has read nothing of its neighbour rank 0 for a second",
    };
    struct pair idle, absent, dead, cut, near;
    const char *text = "";
    pthread_t waiter;
    size_t seen = 0;
    double end;

    open_pair(&idle, "idle", 0, 1);
    attach_patiently(&absent.ranks[0], 0, 0);
    attach_patiently(&absent.ranks[1], 1, 1);
    open_pair(&dead, "dead", 0, 1);
    open_pair(&cut, "cut", 0, 2);
    open_pair(&near, "near", 0, 0);
    warm_up(&near);
    fill(&near.ranks[0]);
    CU_ASSERT_EQUAL(put(&cut.ranks[0]), 0);
    CU_ASSERT_EQUAL(pwc_flush(cut.ranks[0].ctx, PWC_ANY, RANK_WAIT_MS), 0);
    cluster_kill(&cluster, 2);
    CU_ASSERT_EQUAL(put(&cut.ranks[0]), 0);
    rank_detach(&dead.ranks[1]);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&waiter, NULL, wait_in_barrier, &absent.ranks[0]), 0);
    /* The doctor looks twice, a second apart, and names hangs that are a second old by then. */
    for (end = now_s() + LOOKS_S; seen < sizeof(named) / sizeof(named[0]) && now_s() < end;) {
        fill(&idle.ranks[0]); /* again until the target's ring is full, too */
        text = look("doctor");
        for (seen = 0; seen < sizeof(named) / sizeof(named[0]) && strstr(text, named[seen]); seen++)
            continue;
    }
    if (seen < sizeof(named) / sizeof(named[0]))
        fprintf(stderr, "no \"%s\" in:\n%s", named[seen], text);
    CU_ASSERT_EQUAL(seen, sizeof(named) / sizeof(named[0]));
    check_top();
    CU_ASSERT_EQUAL(pwc_barrier(absent.ranks[1].ctx), 0);
    pthread_join(waiter, NULL);
    close_pair(&idle);
    close_pair(&absent);
    close_pair(&dead);
    close_pair(&cut);
    close_pair(&near);
}

int main(int argc, char **argv)
{
    static const char *const more[] = {"--peer-deadline-ms", "120000", NULL};
    CU_TestInfo tests[] = {{"five reasons, each named", all_are_named}, CU_TEST_INFO_NULL};
    struct cluster_options options = {.provider = "stream", .nodes = NODES, .more = more};
    int status = 1;

    if (argc < 3)
        return 2;
    pwcd = options.pwcd = argv[1];
    pwcctl = argv[2];
    setenv("PWCD", pwcd, 1); /* the doctor also runs this program */
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("hangs", tests);
    return cluster_end(&cluster, status);
}

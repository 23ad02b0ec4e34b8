/* Opens and closes two sides, and runs the tests of a program over daemons (both.h). Thread: the
 * test's. */
#include "tests/providers/both.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct cluster both_cluster;

const struct side_options both_basic = {
    .mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY, .format = FI_CQ_FORMAT_TAGGED};

const char *both_socket(unsigned node)
{
    return both_cluster.nodes[node % both_cluster.options.nodes].socket;
}

void both_open(struct side sides[2], const struct side_options *options)
{
    for (unsigned i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(side_open(&sides[i], both_socket(i), options), 0);
    CU_ASSERT_EQUAL_FATAL(side_meet(&sides[0], &sides[1]), 0);
}

void both_close(struct side sides[2])
{
    side_close(&sides[0]);
    side_close(&sides[1]);
}

void both_stop_daemon(unsigned side)
{
    siginfo_t stopped;

    CU_ASSERT_EQUAL_FATAL(kill(both_cluster.nodes[side].pid, SIGSTOP), 0);
    CU_ASSERT_EQUAL(waitid(P_PID, (id_t)both_cluster.nodes[side].pid, &stopped, WSTOPPED), 0);
}

void both_resume_daemon(unsigned side)
{
    CU_ASSERT_EQUAL_FATAL(kill(both_cluster.nodes[side].pid, SIGCONT), 0);
}

ssize_t both_write(struct side sides[2], const void *from, size_t length, uint64_t address,
                   uint64_t key, void *context)
{
    return SIDE_REPEAT(
        &sides[0], &sides[1],
        fi_write(sides[0].ep, from, length, NULL, sides[0].peer, address, key, context));
}

ssize_t both_read(struct side sides[2], void *to, size_t length, uint64_t address, uint64_t key,
                  void *context)
{
    return SIDE_REPEAT(
        &sides[0], &sides[1],
        fi_read(sides[0].ep, to, length, NULL, sides[0].peer, address, key, context));
}

int both_main(int argc, char **argv, const char *name, CU_TestInfo *tests)
{
    return both_main_with(NULL, argc, argv, name, tests);
}

int both_main_with(const char *const *more, int argc, char **argv, const char *name,
                   CU_TestInfo *tests)
{
    struct cluster_options options = {.nodes = 2, .more = more};
    char job[40];
    int rc;

    if (!cluster_arguments(&options, argc, argv))
        return 1;
    snprintf(job, sizeof(job), "test-%d", (int)getpid());
    setenv("FI_PWC_JOB", job, 1);
    rc = cluster_open(&both_cluster, &options);
    if (rc < 0) {
        fprintf(stderr, "%s\n", both_cluster.failure);
        cluster_close(&both_cluster);
        return 1;
    }
    return cluster_end(&both_cluster, suite_run(name, tests));
}

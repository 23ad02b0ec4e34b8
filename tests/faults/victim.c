/*
 * The rank that dies: plays its part (player.h), and prints the error when it ends otherwise.
 *
 *     victim SOCKET JOB ROLE
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "tests/lib/process.h"
#include "tests/faults/player.h"

enum { LIMIT_S = 30, EXIT_LEAK = 3 };

/* Returns the number of mappings of the daemon's memory in this process. */
static int mappings(void)
{
    return process_mappings(getpid(), "memfd:pwc-s") +
           process_mappings(getpid(), "memfd:pwc-pair") +
           process_mappings(getpid(), "memfd:pwc-team");
}

int main(int argc, char **argv)
{
    struct stage *stage = stage_find(STAGE_FD, sizeof(*stage));
    int descriptors = process_descriptors(getpid()), left;
    struct player p;
    int rc;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(LIMIT_S);
    if (argc != 4 || !stage) {
        fprintf(stderr, "usage: %s=N %s SOCKET JOB ROLE\n", STAGE_FD, argv[0]);
        return 2;
    }
    rc = player_run(&p, stage, (enum role)atoi(argv[3]), VICTIM, argv[1], argv[2]);
    if (rc < 0)
        fprintf(stderr, "the victim: %s\n", p.why);
    left = process_descriptors(getpid());
    if (left != descriptors || mappings() > 0) {
        fprintf(stderr, "the victim leaves %d descriptors, which were %d, and %d mappings\n", left,
                descriptors, mappings());
        return EXIT_LEAK;
    }
    return rc == 0 ? 0 : 1;
}

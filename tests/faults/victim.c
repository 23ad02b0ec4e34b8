/*
 * The rank that dies: plays its part (player.h), and says what is wrong when it ends otherwise.
 *
 *     victim SOCKET JOB ROLE
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "player.h"

enum { LIMIT_S = 30 };

int main(int argc, char **argv)
{
    struct stage *stage = stage_find(STAGE_FD, sizeof(*stage));
    struct player p;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(LIMIT_S);
    if (argc != 4 || !stage) {
        fprintf(stderr, "usage: %s=N %s SOCKET JOB ROLE\n", STAGE_FD, argv[0]);
        return 2;
    }
    if (player_run(&p, stage, (enum role)atoi(argv[3]), VICTIM, argv[1], argv[2]) == 0)
        return 0;
    fprintf(stderr, "the victim: %s\n", p.why);
    return 1;
}

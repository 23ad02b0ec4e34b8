/*
 * pwcrun: starts daemons and ranks on this machine, and leaves nothing behind.
 *
 *     pwcrun ---+-- reaper          cleans up when pwcrun is gone, whatever ended it
 *               +-- pwcd ...        one for each node
 *               +-- PROGRAM ...     the ranks
 *
 * With --hold the program is the launcher of another system, and its ranks start by --place:
 *
 *     pwcrun --hold ---+-- reaper, pwcd ...
 *                      +-- mpirun -n 4 pwcrun --place PROGRAM ...
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tools/pwcrun/job.h"
#include "tools/pwcrun/network.h"
#include "tools/pwcrun/options.h"
#include "tools/pwcrun/place.h"
#include "tools/pwcrun/reaper.h"
#include "tools/pwcrun/workdir.h"

static int run(const struct options *options)
{
    struct network network = {.owner = getpid(), .nodes = options->netns ? options->nodes : 0};
    struct workdir dir;
    struct reaper reaper;

    if (options->netns && geteuid() != 0) {
        fprintf(stderr, "pwcrun: --netns needs root, to make network namespaces; without it the "
                        "nodes share this machine's loopback\n");
        return PWCRUN_FAILED;
    }
    int rc = job_block_signals();
    if (rc == 0)
        rc = workdir_create(&dir);
    if (rc < 0) {
        fprintf(stderr, "pwcrun: making a folder for sockets: %s\n", strerror(-rc));
        return PWCRUN_FAILED;
    }
    rc = reaper_start(&reaper, &dir, &network);
    if (rc < 0) {
        fprintf(stderr, "pwcrun: starting the reaper: %s\n", strerror(-rc));
        workdir_remove(&dir);
        return PWCRUN_FAILED;
    }
    int status = PWCRUN_FAILED;
    if (network.nodes == 0 || network_up(&network, reaper.pipe) == 0)
        status = job_run(options, &dir, &network, &reaper);
    if (!reaper_finish(&reaper)) {
        if (network.nodes > 0)
            network_down(&network);
        workdir_remove(&dir);
    }
    return status;
}

/* The parent may have closed some of 0, 1 and 2: files that we open would get these numbers, which
 * mean something else to children. */
static int open_standard(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    struct options options;
    int rc = open_standard();
    if (rc < 0) {
        fprintf(stderr, "pwcrun: /dev/null: %s\n", strerror(-rc));
        return PWCRUN_FAILED;
    }
    rc = options_parse(&options, argc, argv);
    if (rc != 0)
        return rc > 0 ? 0 : PWCRUN_FAILED;
    int status = options.place ? place_run(&options) : run(&options);
    options_free(&options);
    return status;
}

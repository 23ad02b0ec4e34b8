/* Loads programs of offloads, and replaces daemons (offload.h). Thread: the test's. */
#include "tests/system/lib/offload.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>

int offload_load(struct rank *r, const char *path, pwc_program **out)
{
    static uint8_t elf[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t size;

    if (!file)
        return -errno;
    size = fread(elf, 1, sizeof(elf), file);
    fclose(file);
    return pwc_program_load(r->client, elf, size, NULL, out);
}

void offload_daemon_goes(const struct cluster *cluster, bool killed)
{
    pid_t pid = cluster_kept(cluster, 1);

    CU_ASSERT_FATAL(pid > 0);
    kill(killed ? pid : cluster->nodes[1].pid, killed ? SIGKILL : SIGUSR2);
    CU_ASSERT_FATAL(cluster_next(cluster, 1, pid) > 0);
}

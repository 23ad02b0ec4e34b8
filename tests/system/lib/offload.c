/* Loads programs of offloads, and replaces daemons (offload.h). Thread: the test's. */
#include "tests/system/lib/offload.h"

#include <CUnit/CUnit.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { LIMIT_S = 60 };

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

/* Whether the process handles SIGUSR2. A daemon that has just started ignores it for a while. */
static bool hands_over(pid_t pid)
{
    unsigned long long handled = 0;
    char path[64], line[256];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "SigCgt: %llx", &handled) == 1)
            break;
    if (file)
        fclose(file);
    return handled >> (SIGUSR2 - 1) & 1;
}

void offload_daemon_goes(const struct cluster *cluster, bool killed)
{
    pid_t pid = cluster_kept(cluster, 1);

    CU_ASSERT_FATAL(pid > 0);
    for (time_t end = time(NULL) + LIMIT_S; !hands_over(pid) && time(NULL) < end;)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    kill(killed ? pid : cluster->nodes[1].pid, killed ? SIGKILL : SIGUSR2);
    CU_ASSERT_FATAL(cluster_next(cluster, 1, pid) > 0);
}

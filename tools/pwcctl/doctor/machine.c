/* Looks at limits, the kernel's settings and the machine (doctor.h). A fact that cannot be read
 * stays as it was set before: not known. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/capability.h>
#include <linux/membarrier.h>
#include "tools/pwcctl/doctor/doctor.h"

/* Reads the first line of a file, without its end; returns false if there is none. */
static bool read_line(const char *path, char *to, size_t size)
{
    FILE *file = fopen(path, "re");
    bool got = file != NULL && fgets(to, (int)size, file) != NULL;
    if (file != NULL)
        fclose(file);
    if (!got)
        return false;
    to[strcspn(to, "\n")] = '\0';
    return true;
}

/* Finds the word in brackets: "always [never] advise". */
static void read_choice(const char *path, char *to, size_t size)
{
    char line[256], *open, *close;
    if (!read_line(path, line, sizeof(line)))
        return;
    open = strchr(line, '[');
    close = open != NULL ? strchr(open, ']') : NULL;
    if (close != NULL)
        snprintf(to, size, "%.*s", (int)(close - open - 1), open + 1);
}

/* Reads the number at `field` of a line, counted from 0; 0 when there is none. */
static uint64_t read_number(const char *path, int field)
{
    char line[256], *at = line;
    if (!read_line(path, line, sizeof(line)))
        return 0;
    for (int i = 0; i < field; i++)
        (void)strtoull(at, &at, 10);
    return strtoull(at, NULL, 10);
}

/* ---- limits ------------------------------------------------------------------------------------
 */

static uint64_t limit_of(rlim_t limit)
{
    return limit == RLIM_INFINITY ? DOCTOR_UNLIMITED : limit;
}

/* "Max open files            1024                 20000                files" */
static void take_limit(const char *line, const char *name, uint64_t *out)
{
    char hard[32];
    if (strncmp(line, name, strlen(name)) != 0 ||
        sscanf(line + strlen(name), "%*s %31s", hard) != 1)
        return;
    *out = strcmp(hard, "unlimited") == 0 ? DOCTOR_UNLIMITED : strtoull(hard, NULL, 10);
}

/* Reads our own limits, or those of the daemon where we may look at it. */
static void look_at_limits(struct doctor_machine *m, pid_t pid)
{
    char path[64], line[256];
    struct rlimit limit;
    FILE *file;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
        m->memory_locked = limit_of(limit.rlim_max);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
        m->descriptors = limit_of(limit.rlim_max);
    if (pid == 0)
        return;
    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    file = fopen(path, "re");
    m->of_daemon = file != NULL;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        take_limit(line, "Max locked memory", &m->memory_locked);
        take_limit(line, "Max open files", &m->descriptors);
    }
    if (file != NULL)
        fclose(file);
}

/* Finds the process's user, and whether it may pin memory without a limit. */
static void look_at_rights(struct doctor_machine *m, pid_t pid)
{
    char path[64], line[256];
    unsigned long long capabilities = 0;
    unsigned uid;
    FILE *file;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)(pid != 0 ? pid : getpid()));
    file = fopen(path, "re");
    m->uid = geteuid();
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "Uid: %*u %u", &uid) == 1)
            m->uid = uid;
        (void)sscanf(line, "CapEff: %llx", &capabilities);
    }
    if (file != NULL)
        fclose(file);
    m->memory_exempt = capabilities >> CAP_IPC_LOCK & 1;
}

static unsigned processors_of(pid_t pid)
{
    cpu_set_t set;
    if (sched_getaffinity(pid, sizeof(set), &set) == 0 ||
        sched_getaffinity(0, sizeof(set), &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    return (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
}

void doctor_look_at_machine(struct doctor_facts *facts)
{
    struct doctor_machine *m = &facts->machine;
    pid_t pid = facts->daemon.status == 0 ? facts->daemon.pid : 0;
    struct statvfs shm;
    char line[64];
    long commands;

    look_at_limits(m, pid);
    look_at_rights(m, pid);
    m->processors = processors_of(pid);
    commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
    m->membarrier = commands < 0 ? -errno : (int)commands;
    (void)read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", m->clock,
                    sizeof(m->clock));
    if (statvfs("/dev/shm", &shm) == 0)
        m->shm_free = (uint64_t)shm.f_bavail * shm.f_frsize;
    read_choice("/sys/kernel/mm/transparent_hugepage/shmem_enabled", m->shm_pages,
                sizeof(m->shm_pages));
    m->tcp_receive_max = read_number("/proc/sys/net/ipv4/tcp_rmem", 2);
    m->tcp_send_max = read_number("/proc/sys/net/ipv4/tcp_wmem", 2);
    m->core_receive_max = read_number("/proc/sys/net/core/rmem_max", 0);
    m->ptrace_scope = read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line))
                          ? (int)strtol(line, NULL, 10)
                          : -1;
}

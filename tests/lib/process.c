/* Reads /proc, and stops processes (process.h). Thread: any. */
#include "tests/lib/process.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

bool process_stop(pid_t child)
{
    int status;

    return kill(child, SIGSTOP) == 0 && waitpid(child, &status, WUNTRACED) == child &&
           WIFSTOPPED(status);
}

static int64_t run_time(pid_t pid, const char *thread)
{
    char path[64];
    int64_t ns = -ESRCH;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%.16s/schedstat", pid, thread);
    file = fopen(path, "re");
    if (!file)
        return -errno;
    if (fscanf(file, "%" SCNd64, &ns) != 1)
        ns = -EIO;
    fclose(file);
    return ns;
}

int64_t process_cpu_ns(pid_t pid)
{
    char path[32];
    const struct dirent *entry;
    int64_t sum = 0;
    DIR *threads;

    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    threads = opendir(path);
    if (!threads)
        return -errno;
    while (sum >= 0 && (entry = readdir(threads)) != NULL) {
        int64_t ns = entry->d_name[0] == '.' ? 0 : run_time(pid, entry->d_name);

        sum = ns < 0 ? ns : sum + ns;
    }
    closedir(threads);
    return sum;
}

pid_t process_child(pid_t parent)
{
    char path[64], text[32] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    file = fopen(path, "re");
    if (!file)
        return 0;
    (void)!fgets(text, sizeof(text), file);
    fclose(file);
    return (pid_t)strtol(text, NULL, 10);
}

int process_descriptors(pid_t pid)
{
    char path[32];
    const struct dirent *entry;
    int count = 0;
    DIR *fds;

    snprintf(path, sizeof(path), "/proc/%d/fd", pid);
    fds = opendir(path);
    if (!fds)
        return -errno;
    while ((entry = readdir(fds)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(fds);
    return count;
}

int process_mappings(pid_t pid, const char *name)
{
    char path[32], line[512];
    int count = 0;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", pid);
    maps = fopen(path, "re");
    if (!maps)
        return -errno;
    while (fgets(line, sizeof(line), maps))
        count += strstr(line, name) != NULL;
    fclose(maps);
    return count;
}

bool thread_sleeps_in(pid_t thread, long call)
{
    char path[64];
    long now = -1;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", thread);
    file = fopen(path, "re");
    if (!file)
        return false;
    /* The file holds "running" while the thread runs, else the number of the system call. */
    if (fscanf(file, "%ld", &now) != 1)
        now = -1;
    fclose(file);
    return now == call;
}

/* Reads the number after a name, in a file with a name and a number on each line. */
static int64_t status_number(const char *path, const char *name)
{
    char line[128];
    int64_t number = -EIO;
    FILE *file = fopen(path, "re");

    if (!file)
        return -errno;
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), ": %" SCNd64, &number) == 1)
            break;
    fclose(file);
    return number;
}

int64_t process_resident_kb(pid_t pid)
{
    char path[64];

    /* Counts page by page, because VmRSS in status may be off by dozens of pages a processor. */
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
    return status_number(path, "Rss");
}

int64_t thread_sleeps(pid_t thread)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
    return status_number(path, "voluntary_ctxt_switches");
}

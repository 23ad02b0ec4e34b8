/* Finds, stops and releases a daemon's progress thread (thread.h). */
#include "tests/control/lib/thread.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

static bool is_progress(pid_t process, const char *task)
{
    char path[300], name[32] = "";
    FILE *comm;

    snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)process, task);
    comm = fopen(path, "re");
    if (!comm)
        return false;
    if (!fgets(name, sizeof(name), comm))
        name[0] = '\0';
    fclose(comm);
    return strcmp(name, "pwcd-progress\n") == 0;
}

pid_t thread_find(pid_t process)
{
    char path[64];
    DIR *tasks;
    const struct dirent *task;
    pid_t found = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
    tasks = opendir(path);
    while (tasks && found == 0 && (task = readdir(tasks)) != NULL)
        if (is_progress(process, task->d_name))
            found = (pid_t)atoi(task->d_name);
    if (tasks)
        closedir(tasks);
    return found;
}

int thread_hold(pid_t thread)
{
    int status;

    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0 ||
        ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0 ||
        waitpid(thread, &status, __WALL) != thread)
        return -errno;
    return WIFSTOPPED(status) ? 0 : -ESRCH;
}

int thread_release(pid_t thread)
{
    return ptrace(PTRACE_DETACH, thread, NULL, NULL) == 0 ? 0 : -errno;
}

/* Forks, prepares and executes children. */
#include "tools/pwcrun/child.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static int enter_netns(const char *name)
{
    char path[128];
    snprintf(path, sizeof(path), "/run/netns/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = setns(fd, CLONE_NEWNET) < 0 ? -errno : 0;
    close(fd);
    return rc;
}

static int redirect(int from, int to)
{
    if (from < 0)
        return 0;
    return dup2(from, to) < 0 ? -errno : 0;
}

/* Runs in the child; returns only on failure. */
static int become(const struct child_spec *s, pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        return -errno;
    if (getppid() != parent) /* pwcrun died before prctl */
        return -ECHILD;
    if (setpgid(0, 0) < 0)
        return -errno;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);

    int rc = s->netns != NULL ? enter_netns(s->netns) : 0;
    if (rc == 0 && s->processors != NULL &&
        sched_setaffinity(0, sizeof(*s->processors), s->processors) < 0)
        rc = -errno;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (rc == 0 && null < 0)
        rc = -errno;
    if (rc == 0)
        rc = redirect(null, STDIN_FILENO);
    if (rc == 0)
        rc = redirect(s->out, STDOUT_FILENO);
    if (rc == 0)
        rc = redirect(s->err, STDERR_FILENO);
    if (rc == 0)
        rc = redirect(s->extra, CHILD_EXTRA_FD);
    if (rc < 0)
        return rc;
    /* With the group's number the reaper can end all that the program starts, even if pwcrun is
     * killed now. */
    reaper_began(s->reaper, getpid());
    /* pwcrun ignores SIGPIPE, and a program would inherit that. */
    if (signal(SIGPIPE, SIG_DFL) == SIG_ERR)
        return -errno;
    execvpe(s->argv[0], s->argv, s->envp);
    return -errno;
}

int child_start(const struct child_spec *s, pid_t *out)
{
    /* A successful exec closes this pipe; a failure sends the errno through it. Its descriptor must
     * not be one that redirect replaces. */
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return -errno;
    int report_write = fcntl(report[1], F_DUPFD_CLOEXEC, CHILD_EXTRA_FD + 1);
    if (report_write < 0) {
        int rc = -errno;
        close(report[0]);
        close(report[1]);
        return rc;
    }
    close(report[1]);

    int failure = 0;
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        failure = become(s, parent);
        ssize_t written = write(report_write, &failure, sizeof(failure));
        _exit(written == sizeof(failure) ? 127 : 126);
    }
    if (pid < 0)
        failure = -errno;
    close(report_write);
    if (pid > 0) {
        ssize_t got;
        do
            got = read(report[0], &failure, sizeof(failure));
        while (got < 0 && errno == EINTR);
        if (got == sizeof(failure)) { /* the program never ran */
            waitpid(pid, NULL, 0);
            reaper_ended(s->reaper, pid);
        } else {
            failure = 0;
        }
    }
    close(report[0]);
    if (failure == 0)
        *out = pid;
    return failure;
}

int child_run(char *const *argv, int kept)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    int rc = kept >= 0 ? posix_spawn_file_actions_adddup2(&actions, kept, CHILD_EXTRA_FD) : 0;
    pid_t pid;
    if (rc == 0)
        rc = posix_spawnp(&pid, argv[0], &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (rc != 0)
        return -rc;
    int status;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return child_status(status);
}

int child_status(int wait_status)
{
    return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

/* Starts and ends children (program.h). Thread: any. */
#include "tests/lib/program.h"
#include "proto/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READY_MS = 20000, OUT_OF_THE_WAY = 10 };

/* The place of each stream in the child. */
static const int descriptors[PROGRAM_STREAMS] = {STDOUT_FILENO, STDERR_FILENO, 3};

/* This part runs in the child. */
static void become(const char *const *argv, const struct program_options *options,
                   int to[PROGRAM_STREAMS], pid_t parent)
{
    char *const *words = (char *const *)(uintptr_t)argv;
    int exe = -1;

    /* The descriptor of one stream must not have the number that another one needs. */
    for (int i = 0; i < PROGRAM_STREAMS; i++)
        if (to[i] >= 0)
            to[i] = fcntl(to[i], F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);
    for (int i = 0; i < PROGRAM_STREAMS; i++)
        if (to[i] >= 0)
            dup2(to[i], descriptors[i]);
    if (options->setting)
        putenv((char *)(uintptr_t)options->setting);
    if (options->uid != 0) {
        /* The file is executed by its descriptor, because that user may not be able to reach the
         * path. */
        exe = open(argv[0], O_RDONLY | O_CLOEXEC);
        if (setgroups(0, NULL) != 0 || setresgid(options->uid, options->uid, options->uid) != 0 ||
            setresuid(options->uid, options->uid, options->uid) != 0)
            _exit(127);
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
        if (exe >= 0)
            fexecve(exe, words, environ);
        else
            execvp(argv[0], words);
    }
    perror(argv[0]);
    _exit(127);
}

pid_t program_start(const char *const *argv, const struct program_options *options,
                    int from[PROGRAM_STREAMS])
{
    int to[PROGRAM_STREAMS];
    pid_t pid = -1, parent = getpid();
    int rc = 0;

    for (int i = 0; i < PROGRAM_STREAMS; i++) {
        int ends[2] = {-1, -1};

        if (rc == 0 && options->streams & 1u << i && pipe2(ends, O_CLOEXEC) != 0)
            rc = -errno;
        from[i] = ends[0];
        to[i] = ends[1];
    }
    if (rc == 0)
        pid = fork();
    if (pid == 0)
        become(argv, options, to, parent);
    if (rc == 0 && pid < 0)
        rc = -errno;
    for (int i = 0; i < PROGRAM_STREAMS; i++) {
        if (to[i] >= 0)
            close(to[i]);
        if (rc < 0 && from[i] >= 0)
            close(from[i]);
    }
    return rc < 0 ? rc : pid;
}

bool program_is_ready(int from)
{
    struct pollfd polled = {.fd = from, .events = POLLIN};
    char text[16];

    return poll(&polled, 1, READY_MS) == 1 && read(from, text, sizeof(text)) > 0;
}

int program_reap(pid_t pid, int limit_ms)
{
    struct pollfd polled = {.fd = pidfd_open(pid, 0), .events = POLLIN};
    int status = -1;

    if (poll(&polled, 1, limit_ms) != 1)
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    close(polled.fd);
    return status;
}

/*
 * Stops a daemon's progress thread by ptrace (thread.h) until the daemon has ended, as if a call of
 * the thread did not return. Prints "held" when the thread is stopped, and "dead" when the process
 * has ended. When this program's input has been silent for SECONDS, the program releases the
 * thread, and exits with 1.
 *
 *     hold_thread PID SECONDS
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/control/lib/thread.h"

static int fail(const char *what, int rc)
{
    fprintf(stderr, "hold_thread: %s: %s\n", what, strerror(-rc));
    return 2;
}

/* Does nothing: the signal only interrupts a wait. */
static void wake(int number)
{
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = wake};
    pid_t thread;
    int status, rc;

    if (argc != 3)
        return fail("give PID and SECONDS", -EINVAL);
    thread = thread_find((pid_t)atoi(argv[1]));
    if (thread == 0)
        return fail("it has no progress thread", -ESRCH);
    rc = thread_hold(thread);
    if (rc < 0)
        return fail("it cannot be stopped", rc);
    puts("held");
    fflush(stdout);
    sigaction(SIGALRM, &action, NULL);
    alarm((unsigned)atoi(argv[2]));
    while (waitpid(thread, &status, __WALL) == thread)
        if (WIFEXITED(status) || WIFSIGNALED(status))
            return puts("dead") < 0;
    return 1; /* our exit releases the thread */
}

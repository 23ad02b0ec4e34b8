/*
 * The keeper, with daemons that this program plays: the keeper starts its own program, so it starts
 * this one, with the name of a part. Descriptors show a daemon which start it is: a first one gets
 * the keeper's alone.
 *
 *     test_keeper             runs the tests
 *     test_keeper PART        plays the daemon
 *
 * Thread: one.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "daemon/keeper/keeper.h"
#include "tests/suite.h"

enum { LIMIT_S = 20, BROKEN = 9 };

/* ---- daemons --------------------------------------------------------------------------------- */

static bool is_first(void)
{
    return sd_listen_fds(0) == 1;
}

/* Lets the keeper keep a descriptor. */
static bool store(const char *name, int descriptor)
{
    char text[64];

    snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name);
    return sd_pid_notify_with_fds(0, 0, text, &descriptor, 1) > 0;
}

/* Names as its successor a process that has been collected, and ends with an error. */
static int names_the_dead(void)
{
    pid_t child;

    if (!is_first())
        return 0;
    child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
    return store("mark", STDERR_FILENO) && sd_notifyf(0, "READY=1\nMAINPID=%d", (int)child) > 0
               ? EXIT_FAILURE
               : BROKEN;
}

/* Gets SIGTERM while it hands over, too late to pass it on, and names its successor. */
static int ends_meanwhile(void)
{
    const struct timespec limit = {.tv_sec = LIMIT_S};
    pid_t keeper = getppid(), child;
    sigset_t end;

    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    child = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (child == 0)
        return sigtimedwait(&end, NULL, &limit) == SIGTERM ? 0 : BROKEN;
    kill(keeper, SIGTERM);
    if (sigtimedwait(&end, NULL, &limit) != SIGTERM ||
        sd_notifyf(0, "READY=1\nMAINPID=%d", (int)child) <= 0)
        kill(child, SIGKILL);
    return 0;
}

static const struct part {
    const char *name;
    int (*play)(void);
} parts[] = {{"names-the-dead", names_the_dead}, {"ends-meanwhile", ends_meanwhile}};

static int play(const char *name)
{
    alarm(LIMIT_S);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strcmp(name, parts[i].name) == 0)
            return parts[i].play();
    return BROKEN;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Runs a keeper whose daemons play this part. Returns its status; -EINTR: the keeper was killed,
 * because it had not ended in time. */
static int keep(const char *part)
{
    char *argv[] = {(char *)"test_keeper", (char *)(uintptr_t)part, NULL};
    pid_t keeper;
    int status = -1;

    fflush(NULL);
    keeper = fork();
    if (keeper == 0) {
        alarm(LIMIT_S);
        _exit(keeper_run(argv, -1));
    }
    waitpid(keeper, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* A daemon that ends after it has named a dead process as the next one is started again. */
static void names_of_the_dead(void)
{
    CU_ASSERT_EQUAL(keep("names-the-dead"), 0);
}

/* A keeper that gets SIGTERM while its daemon hands over ends the next process, too. */
static void ended_meanwhile(void)
{
    CU_ASSERT_EQUAL(keep("ends-meanwhile"), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"names of the dead", names_of_the_dead},
                           {"ended meanwhile", ended_meanwhile},
                           CU_TEST_INFO_NULL};

    return argc > 1 ? play(argv[1]) : suite_run("keeper", tests);
}

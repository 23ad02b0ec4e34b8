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
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>
#include "daemon/keeper/keeper.h"
#include "proto/exit_status.h"
#include "tests/suite.h"

enum { LIMIT_S = 20, BROKEN = 9, FILES_MAX = 256, MANY = 330 };

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

/* Serves, keeps a descriptor, and finds that its fabric registers no memory for ledgers. */
static int cannot_register(void)
{
    if (!is_first())
        return BROKEN;
    return store("mark", STDERR_FILENO) && sd_notify(0, "READY=1") > 0 ? EXIT_UNLOCKED : BROKEN;
}

/* Makes a file with this number in it. */
static int make_numbered(uint32_t number)
{
    int file = memfd_create("numbered", MFD_CLOEXEC);

    return write(file, &number, sizeof(number)) == sizeof(number) ? file : -1;
}

/* Whether the descriptor leads to the file whose number is its name. */
static bool is_in_place(const char *name, int descriptor)
{
    uint32_t number;

    return pread(descriptor, &number, sizeof(number), 0) == sizeof(number) &&
           number == strtoul(name, NULL, 10);
}

/* Lets the keeper keep most of the descriptors that it may have open, in a mixed order, and dies.
 * The next one looks for them. */
static int holds_many(void)
{
    uint32_t held = 0;
    char name[16], **names;
    int count;

    if (is_first()) {
        for (uint32_t i = 0; i < MANY; i++) {
            int file = make_numbered(i);

            snprintf(name, sizeof(name), "%u", i);
            if (!store(name, file))
                return BROKEN;
            close(file);
            snprintf(name, sizeof(name), "%u", i / 2);
            if (i % 3 == 0)
                sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
        }
        sd_notify(0, "READY=1");
        raise(SIGKILL);
    }
    count = sd_listen_fds_with_names(0, &names);
    for (int i = 0; i < count; i++) {
        held += is_in_place(names[i], SD_LISTEN_FDS_START + i);
        free(names[i]);
    }
    if (count > 0)
        free(names);
    return held > MANY / 2 && held + 1 == (uint32_t)count ? 0 : BROKEN;
}

static const struct part {
    const char *name;
    int (*play)(void);
} parts[] = {{"names-the-dead", names_the_dead},
             {"ends-meanwhile", ends_meanwhile},
             {"holds-many", holds_many},
             {"cannot-register", cannot_register}};

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
    const struct rlimit files = {FILES_MAX, FILES_MAX};
    pid_t keeper;
    int status = -1;

    fflush(NULL);
    keeper = fork();
    if (keeper == 0) {
        alarm(LIMIT_S);
        setrlimit(RLIMIT_NOFILE, &files);
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

/* A keeper that holds almost all descriptors that it may have open passes them on. */
static void many_held(void)
{
    CU_ASSERT_EQUAL(keep("holds-many"), 0);
}

/* A daemon that would end likewise each time is not started again. */
static void no_next_one(void)
{
    CU_ASSERT_EQUAL(keep("cannot-register"), EXIT_UNLOCKED);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"names of the dead", names_of_the_dead},
                           {"ended meanwhile", ended_meanwhile},
                           {"many held", many_held},
                           {"no next one", no_next_one},
                           CU_TEST_INFO_NULL};

    return argc > 1 ? play(argv[1]) : suite_run("keeper", tests);
}

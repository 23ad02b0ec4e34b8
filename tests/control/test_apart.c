/*
 * Clients that are apart, in another scheduler group than the daemon: they see it, also after the
 * daemon was killed, and the daemon takes a short slice while all its clients are apart. Clients
 * are child processes, some in a session of their own.
 *
 *     test_apart PWCD
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "daemon/control/clients/sched_group.h"
#include "daemon/control/threads/slice.h"
#include "tests/control/lib/thread.h"
#include "tests/lib/daemon.h"
#include "tests/lib/process.h"
#include "tests/lib/raw/session.h"
#include "tests/suite.h"

enum { LIMIT_MS = 20000, RANKS = 2, NOT_SHOWN = 9 };

static const char *pwcd;

/* ---- a daemon and its clients ---------------------------------------------------------------- */

/* A client in a child process, which sends what it is shown at first, then what the daemon's next
 * process shows. */
struct client {
    pid_t pid;
    int shown;
};

static int shown_next(struct raw_session *s)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    while (atomic_load(&s->shared->apart) == NOT_SHOWN)
        nanosleep(&nap, NULL);
    return (int)atomic_load(&s->shared->apart);
}

static void run_client(const struct daemon *d, uint32_t rank, bool own_session, int to)
{
    struct raw_session s;
    int shown;

    if ((own_session && setsid() < 0) || raw_session_open(&s, d, "apart", rank, RANKS) < 0)
        _exit(1);
    for (;;) {
        shown = shown_next(&s);
        atomic_store(&s.shared->apart, NOT_SHOWN);
        if (write(to, &shown, sizeof(shown)) != sizeof(shown))
            _exit(1);
    }
}

static struct client client_start(const struct daemon *d, uint32_t rank, bool own_session)
{
    struct client c;
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    c.pid = fork();
    CU_ASSERT_FATAL(c.pid >= 0);
    if (c.pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ends[0]);
        run_client(d, rank, own_session, ends[1]);
    }
    close(ends[1]);
    c.shown = ends[0];
    return c;
}

static int client_sees(const struct client *c)
{
    int shown = -1;

    return read(c->shown, &shown, sizeof(shown)) == sizeof(shown) ? shown : -1;
}

static void client_end(struct client *c)
{
    kill(c->pid, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(c->pid, NULL, 0), c->pid);
    close(c->shown);
}

/* The slice of a thread of the test's (0) or of another process, in ns; 0: the kernel does not say.
 */
static uint64_t slice_of(pid_t thread)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } a = {.size = sizeof(a)};

    return syscall(SYS_sched_getattr, thread, &a, sizeof(a), 0) == 0 ? a.runtime : 0;
}

/* Waits until the daemon's progress thread has this slice. */
static bool await_slice(const struct daemon *d, uint64_t slice)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    for (int i = 0; i < LIMIT_MS; i++) {
        pid_t daemon = process_child(d->pid), thread = daemon > 0 ? thread_find(daemon) : 0;

        if (thread != 0 && slice_of(thread) == slice)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

static void test_clients(void)
{
    static const char *const arguments[] = {"--keep", NULL};
    struct sched_group ours;
    uint64_t usual = sched_getscheduler(0) == SCHED_OTHER ? slice_of(0) : 0;
    pid_t daemon;
    struct client near, far;
    static struct daemon d;
    int apart;

    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, pwcd, arguments), 0);
    far = client_start(&d, 0, true);
    (void)sched_group_find("", d.pid, &ours);
    apart = client_sees(&far);
    CU_ASSERT_EQUAL(apart, sched_group_relation("", far.pid, &ours) == SCHED_APART);
    if (ours.known && ours.session != 0)
        CU_ASSERT_TRUE(apart);
    if (!apart)
        printf("\n    sessions have no groups of their own on this machine, or none are known\n");
    if (usual == 0)
        printf("\n    slices of threads are not known here\n");
    CU_ASSERT_TRUE(usual == 0 || await_slice(&d, apart ? SLICE_SHORT_NS : usual));

    near = client_start(&d, 1, false);
    CU_ASSERT_EQUAL(client_sees(&near), 0);
    CU_ASSERT_TRUE(usual == 0 || await_slice(&d, usual));
    client_end(&near);
    CU_ASSERT_TRUE(usual == 0 || await_slice(&d, apart ? SLICE_SHORT_NS : usual));

    daemon = process_child(d.pid);
    CU_ASSERT_FATAL(daemon > 0);
    CU_ASSERT_EQUAL(kill(daemon, SIGKILL), 0);
    CU_ASSERT_EQUAL(client_sees(&far), apart);
    CU_ASSERT_TRUE(usual == 0 || await_slice(&d, apart ? SLICE_SHORT_NS : usual));
    client_end(&far);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* A daemon that never sleeps is not waited for asleep. */
static void test_dedicated(void)
{
    static const char *const arguments[] = {"--progress", "dedicated", NULL};
    static struct daemon d;
    struct client far;

    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, pwcd, arguments), 0);
    far = client_start(&d, 0, true);
    CU_ASSERT_EQUAL(client_sees(&far), 0);
    client_end(&far);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"a daemon and its clients", test_clients},
        {"a daemon that never sleeps", test_dedicated},
        CU_TEST_INFO_NULL,
    };

    if (argc != 2) {
        fprintf(stderr, "usage: test_apart PWCD\n");
        return 2;
    }
    pwcd = argv[1];
    return suite_run("apart", tests);
}

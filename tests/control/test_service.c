/*
 * The daemon's reports to the service manager: readiness, status, signs of life while the engines
 * live, and the process that takes over. This test plays the manager: it reads the other end of
 * NOTIFY_SOCKET.
 *
 *     test_service PWCD
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/daemon.h"
#include "tests/control/lib/manager.h"
#include "tests/control/lib/thread.h"
#include "tests/suite.h"

enum { WAIT_MS = 20000, WATCHDOG_MS = 200 };

static const char *program;
static struct daemon d;
static struct manager manager;
static char config[] = "/tmp/pwc-service-XXXXXX"; /* path of the configuration file */

/* Reads `count` signs of life. */
static void expect_life(int count)
{
    for (int i = 0; i < count; i++)
        CU_ASSERT_TRUE_FATAL(manager_is_notified(&manager, "WATCHDOG=1"));
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void become(const char *mode, const char *threads, int log)
{
    char number[16];

    dup2(log, STDERR_FILENO);
    snprintf(number, sizeof(number), "%d", (int)getpid());
    setenv("WATCHDOG_PID", number, 1);
    snprintf(number, sizeof(number), "%d", WATCHDOG_MS * 1000);
    setenv("WATCHDOG_USEC", number, 1);
    execl(program, program, "--socket", d.socket, "--log", "info", "--config", config, "--progress",
          mode, "--progress-threads", threads, "--peer-deadline-ms", "500", NULL);
    _exit(127);
}

static void start(const char *mode, const char *threads)
{
    int log[2];

    memset(&d, 0, sizeof(d));
    strcpy(d.directory, "/tmp/pwc-daemon-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(d.directory));
    snprintf(d.socket, sizeof(d.socket), "%s/pwcd.sock", d.directory);
    CU_ASSERT_EQUAL_FATAL(pipe2(log, O_CLOEXEC), 0);
    fflush(NULL);
    d.pid = fork();
    if (d.pid == 0)
        become(mode, threads, log[1]);
    close(log[1]);
    d.log = log[0];
    CU_ASSERT_TRUE_FATAL(manager_is_notified(&manager, "READY=1"));
    CU_ASSERT_EQUAL(manager.speaker, d.pid);
}

/* Ends the daemon by one signal, and reads its messages meanwhile, because the daemon may wait for
 * that. */
static void stop(void)
{
    struct pollfd polled[] = {{.fd = (int)syscall(SYS_pidfd_open, d.pid, 0), .events = POLLIN},
                              {.fd = manager.socket, .events = POLLIN}};
    bool announced = false;
    int status = -1;

    kill(d.pid, SIGTERM);
    while (poll(polled, 2, WAIT_MS) > 0 && !(polled[0].revents & POLLIN))
        announced |= manager_hears(&manager, 0) && strstr(manager.said, "STOPPING=1");
    CU_ASSERT_TRUE(polled[0].revents & POLLIN);
    CU_ASSERT_TRUE(announced || manager_is_notified(&manager, "STOPPING=1"));
    CU_ASSERT_FALSE(daemon_says(&d, "Sanitizer")); /* reads the log to its end */
    CU_ASSERT_EQUAL(waitpid(d.pid, &status, 0), d.pid);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CU_ASSERT_EQUAL(rmdir(d.directory), 0); /* the folder is empty */
    close(polled[0].fd);
    close(d.log);
    d.pid = 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void reports_its_status(void)
{
    int s;

    start("adaptive", "1");
    CU_ASSERT_PTR_NOT_NULL(strstr(manager.said, "STATUS=0 clients; node 0"));
    s = raw_connect(&d);
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "status", 0, 1), 0);
    CU_ASSERT_TRUE(manager_is_notified(&manager, "STATUS=1 client; node 0"));
    close(s);
    CU_ASSERT_TRUE(manager_is_notified(&manager, "STATUS=0 clients; node 0"));
    stop();
}

/* The daemon gives signs of life with an engine that sleeps whenever it can, and with one that
 * never sleeps. */
static void idle_and_busy_live(void)
{
    static const char *const modes[] = {"sleep", "dedicated"};

    for (int i = 0; i < 2; i++) {
        start(modes[i], "1");
        expect_life(5);
        stop();
    }
}

static void expect_silence(void)
{
    while (manager_hears(&manager, 0))
        continue;
    while (manager_hears(&manager, 3 * WATCHDOG_MS))
        CU_ASSERT_PTR_NULL(strstr(manager.said, "WATCHDOG=1"));
}

/* One of two engines is silent, which is enough to stop the signs of life. */
static void silence_reports_what_is_stuck(void)
{
    pid_t thread;
    int rc;

    start("adaptive", "2");
    expect_life(2);
    thread = thread_find(d.pid);
    rc = thread_hold(thread);
    if (rc == -EPERM) {
        printf("left out: this machine does not let a parent trace its child ");
    } else {
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        CU_ASSERT_TRUE(daemon_says(&d, "has not gone round for"));
        expect_silence();
        CU_ASSERT_EQUAL_FATAL(thread_release(thread), 0);
        expect_life(2);
    }
    stop();
}

/* The manager gets the number of the next process, which then itself reports that it is ready, and
 * gives signs of life. */
static void handed_over(void)
{
    pid_t before, next = 0;

    setenv("FDSTORE", "8192", 1);
    start("adaptive", "1");
    unsetenv("FDSTORE");
    before = d.pid;
    kill(before, SIGUSR2);
    CU_ASSERT_TRUE(manager_is_notified(&manager, "RELOADING=1"));
    CU_ASSERT_TRUE_FATAL(manager_is_notified(&manager, "MAINPID="));
    CU_ASSERT_EQUAL(manager.speaker, before);
    /* The sign of life with the number gives the next process a whole interval to come up. */
    CU_ASSERT_PTR_NOT_NULL(strstr(manager.said, "WATCHDOG=1"));
    CU_ASSERT_FATAL(sscanf(manager.said, "MAINPID=%d", &next) == 1 && next != before);
    CU_ASSERT_TRUE(manager_is_notified(&manager, "READY=1"));
    CU_ASSERT_EQUAL(manager.speaker, next);
    CU_ASSERT_EQUAL(waitpid(before, NULL, 0), before);
    d.pid = next; /* our child now (subreaper), as it would be systemd's */
    expect_life(3);
    CU_ASSERT_EQUAL(manager.speaker, next);
    stop();
}

static void write_config(const char *text)
{
    FILE *file = fopen(config, "we");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT(fputs(text, file) >= 0);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* The next process does not come up, because its configuration is wrong: the daemon stays in place.
 */
static void not_handed_over(void)
{
    setenv("FDSTORE", "8192", 1);
    start("adaptive", "1");
    unsetenv("FDSTORE");
    write_config("clients-max = many\n");
    kill(d.pid, SIGUSR2);
    CU_ASSERT_TRUE(manager_is_notified(&manager, "RELOADING=1"));
    CU_ASSERT_TRUE(manager_is_notified(&manager, "READY=1"));
    CU_ASSERT_EQUAL(manager.speaker, d.pid);
    CU_ASSERT_PTR_NOT_NULL(strstr(manager.said, "STATUS=0 clients; node 0"));
    CU_ASSERT_TRUE(daemon_says(&d, "this daemon stays"));
    expect_life(2);
    CU_ASSERT_TRUE(raw_is_served(&d));
    stop();
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"reports its status", reports_its_status},
                           {"idle and busy live", idle_and_busy_live},
                           {"silence reports what is stuck", silence_reports_what_is_stuck},
                           {"handed over", handed_over},
                           {"not handed over", not_handed_over},
                           CU_TEST_INFO_NULL};
    int failed, file;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    program = argv[1];
    file = mkstemp(config);
    if (file < 0 || close(file) != 0 || !manager_open(&manager))
        return 2;
    failed = suite_run("service", tests);
    if (d.pid > 0) /* a test has failed, and left it */
        daemon_kill(&d);
    unlink(config);
    return failed;
}

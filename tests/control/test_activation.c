/*
 * Socket activation: this test makes the socket, in place of systemd, and passes it to the daemon
 * with LISTEN_FDS and LISTEN_PID. The daemon serves on it, and does not remove it at its end.
 *
 *     test_activation PWCD
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/daemon.h"
#include "tests/suite.h"

enum {
    FIRST_FD = 3, /* the first passed descriptor */
    QUEUE = 512,  /* BACKLOG in daemon/control/start/socket_path.c */
    QUEUE_TRIED = 600,
};

static const char *program;
static struct daemon d;

/* Makes a socket at a path of this test's own, in the daemon's folder; with a `backlog` it listens.
 */
static int make_socket(const char *path, int type, int backlog)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", path);
    CU_ASSERT_EQUAL_FATAL(bind(s, (struct sockaddr *)&name, sizeof(name)), 0);
    CU_ASSERT(backlog == 0 || listen(s, backlog) == 0);
    return s;
}

static void open_folder(void)
{
    memset(&d, 0, sizeof(d));
    strcpy(d.directory, "/tmp/pwc-daemon-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(d.directory));
    snprintf(d.socket, sizeof(d.socket), "%s/pwcd.sock", d.directory);
}

static void become(const int *passed, int count, int log, bool for_us)
{
    char number[16];
    int fds[8];

    log = fcntl(log, F_DUPFD, 20);
    for (int i = 0; i < count; i++)
        fds[i] = fcntl(passed[i], F_DUPFD, 20);
    dup2(log, STDERR_FILENO);
    for (int i = 0; i < count; i++)
        dup2(fds[i], FIRST_FD + i);
    snprintf(number, sizeof(number), "%d", for_us ? (int)getpid() : (int)getppid());
    setenv("LISTEN_PID", number, 1);
    snprintf(number, sizeof(number), "%d", count);
    setenv("LISTEN_FDS", number, 1);
    execl(program, program, "--config", "none", "--socket", d.socket, "--log", "info", NULL);
    _exit(127);
}

static void start(const int *passed, int count, bool for_us)
{
    int log[2];

    CU_ASSERT_EQUAL_FATAL(pipe2(log, O_CLOEXEC), 0);
    d.said_bytes = 0;
    memset(d.said, 0, sizeof(d.said));
    fflush(NULL);
    d.pid = fork();
    if (d.pid == 0)
        become(passed, count, log[1], for_us);
    close(log[1]);
    d.log = log[0];
}

/* Stops the daemon. `kept`: its folder stays, with the socket. Returns the daemon's exit status. */
static int stop(bool kept)
{
    char directory[sizeof(d.directory)];
    int rc;

    memcpy(directory, d.directory, sizeof(directory));
    if (kept)
        d.directory[0] = '\0';
    rc = daemon_stop(&d);
    memcpy(d.directory, directory, sizeof(directory));
    return rc;
}

/* A client that connects before a daemon runs is served when one starts. Another client is served
 * by the next daemon. */
static void serves_what_it_is_passed(void)
{
    int listener;

    open_folder();
    listener = make_socket(d.socket, SOCK_STREAM, 16);
    for (int i = 0; i < 2; i++) {
        int early = raw_connect(&d);

        CU_ASSERT_FATAL(early >= 0);
        start(&listener, 1, true);
        CU_ASSERT_EQUAL(raw_hello(early, "early", 0, 1), 0);
        CU_ASSERT_TRUE(daemon_says(&d, "serves at"));
        CU_ASSERT_TRUE(raw_is_served(&d));
        CU_ASSERT_EQUAL(stop(true), 0);
        CU_ASSERT_TRUE(raw_hangs_up(early));
        CU_ASSERT_EQUAL(access(d.socket, F_OK), 0);
        close(early);
    }
    close(listener);
    CU_ASSERT_EQUAL(unlink(d.socket), 0);
    CU_ASSERT_EQUAL(rmdir(d.directory), 0); /* the folder is empty */
}

/* Connects until the queue of the daemon, which is stopped, is full. Returns the number of
 * connections. */
static int fill_queue(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fds[QUEUE_TRIED], count = 0;

    snprintf(name.sun_path, sizeof(name.sun_path), "%s", d.socket);
    for (; count < QUEUE_TRIED; count++) {
        fds[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (connect(fds[count], (struct sockaddr *)&name, sizeof(name)) != 0)
            break;
    }
    CU_ASSERT(count == QUEUE_TRIED || errno == EAGAIN);
    for (int i = 0; i <= count && i < QUEUE_TRIED; i++)
        close(fds[i]);
    return count;
}

/* The kernel makes longer queues as long as this. */
static int longest_queue(void)
{
    int longest = QUEUE;
    FILE *f = fopen("/proc/sys/net/core/somaxconn", "re");

    CU_ASSERT(f != NULL && fscanf(f, "%d", &longest) == 1);
    if (f)
        fclose(f);
    return longest;
}

/* The daemon's own length of the queue holds for a socket that it is passed, too, whatever systemd
 * has chosen. The kernel takes one connection more. */
static void has_its_own_queue(void)
{
    static const int backlogs[] = {16, 4096};
    int queue = longest_queue() < QUEUE ? longest_queue() : QUEUE;

    for (int i = 0; i < 2; i++) {
        int listener, status;

        open_folder();
        listener = make_socket(d.socket, SOCK_STREAM, backlogs[i]);
        start(&listener, 1, true);
        CU_ASSERT_TRUE(daemon_says(&d, "serves at"));
        CU_ASSERT_TRUE(raw_is_served(&d));
        CU_ASSERT_EQUAL(kill(d.pid, SIGSTOP), 0);
        CU_ASSERT_EQUAL(waitpid(d.pid, &status, WUNTRACED), d.pid);
        CU_ASSERT_EQUAL(fill_queue(), queue + 1);
        CU_ASSERT_EQUAL(kill(d.pid, SIGCONT), 0);
        CU_ASSERT_EQUAL(stop(true), 0);
        close(listener);
        unlink(d.socket);
        CU_ASSERT_EQUAL(rmdir(d.directory), 0);
    }
}

/* LISTEN_PID names the parent process, so the daemon must ignore the variables and make a socket of
 * its own. */
static void passed_to_another(void)
{
    int listener, pipe_ends[2];

    open_folder();
    CU_ASSERT_EQUAL_FATAL(pipe2(pipe_ends, O_CLOEXEC), 0);
    listener = pipe_ends[0];
    start(&listener, 1, false);
    CU_ASSERT_TRUE(daemon_says(&d, "serves at"));
    CU_ASSERT_TRUE(raw_is_served(&d));
    CU_ASSERT_EQUAL(stop(false), 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static void refuse(const int *passed, int count)
{
    start(passed, count, true);
    CU_ASSERT_TRUE(daemon_says(&d, "instead of one socket that listens at"));
    CU_ASSERT_TRUE(daemon_says(&d, "give ListenStream= and --socket the same path"));
    CU_ASSERT_FALSE(daemon_says(&d, "serves at")); /* reads the log to its end */
    CU_ASSERT_EQUAL(stop(true), 1);
}

static void what_does_not_fit(void)
{
    char other[128];
    int sockets[4], null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    open_folder();
    snprintf(other, sizeof(other), "%s/other.sock", d.directory);
    sockets[0] = make_socket(d.socket, SOCK_STREAM, 16);
    sockets[1] = make_socket(other, SOCK_STREAM, 16);
    refuse(sockets, 2);     /* one too many */
    refuse(&sockets[1], 1); /* bound to another path */
    refuse(&null, 1);
    unlink(d.socket);
    sockets[2] = make_socket(d.socket, SOCK_STREAM, 0);
    refuse(&sockets[2], 1); /* does not listen */
    unlink(d.socket);
    sockets[3] = make_socket(d.socket, SOCK_DGRAM, 0);
    refuse(&sockets[3], 1);
    CU_ASSERT_EQUAL(access(d.socket, F_OK), 0); /* the file was not replaced */
    for (int i = 0; i < 4; i++)
        close(sockets[i]);
    close(null);
    unlink(d.socket);
    unlink(other);
    CU_ASSERT_EQUAL(rmdir(d.directory), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"serves what it is passed", serves_what_it_is_passed},
                           {"has its own queue", has_its_own_queue},
                           {"passed to another", passed_to_another},
                           {"what does not fit", what_does_not_fit},
                           CU_TEST_INFO_NULL};

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    program = argv[1];
    return suite_run("activation", tests);
}

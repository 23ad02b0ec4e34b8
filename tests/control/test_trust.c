/*
 * Clients pass on or misuse what the daemon gave them, without success: forked children keep the
 * socket, numbers of processes are used again, descriptors are made to block, core files would
 * contain shared memory.
 *
 *     test_trust PWCD
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/daemon.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/session.h"
#include "tests/lib/process.h"
#include "tests/suite.h"
#include "daemon/control/clients/message.h"
#include "shm_ring/mapping.h"

#define JOB       "trust"
#define TRIES     2000
#define PID_TRIES 200
#define PUTS      200

static const char *program;
static struct daemon d;
static struct holdings quiet;

static void pause_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Waits for a while until rank 0 of the job is free, and returns whether it is. */
static bool comes_free(void)
{
    for (int i = 0; i < TRIES; i++) {
        int s = raw_connect(&d);
        int rc = raw_hello(s, JOB, 0, 1);

        close(s);
        if (rc == 0)
            return true;
        pause_ms(2);
    }
    return false;
}

/* ---- the socket outlives the process --------------------------------------------------------- */

/* Runs in a child of the process that attached, and holds all its descriptors until the test has
 * seen enough. */
static void keep(int until)
{
    char byte;

    (void)!read(until, &byte, 1);
    _exit(0);
}

/* Attaches, forks and exits: the child then has the socket, the doorbell and the mapping. */
static void attach_and_leave(int report, int until)
{
    struct raw_session s;
    bool fine = raw_session_open(&s, &d, JOB, 0, 1) == 0;
    pid_t child = fine ? fork() : -1;

    if (child == 0)
        keep(until);
    (void)!write(report, child > 0 ? "y" : "n", 1);
    _exit(0);
}

/* The process that attached is the client: its end ends the client, whichever process still has the
 * descriptors. */
static void children_keep_the_socket(void)
{
    int report[2], until[2];
    char byte = 0;
    pid_t pid;

    CU_ASSERT_EQUAL_FATAL(pipe(report), 0);
    CU_ASSERT_EQUAL_FATAL(pipe(until), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        close(until[1]);
        attach_and_leave(report[1], until[0]);
    }
    CU_ASSERT_EQUAL(read(report[0], &byte, 1), 1);
    CU_ASSERT_EQUAL(byte, 'y');
    waitpid(pid, NULL, 0);
    CU_ASSERT_TRUE(comes_free());
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
    close(until[1]);
    close(until[0]);
    close(report[0]);
    close(report[1]);
}

/* ---- numbers of processes -------------------------------------------------------------------- */

/* Starts a process with this number, which does nothing until it is killed; -1: that was not
 * possible. */
static pid_t process_numbered(pid_t number)
{
    for (int i = 0; i < PID_TRIES; i++) {
        FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "we");
        pid_t pid;

        if (!last)
            return -1;
        fprintf(last, "%d", (int)number - 1);
        if (fclose(last) != 0)
            return -1;
        pid = fork();
        if (pid == 0) {
            alarm(60);
            pause();
            _exit(0);
        }
        if (pid == number)
            return pid;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    return -1;
}

/*
 * A process connects, passes its socket on, and ends. An innocent process gets its number before
 * the daemon has looked. The daemon must not take the innocent process for the client.
 */
static void numbers_come_again(void)
{
    int ends[2], s;
    bool served = true;
    pid_t first, other;

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    CU_ASSERT_TRUE(process_stop(d.pid));
    fflush(NULL);
    first = fork();
    if (first == 0) { /* passes its connection on, and exits */
        int own = raw_connect(&d);
        _Alignas(struct cmsghdr) char control[MESSAGE_ROOM(1)] = {0};
        struct iovec part = {(char *)"x", 1};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

        message_attach(&message, control, &own, 1);
        _exit(own < 0 || sendmsg(ends[1], &message, 0) != 1);
    }
    waitpid(first, NULL, 0);
    {
        _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
        char byte;
        struct iovec part = {&byte, 1};
        struct msghdr message = {.msg_iov = &part,
                                 .msg_iovlen = 1,
                                 .msg_control = control,
                                 .msg_controllen = sizeof(control)};

        CU_ASSERT_EQUAL_FATAL(recvmsg(ends[0], &message, 0), 1);
        CU_ASSERT_PTR_NOT_NULL_FATAL(CMSG_FIRSTHDR(&message));
        memcpy(&s, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(s));
    }
    other = process_numbered(first);
    kill(d.pid, SIGCONT);
    if (other > 0)
        served = raw_hello(s, JOB, 0, 1) == 0 && !raw_hangs_up(s);
    else
        printf("(left out: no number can be asked for here) ");
    CU_ASSERT(other < 0 || !served);
    if (other > 0) {
        CU_ASSERT_EQUAL(waitpid(other, NULL, WNOHANG), 0); /* still runs */
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
    close(s);
    close(ends[0]);
    close(ends[1]);
    CU_ASSERT_TRUE(comes_free());
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* ---- descriptors that block ------------------------------------------------------------------ */

/* Both sides share the open file and so its flags: a client that clears O_NONBLOCK must not block
 * the daemon. */
static void descriptors_that_block(void)
{
    struct raw_session s;
    struct submit_record put;

    CU_ASSERT_EQUAL_FATAL(raw_session_open(&s, &d, JOB, 0, 1), 0);
    CU_ASSERT_EQUAL(fcntl(s.doorbell, F_SETFL, 0), 0);
    CU_ASSERT_EQUAL(fcntl(s.wake, F_SETFL, 0), 0);
    CU_ASSERT_EQUAL(fcntl(s.socket, F_SETFL, 0), 0);
    /* The eventfd's counter is so high that PUTS rings fit, and one more write would block. */
    CU_ASSERT_EQUAL(eventfd_write(s.doorbell, UINT64_MAX - 1 - PUTS), 0);
    put = raw_put(&s);
    put.flags = SUBMIT_NO_RCE;
    /* The client sleeps on its wake socket and never reads it, so that the daemon's side fills. */
    for (int i = 0; i < PUTS; i++) {
        struct event_record event;

        atomic_store(&s.shared->event_bell.armed, 2u);
        raw_submit(&s, &put, sizeof(put), put.size);
        CU_ASSERT_EQUAL_FATAL(raw_local_event(&s, &event), 1);
    }
    CU_ASSERT_TRUE(raw_is_served(&d));
    raw_session_close(&s);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* ---- core files ------------------------------------------------------------------------------ */

/* Counts the daemon's mappings whose name holds this text and which a core file would contain; -1:
 * there is none. */
static int dumped(const char *name)
{
    char path[64], line[512];
    bool of_interest = false;
    int seen = 0, count = 0;
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/smaps", (int)d.pid);
    maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        if (strstr(line, "memfd:"))
            of_interest = strstr(line, name) != NULL;
        if (of_interest && strncmp(line, "VmFlags:", 8) == 0) {
            seen++;
            count += strstr(line, " dd") == NULL;
            of_interest = false;
        }
    }
    if (maps)
        fclose(maps);
    return seen > 0 ? count : -1;
}

static void cores_without_clients(void)
{
    struct raw_session s;

    CU_ASSERT_EQUAL_FATAL(raw_session_open(&s, &d, JOB, 0, 1), 0);
    CU_ASSERT_EQUAL(dumped("pwc-session"), 0);
    CU_ASSERT_EQUAL(dumped("pwc-segment"), 0);
    raw_session_close(&s);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* In /proc a process that may not be dumped belongs to root, whichever user runs it; and another
 * process of that user may not look into it. */
static void no_cores_where_many_are_served(void)
{
    static const uid_t uid = 61001;
    struct daemon system, user;
    struct stat st;
    char path[64];

    if (geteuid() != 0) {
        printf("(left out: only root can be other users) ");
        return;
    }
    CU_ASSERT_EQUAL_FATAL(daemon_start_as(&user, uid, program, NULL), 0);
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)user.pid);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_uid, uid);
    CU_ASSERT_EQUAL(daemon_stop(&user), 0);

    CU_ASSERT_EQUAL_FATAL(daemon_start_as(&system, uid, program,
                                          (const char *const[]){"--allow-users", "61002", NULL}),
                          0);
    snprintf(path, sizeof(path), "/proc/%d/mem", (int)system.pid);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_uid, 0);
    CU_ASSERT_EQUAL(daemon_stop(&system), 0);
}

/* Guards that the log of a daemon that serves other users warns of holes if and only if the daemon
 * may not mark shared memory. */
static void holes_where_many_are_served(void)
{
    static const char *const others[] = {"--allow-users", "61002", "--log", "info", NULL};
    static const struct {
        uid_t uid;
        const char *const *arguments;
    } rows[] = {{61001, others}, {0, others}, {61001, others + 2}};

    if (geteuid() != 0) {
        printf("(left out: only root can be other users) ");
        return;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool warns = rows[i].arguments == others && (rows[i].uid != 0 || mapping_probe_mark() < 0);
        struct daemon one;

        CU_ASSERT_EQUAL_FATAL(daemon_start_as(&one, rows[i].uid, program, rows[i].arguments), 0);
        CU_ASSERT_TRUE(daemon_says(&one, "serves at"));
        CU_ASSERT_EQUAL(strstr(one.said, "by holes in shared memory") != NULL, warns);
        CU_ASSERT_EQUAL(daemon_stop(&one), 0);
    }
}

/* ---- state that pwcctl shows ---------------------------------------------------------------- */

/* A quarantined rank is still shown with its reason, however many strangers break the protocol
 * afterwards. */
static void strangers_do_not_hide_offenders(void)
{
    static const uint8_t nonsense[4] = {0xff, 0xff, 0xff, 0xff};
    struct raw_session s;

    CU_ASSERT_EQUAL_FATAL(raw_session_open(&s, &d, JOB, 0, 1), 0);
    raw_set_tail(&s, 2 * RAW_RING);
    CU_ASSERT_TRUE(raw_hangs_up(s.socket));
    raw_session_close(&s);
    for (int i = 0; i < 64; i++) {
        int stranger = raw_connect(&d);

        (void)raw_send(stranger, nonsense, sizeof(nonsense), -1);
        CU_ASSERT_TRUE(raw_hangs_up(stranger));
        close(stranger);
    }
    CU_ASSERT_TRUE(
        look_quarantined(&d, JOB, 0, "submission ring: tail or record size out of range"));
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"children keep the socket", children_keep_the_socket},
                           {"numbers come again", numbers_come_again},
                           {"descriptors that block", descriptors_that_block},
                           {"cores without clients", cores_without_clients},
                           {"no cores where many are served", no_cores_where_many_are_served},
                           {"holes where many are served", holes_where_many_are_served},
                           {"strangers do not hide offenders", strangers_do_not_hide_offenders},
                           CU_TEST_INFO_NULL};
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    program = argv[1];
    if (daemon_start(&d, program, NULL) == 0 && look_holdings(&d, &quiet))
        failed = suite_run("trust", tests);
    return daemon_end(&d, failed);
}

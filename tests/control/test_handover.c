/*
 * A daemon with a keeper hands over, is killed, or cannot be started for a moment: its clients
 * survive all of that, and a program that does not come up does no harm.
 *
 *     test_handover PWCD ODD-PWCD
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/team.h"
#include "tests/lib/daemon.h"
#include "tests/lib/process.h"
#include "tests/suite.h"

enum { LIMIT_MS = 20000, HAND_OVERS = 3, RING = 8192, LEFT_UNREAD = 300, SEGMENTS = 64 };

static const char *program, *odd_program;
static struct daemon d;
static int rank; /* connection of the client that must survive */

/* ---- processes ------------------------------------------------------------------------------- */

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Reads the first thread's state from /proc ('R', 'S', 'T', 'Z') and how often the thread has
 * slept. A count that /proc does not have stays unchanged. */
static char state_of(pid_t pid, unsigned long *sleeps)
{
    char path[64], line[128], state = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file)) {
        (void)sscanf(line, "State: %c", &state);
        (void)sscanf(line, "voluntary_ctxt_switches: %lu", sleeps);
    }
    fclose(file);
    return state;
}

static void await_state(pid_t pid, char state)
{
    unsigned long sleeps;

    for (int i = 0; i < LIMIT_MS && state_of(pid, &sleeps) != state; i++)
        nap();
    CU_ASSERT_EQUAL(state_of(pid, &sleeps), state);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void start(const char *which, const char *odd)
{
    const char *const arguments[] = {"--keep", NULL};

    if (odd)
        setenv("PWCD_ODD", odd, 1);
    else
        unsetenv("PWCD_ODD");
    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, which, arguments), 0);
    rank = raw_connect(&d);
    CU_ASSERT_EQUAL_FATAL(raw_hello(rank, "handed", 0, 1), 0);
    CU_ASSERT_TRUE(raw_is_served(&d)); /* the daemon has noted that Hello is answered */
}

/* Returns the keeper's other child, the process that is to take over, if it runs; 0: there is
 * none. */
static pid_t beside(pid_t daemon)
{
    char path[64], text[128] = "", *at = text;
    unsigned long sleeps;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)d.pid, (int)d.pid);
    file = fopen(path, "re");
    if (!file)
        return 0;
    (void)!fgets(text, sizeof(text), file);
    fclose(file);
    for (long pid; (pid = strtol(at, &at, 10)) > 0;) {
        char state = pid == daemon ? 0 : state_of((pid_t)pid, &sleeps);

        if (state != 0 && state != 'Z') /* not one that has ended already */
            return (pid_t)pid;
    }
    return 0;
}

/* Whether the daemon is a process other than `than`, which has not ended. */
static bool is_next(pid_t pid, pid_t than)
{
    unsigned long sleeps;
    char state = pid != than && pid != 0 ? state_of(pid, &sleeps) : 0;

    return state != 0 && state != 'Z';
}

/* Waits until the daemon is a process other than `than`, and returns it. */
static pid_t next_daemon(pid_t than)
{
    pid_t pid = than;

    for (int i = 0; i < LIMIT_MS && !is_next(pid = process_child(d.pid), than); i++)
        nap();
    CU_ASSERT_FATAL(is_next(pid, than));
    CU_ASSERT_TRUE(raw_is_served(&d));
    return pid;
}

/* Checks that the client's rank is still served, and stops the daemon. Afterwards the log is
 * complete. */
static void stop(void)
{
    struct answer a;

    CU_ASSERT_EQUAL(ask_context(rank, RING, &a), 0);
    answer_close(&a);
    close(rank);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* Checks that the daemon's log does not hold this text. */
static void expect_none(const char *text)
{
    CU_ASSERT_PTR_NULL(strstr(d.said, text));
    if (strstr(d.said, text))
        fprintf(stderr, "%s\n", d.said);
}

static bool ask_upgrade(int s, const char *to)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Upgrade upgrade = PWC__UPGRADE__INIT;

    upgrade.program = (char *)(uintptr_t)to;
    request.body_case = PWC__CLIENT_REQUEST__BODY_UPGRADE;
    request.upgrade = &upgrade;
    return raw_request(s, 3, &request);
}

/* Reads the status of the answer. */
static int upgraded(int s)
{
    struct answer a;

    return ask_nothing(s, &a);
}

/* Writes a script into the daemon's folder that waits for a line in the pipe `go_on`, and then
 * continues with these words. */
static void make_program(char path[128], char go_on[128], const char *words)
{
    FILE *file;

    snprintf(path, 128, "%s/program", d.directory);
    snprintf(go_on, 128, "%s/go_on", d.directory);
    CU_ASSERT_EQUAL_FATAL(mkfifo(go_on, 0600), 0);
    file = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fprintf(file, "#!/bin/sh\nread word < '%s'\n%s\n", go_on, words);
    fchmod(fileno(file), 0700);
    fclose(file);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* A client that was handed over once and then hung up is not handed over the next time. */
static void again_and_again(void)
{
    pid_t daemon;

    start(program, NULL);
    daemon = process_child(d.pid);
    for (int i = 0; i < HAND_OVERS; i++) {
        int s = raw_connect(&d), other = raw_connect(&d);

        CU_ASSERT_TRUE(ask_upgrade(s, ""));
        CU_ASSERT_EQUAL(upgraded(s), 0);
        daemon = next_daemon(daemon);
        close(s);
        close(other);
        CU_ASSERT_TRUE(raw_is_served(&d)); /* the daemon has seen both clients go */
        kill(d.pid, SIGUSR2);
        daemon = next_daemon(daemon);
    }
    stop();
    expect_none("is started again");
    expect_none("pwcd: error");
}

static bool ask_lookup(uint32_t id)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Lookup lookup = PWC__LOOKUP__INIT;

    lookup.name = "later";
    lookup.wait = true;
    request.body_case = PWC__CLIENT_REQUEST__BODY_LOOKUP;
    request.lookup = &lookup;
    return raw_request(rank, id, &request);
}

static bool ask_publish(uint32_t id)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Publish publish = PWC__PUBLISH__INIT;

    publish.name = "later";
    request.body_case = PWC__CLIENT_REQUEST__BODY_PUBLISH;
    request.publish = &publish;
    return raw_request(rank, id, &request);
}

/* Joins a team whose other member does not come, and does not wait. Returns the connection. */
static int join_alone(struct answer *context)
{
    Pwc__TeamJoin join;
    int s = raw_connect(&d);

    CU_ASSERT_EQUAL(raw_hello(s, "joins", 0, 2), 0);
    CU_ASSERT_EQUAL(ask_context(s, RING, context), 0);
    join = raw_team_call(context->handle, 0, 0);
    CU_ASSERT_TRUE(raw_team_join(s, &join));
    return s;
}

/* A hand-over does not wait for requests that may wait for other ranks without end: lookups and
 * joins of teams, which the library repeats. For other requests this daemon would wait without
 * end. */
static void waits_for_no_rank(void)
{
    struct answer a, context;
    pid_t daemon;
    int s, member;

    start(odd_program, "patient");
    daemon = process_child(d.pid);
    CU_ASSERT_TRUE(ask_lookup(50));
    member = join_alone(&context);
    CU_ASSERT_TRUE(raw_is_served(&d)); /* so the daemon has read these requests */
    s = raw_connect(&d);
    CU_ASSERT_TRUE(ask_upgrade(s, ""));
    CU_ASSERT_EQUAL(upgraded(s), 0);
    CU_ASSERT_EQUAL(ask_nothing(rank, &a), -ECONNABORTED);
    CU_ASSERT_EQUAL(ask_nothing(member, &a), -ECONNABORTED);
    (void)next_daemon(daemon);
    CU_ASSERT_TRUE(ask_lookup(51));
    CU_ASSERT_TRUE(ask_publish(52));
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(ask_nothing(rank, &a), 0);
    answer_close(&context);
    close(member);
    close(s);
    stop();
}

/* A program that is not a daemon ends; its request is answered with an error, and the next request
 * may follow at once. */
static void does_not_come_up(void)
{
    char path[128], go_on[128];
    int first, second, fifo;
    pid_t daemon, next;

    start(program, NULL);
    daemon = process_child(d.pid);
    first = raw_connect(&d);
    second = raw_connect(&d);
    /* The daemon is stopped meanwhile, so that one turn of its loop sees both events: the first
     * process has ended, and a second one is asked for. */
    make_program(path, go_on, "");
    CU_ASSERT_TRUE(ask_upgrade(first, path));
    CU_ASSERT_TRUE(daemon_says(&d, "/program\" is to take over"));
    fifo = open(go_on, O_WRONLY | O_CLOEXEC);
    kill(daemon, SIGSTOP);
    await_state(daemon, 'T');
    next = beside(daemon);
    CU_ASSERT_NOT_EQUAL_FATAL(next, 0);
    close(fifo);
    await_state(next, 0); /* the keeper has waited for it */
    CU_ASSERT_TRUE(ask_upgrade(second, "/bin/false"));
    kill(daemon, SIGCONT);
    CU_ASSERT_EQUAL(upgraded(second), -EALREADY);
    CU_ASSERT_EQUAL(upgraded(first), -EPIPE);
    unlink(path);
    unlink(go_on);
    for (int i = 0; i < 3; i++) {
        next = beside(daemon);
        if (next != 0) /* still ending */
            await_state(next, 0);
        CU_ASSERT_TRUE(ask_upgrade(first, "/bin/false"));
        CU_ASSERT_EQUAL(upgraded(first), -EPIPE);
    }
    close(first);
    close(second);
    stop();
    expect_none("is started again");
}

/* A signal that arrives while another process is about to take over asks for one more hand-over,
 * because the configuration may have changed since. That holds after a failed hand-over and after a
 * successful one. */
static void asked_meanwhile(void)
{
    static const bool comes_up[] = {false, true};

    for (size_t i = 0; i < sizeof(comes_up) / sizeof(comes_up[0]); i++) {
        char path[128], go_on[128], words[200] = "";
        int s, fifo;
        pid_t daemon, next;

        start(program, NULL);
        daemon = process_child(d.pid);
        s = raw_connect(&d);
        if (comes_up[i])
            snprintf(words, sizeof(words), "exec '%s' \"$@\"", program);
        make_program(path, go_on, words);
        CU_ASSERT_TRUE(ask_upgrade(s, path));
        CU_ASSERT_TRUE(daemon_says(&d, "/program\" is to take over"));
        fifo = open(go_on, O_WRONLY | O_CLOEXEC);
        next = beside(daemon);
        kill(daemon, SIGUSR2);
        for (int turn = 0; turn < 2; turn++)
            CU_ASSERT_TRUE(raw_is_served(&d)); /* the daemon has seen the signal */
        close(fifo);
        CU_ASSERT_EQUAL(upgraded(s), comes_up[i] ? 0 : -EPIPE);
        if (next_daemon(daemon) == next)
            (void)next_daemon(next);
        close(s);
        unlink(path);
        unlink(go_on);
        stop();
        expect_none("is started again");
        expect_none("no hand-over");
    }
}

/* The next process finds errors in its configuration while the running daemon still serves. */
static void wrongly_configured(void)
{
    static const char *const words[] = {
        "--allow-users nobody-of-this-name", "--allow-groups nobody-of-this-name",
        "--inspect-groups nobody-of-this-name", "--nodes 192.0.2.7:1,127.0.0.1:2 --node 0",
        "--nodes no.such.name.invalid:1,127.0.0.1:2 --node 0"};
    char path[128];
    pid_t daemon;
    int s;

    setenv("PWCD_SECRET", "a secret that has 32 characters or more", 1);
    start(program, NULL);
    daemon = process_child(d.pid);
    s = raw_connect(&d);
    snprintf(path, sizeof(path), "%s/program", d.directory);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        FILE *file = fopen(path, "we");

        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        fprintf(file, "#!/bin/sh\nexec '%s' \"$@\" %s\n", program, words[i]);
        fchmod(fileno(file), 0700);
        fclose(file);
        CU_ASSERT_TRUE(ask_upgrade(s, path));
        CU_ASSERT_EQUAL(upgraded(s), -EPIPE);
        CU_ASSERT_EQUAL(process_child(d.pid), daemon);
    }
    unlink(path);
    unsetenv("PWCD_SECRET");
    close(s);
    stop();
    expect_none("is started again");
}

/* The next process runs, but reports nothing to the daemon. */
static void stands_still(void)
{
    char path[128], go_on[128];
    int s, fifo;

    start(odd_program, "hasty");
    s = raw_connect(&d);
    make_program(path, go_on, "");
    fifo = open(go_on, O_RDWR | O_CLOEXEC);
    CU_ASSERT_TRUE(ask_upgrade(s, path));
    CU_ASSERT_EQUAL(upgraded(s), -EPIPE);
    CU_ASSERT_EQUAL(beside(process_child(d.pid)), 0);
    close(fifo);
    close(s);
    unlink(path);
    unlink(go_on);
    stop();
}

/* Connects a client that reads none of its answers, so that a hand-over waits as long as it may. */
static int connect_unread(void)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    int unread = raw_connect(&d);

    inspect.what = "config";
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    for (uint32_t i = 1; i <= LEFT_UNREAD; i++)
        CU_ASSERT_TRUE(raw_request(unread, i, &request));
    return unread;
}

/* A request under way delays the hand-over; a client that hangs up meanwhile does not. */
static void hung_up_meanwhile(void)
{
    unsigned long before = 0, sleeps;
    struct pollfd end = {.events = POLLIN};
    int s, unread;
    pid_t daemon;

    start(program, NULL);
    daemon = process_child(d.pid);
    end.fd = pidfd_open(daemon, 0);
    unread = connect_unread();
    s = raw_connect(&d);
    CU_ASSERT_TRUE(ask_upgrade(s, ""));
    CU_ASSERT_EQUAL(upgraded(s), 0);
    (void)state_of(daemon, &before);
    sleeps = before;
    close(s);
    for (int i = 0; i < LIMIT_MS / 100 && poll(&end, 1, 100) == 0; i++)
        (void)state_of(daemon, &sleeps);
    close(end.fd);
    (void)next_daemon(daemon);
    /* The daemon looks a thousand times a second, and sleeps after each look. */
    CU_ASSERT(sleeps - before > 20);
    printf("%lu sleeps ", sleeps - before);
    close(unread);
    stop();
}

/* The next process dies after it was ready, before the keeper knows that it is the daemon: another
 * one is started. The daemon stays until the next process is dead. */
static void dies_when_ready(void)
{
    struct pollfd end = {.events = POLLIN};
    pid_t daemon, next;
    int s, unread;

    start(odd_program, "patient");
    daemon = process_child(d.pid);
    unread = connect_unread();
    s = raw_connect(&d);
    CU_ASSERT_TRUE(ask_upgrade(s, ""));
    CU_ASSERT_EQUAL(upgraded(s), 0);
    next = beside(daemon);
    CU_ASSERT_NOT_EQUAL_FATAL(next, 0);
    end.fd = pidfd_open(next, 0);
    kill(next, SIGKILL);
    CU_ASSERT_EQUAL(poll(&end, 1, LIMIT_MS), 1);
    close(end.fd);
    close(unread);
    CU_ASSERT_NOT_EQUAL(next_daemon(daemon), next);
    close(s);
    stop();
    CU_ASSERT_PTR_NOT_NULL(strstr(d.said, "is started again"));
}

/* Makes the file with which the next call of an odd daemon is odd. Returns its path. */
static const char *be_odd(void)
{
    const char *path = getenv("PWCD_ODD_FILE");
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CU_ASSERT_FATAL(file >= 0);
    close(file);
    return path;
}

/* SIGTERM that arrives when the engine stops for the hand-over ends the next process. */
static void ended_meanwhile(void)
{
    struct pollfd end = {.events = POLLIN};
    int s;

    start(odd_program, "ended");
    end.fd = pidfd_open(d.pid, 0);
    s = raw_connect(&d);
    (void)be_odd();
    CU_ASSERT_TRUE(ask_upgrade(s, ""));
    CU_ASSERT_EQUAL(upgraded(s), 0);
    CU_ASSERT_EQUAL(poll(&end, 1, LIMIT_MS), 1);
    close(end.fd);
    close(s);
    close(rank);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    expect_none("is started again");
}

/* The first start after the daemon's death fails for a temporary reason. */
static void fails_at_first(const char *odd)
{
    const char *file;
    pid_t daemon;

    start(odd_program, odd);
    file = be_odd();
    daemon = process_child(d.pid);
    kill(daemon, SIGKILL);
    (void)next_daemon(daemon);
    stop();
    CU_ASSERT_NOT_EQUAL(access(file, F_OK), 0);
}

/* Sends a request to close a context and one to open another, and does not wait for answers. */
static bool reopen(uint32_t session)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ContextClose close_it = PWC__CONTEXT_CLOSE__INIT;
    Pwc__ContextOpen open_it = PWC__CONTEXT_OPEN__INIT;
    Pwc__Rings rings = PWC__RINGS__INIT;

    close_it.session = session;
    request.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE;
    request.context_close = &close_it;
    if (!raw_request(rank, 5, &request))
        return false;
    rings.submit = rings.local = rings.remote = rings.reply_submit = RING;
    rings.reply_event = 8 * RING; /* as ask_context does */
    open_it.rings = &rings;
    request.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN;
    request.context_open = &open_it;
    return raw_request(rank, 6, &request);
}

/* The engine gives the handle of a context that it has released to another one, and the daemon dies
 * before its control thread knows either. The next daemon does not give the memory of the first
 * context to the second. */
static void handle_is_reused(void)
{
    struct answer first, a;
    pid_t daemon;

    start(odd_program, "reusing");
    daemon = process_child(d.pid);
    CU_ASSERT_EQUAL(ask_context(rank, RING, &first), 0);
    (void)be_odd();
    kill(daemon, SIGSTOP); /* one turn of the daemon's loop sees both requests */
    await_state(daemon, 'T');
    CU_ASSERT_TRUE(reopen(first.handle));
    kill(daemon, SIGCONT);
    (void)next_daemon(daemon);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(ask_nothing(rank, &a), -ECONNABORTED);
    CU_ASSERT_EQUAL(ask_context_close(rank, first.handle), -EINVAL);
    answer_close(&first);
    stop();
    CU_ASSERT_PTR_NOT_NULL(strstr(d.said, "(signal 9): it is started again"));
}

/* A rank leaves, and the daemon dies before its engine has released the rank. Where the rank comes
 * back then, it waits until the engine of the next daemon has. */
static void comes_back(void)
{
    pid_t daemon;

    start(odd_program, "tardy");
    daemon = process_child(d.pid);
    (void)be_odd();
    close(rank);
    CU_ASSERT_TRUE(daemon_says(&d, "has left"));
    CU_ASSERT_TRUE(raw_is_served(&d)); /* the daemon has noted that the client has left */
    kill(daemon, SIGKILL);
    (void)next_daemon(daemon);
    rank = raw_connect(&d);
    CU_ASSERT_EQUAL(raw_hello(rank, "handed", 0, 1), 0);
    CU_ASSERT_NOT_EQUAL(access(getenv("PWCD_ODD_FILE"), F_OK), 0);
    stop();
}

/* A user whose names fill its share of the store ends with the next restart, and takes no room from
 * a client of another user. */
static void fills_the_store(void)
{
    static const char *const users[] = {"--keep", "--allow-users", "61002", NULL};
    struct answer context, segment;
    pid_t daemon;
    int filling;

    if (geteuid() != 0) {
        printf("as root alone ");
        return;
    }
    setenv("PWCD_ODD", "crowded", 1);
    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, odd_program, users), 0);
    CU_ASSERT_EQUAL_FATAL(chmod(d.directory, 0755), 0);
    rank = raw_connect(&d);
    CU_ASSERT_EQUAL_FATAL(raw_hello(rank, "handed", 0, 1), 0);
    filling = raw_connect_as(&d, 61002);
    CU_ASSERT_EQUAL_FATAL(raw_hello(filling, "filling", 0, 1), 0);
    for (int i = 0; i < SEGMENTS; i++) {
        CU_ASSERT_EQUAL_FATAL(ask_segment(filling, 4096, &segment), 0);
        answer_close(&segment);
    }
    CU_ASSERT_EQUAL(ask_context(rank, RING, &context), 0);
    CU_ASSERT_TRUE(raw_is_served(&d)); /* the daemon has noted that the request is answered */
    daemon = process_child(d.pid);
    kill(daemon, SIGKILL);
    (void)next_daemon(daemon);
    CU_ASSERT_TRUE(raw_hangs_up(filling));
    CU_ASSERT_EQUAL(ask_context_close(rank, context.handle), 0);
    answer_close(&context);
    close(filling);
    stop();
}

static void cannot_be_opened(void)
{
    fails_at_first("unopened");
    CU_ASSERT_PTR_NOT_NULL(strstr(d.said, "(status 1): it is started again"));
}

static void cannot_be_forked(void)
{
    fails_at_first("unforked");
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"again and again", again_and_again},
                           {"waits for no rank", waits_for_no_rank},
                           {"does not come up", does_not_come_up},
                           {"asked meanwhile", asked_meanwhile},
                           {"wrongly configured", wrongly_configured},
                           {"stands still", stands_still},
                           {"hung up meanwhile", hung_up_meanwhile},
                           {"dies when ready", dies_when_ready},
                           {"ended meanwhile", ended_meanwhile},
                           {"handle is reused", handle_is_reused},
                           {"comes back", comes_back},
                           {"fills the store", fills_the_store},
                           {"cannot be opened", cannot_be_opened},
                           {"cannot be forked", cannot_be_forked},
                           CU_TEST_INFO_NULL};
    char file[64];

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    program = argv[1];
    odd_program = argv[2];
    snprintf(file, sizeof(file), "/tmp/pwc-handover-%d", (int)getpid());
    setenv("PWCD_ODD_FILE", file, 1);
    return suite_run("handover", tests);
}

/*
 * One daemon as a process, and clients that break every rule of its socket: each client harms only
 * itself, and a well-behaved client is served meanwhile. Then what the daemon keeps, and what it
 * gives back when clients end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "shm_ring/clock.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/daemon.h"
#include "tests/lib/process.h"
#include "tests/suite.h"

static const char *program;
static struct daemon d;
static int quiet_descriptors; /* descriptors of the daemon without clients */

/* Waits until the daemon has given back all that clients had. The test must poll: no message
 * reports that the daemon has noticed a closed connection. */
static bool settles(void)
{
    for (int i = 0; i < 10000; i++) {
        if (process_descriptors(d.pid) == quiet_descriptors)
            return raw_is_served(&d);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    fprintf(stderr, "%d descriptors are open, were %d\n", process_descriptors(d.pid),
            quiet_descriptors);
    return false;
}

static int connected(void)
{
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    return s;
}

static int attached(const char *job, uint32_t rank, uint32_t size)
{
    int s = connected();

    CU_ASSERT_EQUAL_FATAL(raw_hello(s, job, rank, size), 0);
    return s;
}

/* ---- abuse ----------------------------------------------------------------------------------- */

static void frames_that_are_none(void)
{
    static const struct {
        const char *bytes;
        size_t size;
    } rows[] = {
        {"\xff\xff\xff\xff", 4},                 /* far over the bound */
        {"\x01\x00\x01\x00", 4},                 /* 65537: just over it */
        {"\x00\x00\x00\x00", 4},                 /* an empty message */
        {"\x04\x00\x00\x00\xff\xff\xff\xff", 8}, /* not protobuf */
        {"\x02\x00\x00\x00\x08\x00", 6},         /* id 0 */
        {"GET / HTTP/1.0\r\n\r\n", 18},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int s = connected();

        CU_ASSERT_EQUAL(send(s, rows[i].bytes, rows[i].size, MSG_NOSIGNAL), (ssize_t)rows[i].size);
        CU_ASSERT_TRUE(raw_hangs_up(s));
        close(s);
        CU_ASSERT_TRUE(raw_is_served(&d));
    }
}

static bool ask_look(int s)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;

    inspect.what = "status";
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    return raw_request(s, 1, &request);
}

static int look(int s, struct answer *a)
{
    return ask_look(s) ? ask_nothing(s, a) : -ECONNRESET;
}

static bool is_open(int s)
{
    struct pollfd wait = {.fd = s, .events = POLLRDHUP};

    return poll(&wait, 1, 0) == 0;
}

/* A deadline ends a connection that sends nothing, that sends half a frame after Hello or after a
 * look, or that stops to ask. A client that goes on looking stays connected. */
static void stalled(void)
{
    int silent = connected(), half = attached("stalled", 0, 1), looker = connected();
    int idle[14], half_look = connected();
    struct answer a;

    CU_ASSERT_EQUAL(look(looker, &a), 0);
    CU_ASSERT_EQUAL(look(half_look, &a), 0);
    for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
        idle[i] = connected();
        CU_ASSERT_EQUAL(look(idle[i], &a), 0);
    }
    CU_ASSERT_EQUAL(send(half, "\x10\x00\x00\x00\x08", 5, MSG_NOSIGNAL), 5);
    CU_ASSERT_EQUAL(send(half_look, "\x10\x00\x00\x00\x08", 5, MSG_NOSIGNAL), 5);
    for (int i = 0; i < 2000 && (is_open(idle[0]) || is_open(half_look)); i++) {
        CU_ASSERT_EQUAL_FATAL(look(looker, &a), 0);
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    CU_ASSERT_EQUAL(ask_nothing(idle[0], &a), -ETIMEDOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "nothing was asked for 5 s"));
    CU_ASSERT_TRUE(raw_is_served(&d));
    CU_ASSERT_TRUE(raw_hangs_up(silent));
    CU_ASSERT_TRUE(raw_hangs_up(half));
    CU_ASSERT_TRUE(raw_hangs_up(half_look));
    for (size_t i = 0; i < sizeof(idle) / sizeof(idle[0]); i++) {
        CU_ASSERT_TRUE(raw_hangs_up(idle[i]));
        close(idle[i]);
    }
    CU_ASSERT_EQUAL(look(looker, &a), 0);
    close(looker);
    close(half_look);
    close(silent);
    close(half);
    CU_ASSERT_TRUE(settles());
    CU_ASSERT_TRUE(daemon_says(&d, "no Hello within 5 s"));
    CU_ASSERT_TRUE(daemon_says(&d, "was begun and not ended"));
}

static void descriptors_sent(void)
{
    int s = connected(), fds[3], count;
    Pwc__ClientReply *reply;

    CU_ASSERT_TRUE(raw_send(s, "\x08\x01", 2, STDIN_FILENO));
    reply = raw_reply(s, fds, &count);
    CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
    CU_ASSERT_EQUAL_FATAL(reply->body_case, PWC__CLIENT_REPLY__BODY_ERROR);
    CU_ASSERT_PTR_NOT_NULL(strstr(reply->error->text, "the daemon takes none"));
    pwc__client_reply__free_unpacked(reply, NULL);
    CU_ASSERT_TRUE(raw_hangs_up(s));
    close(s);
    CU_ASSERT_TRUE(settles());
}

/* A client sends requests without end and never reads the replies. */
static void flood(void)
{
    int s = connected();
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    uint8_t bytes[64], frame[68];
    size_t size;
    int sent = 0;

    inspect.what = "config";
    request.id = 5;
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    size = pwc__client_request__pack(&request, bytes);
    frame[0] = (uint8_t)size;
    frame[1] = frame[2] = frame[3] = 0;
    memcpy(frame + 4, bytes, size);
    fcntl(s, F_SETFL, fcntl(s, F_GETFL) | O_NONBLOCK);
    /* Sends until the daemon reads no more. Other clients are served meanwhile. */
    while (sent < 200000 && send(s, frame, size + 4, MSG_NOSIGNAL) == (ssize_t)(size + 4))
        sent++;
    CU_ASSERT(sent < 200000);
    for (int i = 0; i < 20; i++)
        CU_ASSERT_TRUE(raw_is_served(&d));
    close(s);
}

/* Reads the resident memory of the daemon, in KiB. */
static long resident(void)
{
    char path[64], line[256];
    long kib = 0;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)d.pid);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmRSS: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

static void give(int socket, uint32_t sequence, uint32_t rank)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;
    static uint8_t part[4096];

    memset(part, (int)(rank + sequence), sizeof(part));
    exchange.sequence = sequence;
    exchange.data.data = part;
    exchange.data.len = sizeof(part);
    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    request.exchange = &exchange;
    /* Request numbers of one to three bytes, so that the parts of replies before the shared result
     * differ in length. */
    CU_ASSERT_TRUE_FATAL(raw_request(socket, 1 + sequence * (1 + rank * 100), &request));
}

/* Checks that the next replies are the whole result of this exchange. */
static bool has_result(int socket, uint32_t sequence, uint32_t rank, uint32_t ranks)
{
    uint64_t had = 0;
    bool right = true, last = false;

    while (right && !last) {
        int fds[3], fd_count;
        Pwc__ClientReply *reply = raw_reply(socket, fds, &fd_count);
        const Pwc__Exchanged *piece;

        right = reply && reply->body_case == PWC__CLIENT_REPLY__BODY_EXCHANGED &&
                reply->id == 1 + sequence * (1 + rank * 100) && reply->exchanged->offset == had;
        if (right) {
            piece = reply->exchanged;
            for (size_t i = 0; i < piece->data.len; i++)
                right &= piece->data.data[i] == (uint8_t)((had + i) / 4096 + sequence);
            had += piece->data.len;
            last = piece->last;
        }
        if (reply)
            pwc__client_reply__free_unpacked(reply, NULL);
    }
    return right && had == 4096ull * ranks;
}

/* The daemon keeps a result that ranks do not read once, not once for each rank. */
static void results_unread(void)
{
    enum { RANKS = 64, EXCHANGES = 8, MOST_KIB = 48 << 10 }; /* 128 MiB if kept for each rank */
    static int ranks[RANKS];
    struct answer a;
    long before;

    for (uint32_t r = 0; r < RANKS; r++)
        ranks[r] = attached("unread", r, RANKS);
    before = resident();
    for (uint32_t r = 1; r < RANKS; r++) {
        for (uint32_t e = 0; e < EXCHANGES; e++)
            give(ranks[r], e, r);
        CU_ASSERT_EQUAL_FATAL(look(ranks[r], &a), 0); /* the daemon has read all before */
    }
    for (uint32_t e = 0; e < EXCHANGES; e++) { /* each rank gets the whole result */
        give(ranks[0], e, 0);
        CU_ASSERT_TRUE_FATAL(has_result(ranks[0], e, 0, RANKS));
    }
    CU_ASSERT(resident() - before < MOST_KIB);
    for (uint32_t r = 1; r < RANKS; r++)
        for (uint32_t e = 0; e < EXCHANGES; e++)
            CU_ASSERT_TRUE_FATAL(has_result(ranks[r], e, r, RANKS));
    for (uint32_t r = 0; r < RANKS; r++)
        close(ranks[r]);
    CU_ASSERT_TRUE(settles());
}

/* A connection over the bound is refused with the reason. Ranks have places of their own, and a
 * connection that ends makes room. All look at once, because the daemon ends connections that do
 * not look again in time. */
static void many_lookers(void)
{
    enum { MANY = 20, MAX = 16 };
    int sockets[MANY], looking[MANY], rank, count = 0, refused = -1;
    struct answer a;

    for (int i = 0; i < MANY; i++)
        sockets[i] = connected();
    for (int i = 0; i < MANY; i++)
        CU_ASSERT_TRUE(ask_look(sockets[i]));
    for (int i = 0; i < MANY; i++) {
        if (ask_nothing(sockets[i], &a) == 0) {
            looking[count++] = sockets[i];
            continue;
        }
        CU_ASSERT_EQUAL(a.status, -EUSERS);
        CU_ASSERT_PTR_NOT_NULL(strstr(a.text, "already has 16 connections that only look"));
        refused = sockets[i];
    }
    CU_ASSERT_EQUAL_FATAL(count, MAX);
    rank = attached("looking", 0, 1);
    CU_ASSERT_EQUAL(look(rank, &a), 0);
    CU_ASSERT_EQUAL(look(looking[0], &a), 0);
    /* A connection that has only looked may still become a rank. */
    CU_ASSERT_EQUAL(raw_hello(looking[1], "looked", 0, 1), 0);
    CU_ASSERT_EQUAL(look(refused, &a), 0);
    for (int i = 0; i < MANY; i++)
        close(sockets[i]);
    close(rank);
    CU_ASSERT_TRUE(settles());
}

static void many_strangers(void)
{
    int sockets[64], refused = 0;
    char byte;

    for (int i = 0; i < 64; i++)
        sockets[i] = connected();
    /* A connection over the bound gets an error and is closed at once; the first ones keep their
     * places. */
    for (int i = 32; i < 64; i++)
        refused += recv(sockets[i], &byte, 1, 0) == 1;
    for (int i = 0; i < 32; i++)
        CU_ASSERT_EQUAL(recv(sockets[i], &byte, 1, MSG_DONTWAIT), -1);
    CU_ASSERT_EQUAL(refused, 32);
    for (int i = 0; i < 64; i++)
        close(sockets[i]);
    CU_ASSERT_TRUE(settles());
}

/* However many clients connect, few are accepted in a millisecond. The last client is served after
 * all others, so its time shows the rate. */
static void crowd_of_callers(void)
{
    enum { CROWD = 100, A_MS = 4, SLACK_MS = 3, NS_A_MS = 1000000 };
    uint64_t began = clock_ns();
    int s;

    for (int i = 1; i < CROWD; i++)
        close(connected());
    s = connected();
    (void)!send(s, "\xff\xff\xff\xff\xff", 5, MSG_NOSIGNAL);
    CU_ASSERT_TRUE(raw_hangs_up(s));
    CU_ASSERT(clock_ns() - began >= (CROWD / A_MS - SLACK_MS) * (uint64_t)NS_A_MS);
    close(s);
    CU_ASSERT_TRUE(settles());
}

/* ---- ranks and quotas ------------------------------------------------------------------------ */

static void hellos(void)
{
    static const struct {
        const char *job;
        uint32_t rank, size;
        int expected;
    } rows[] = {
        {"hello", 0, 2, 0},
        {"hello", 0, 2, -EADDRINUSE}, /* rank 0 is live */
        {"hello", 2, 3, -EINVAL},     /* another size */
        {"hello", 2, 2, -EINVAL},
        {"hello", 0, 0, -EINVAL},
        {"hello", 0, (1u << 21) + 1, -EINVAL},
        {"", 0, 1, -EINVAL},
        {"with space", 0, 1, -EINVAL},
        {"with\nline", 0, 1, -EINVAL},
        {"0123456789012345678901234567890123456789012345678901234567890", 0, 1, -EINVAL},
        {"hello", 1, 2, 0},
    };
    int sockets[16];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sockets[i] = connected();
        CU_ASSERT_EQUAL(raw_hello(sockets[i], rows[i].job, rows[i].rank, rows[i].size),
                        rows[i].expected);
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        close(sockets[i]);
}

static void contexts_and_their_quota(void)
{
    int s = attached("quota", 0, 1);
    struct answer contexts[64], one;

    for (int i = 0; i < 64; i++) {
        CU_ASSERT_EQUAL(ask_context(s, 8192, &contexts[i]), 0);
        answer_close(&contexts[i]);
    }
    CU_ASSERT_EQUAL(ask_context(s, 8192, &one), -EDQUOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(one.text, "the quota (client-contexts) is 64"));
    CU_ASSERT_EQUAL(ask_context_close(s, contexts[20].handle), 0);
    CU_ASSERT_EQUAL(ask_context(s, 8192, &one), 0);
    answer_close(&one);
    close(s);
    CU_ASSERT_TRUE(settles());
}

/* ---- state that is kept, and given back ----------------------------------------------------- */

/* When a client's process is killed, the daemon gives back everything it had, and its rank is free
 * again. */
static void killed_client(void)
{
    int s, tries;
    int report[2];
    char byte;
    pid_t pid;

    CU_ASSERT_EQUAL(pipe(report), 0);
    pid = fork();
    if (pid == 0) {
        struct answer out;
        bool fine;
        int c;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        c = raw_connect(&d);
        fine = raw_hello(c, "killed", 0, 1) == 0 && ask_context(c, 8192, &out) == 0 &&
               ask_segment(c, 1 << 20, &out) == 0 &&
               ask_region(c, out.handle, 0, 4096, 3, &out) == 0;

        (void)!write(report[1], fine ? "y" : "n", 1);
        pause();
    }
    CU_ASSERT_EQUAL(read(report[0], &byte, 1), 1);
    CU_ASSERT_EQUAL(byte, 'y');
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    /* The daemon gets the death as an event, and ends the client some time later. */
    for (tries = 0; tries < 10000; tries++) {
        int rc;

        s = connected();
        rc = raw_hello(s, "killed", 0, 1);
        close(s);
        if (rc == 0)
            break;
        CU_ASSERT_EQUAL_FATAL(rc, -EADDRINUSE);
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    CU_ASSERT(tries < 10000);
    CU_ASSERT_TRUE(settles());
    close(report[0]);
    close(report[1]);
}

static void one_daemon_a_socket(void)
{
    struct daemon second;
    bool ready = true;

    CU_ASSERT_EQUAL(daemon_start_beside(&second, &d, "pwcd.sock", program, NULL, &ready), 0);
    CU_ASSERT_FALSE(ready);
    CU_ASSERT_TRUE(daemon_says(&second, "already serves"));
    CU_ASSERT_EQUAL(daemon_stop(&second), 1);
    CU_ASSERT_TRUE(raw_is_served(&d));
}

static void modes(void)
{
    struct stat st;
    char path[128];

    CU_ASSERT_EQUAL(stat(d.socket, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 07777, 0600);
    snprintf(path, sizeof(path), "%s/pwcd.counters", d.directory);
    CU_ASSERT_EQUAL(stat(path, &st), 0);
    CU_ASSERT_EQUAL(st.st_mode & 07777, 0600);
}

/* A daemon that was killed leaves its socket behind; the next daemon replaces it. */
static void stale_socket(void)
{
    struct daemon first, second;
    bool ready = false;

    CU_ASSERT_EQUAL_FATAL(daemon_start_beside(&first, &d, "stale.sock", program, NULL, &ready), 0);
    CU_ASSERT_TRUE(ready);
    daemon_kill(&first);
    CU_ASSERT_EQUAL(access(first.socket, F_OK), 0);
    CU_ASSERT_EQUAL_FATAL(daemon_start_beside(&second, &d, "stale.sock", program, NULL, &ready), 0);
    CU_ASSERT_TRUE(ready);
    CU_ASSERT_TRUE(raw_is_served(&second));
    CU_ASSERT_EQUAL(daemon_stop(&second), 0);
}

static void wrong_starts(void)
{
    static const struct {
        const char *arguments[5];
        const char *says;
    } rows[] = {
        {{"--nodes", "127.0.0.1:1,127.0.0.1:2"}, "which one this is"},
        {{"--nodes", "127.0.0.1:1,127.0.0.1:2", "--node", "2"}, "not in the list"},
        {{"--nodes", "127.0.0.1:1,127.0.0.1:2", "--node", "0"}, "need a secret"},
        {{"--nodes", "127.0.0.1"}, "give host:port"},
        {{"--allow-users", "no-such-user-here"}, "no-such-user-here"},
        {{"--provider", "no-such-provider"}, "no-such-provider"},
        {{"--ledger-start", "5000"}, "sizes"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct daemon wrong;
        bool ready = true;

        CU_ASSERT_EQUAL(
            daemon_start_beside(&wrong, &d, "wrong.sock", program, rows[i].arguments, &ready), 0);
        CU_ASSERT_FALSE(ready);
        CU_ASSERT_TRUE(daemon_says(&wrong, rows[i].says));
        CU_ASSERT_EQUAL(daemon_stop(&wrong), 1);
        CU_ASSERT_EQUAL(access(wrong.socket, F_OK), -1);
    }
}

/* Guards: a rank that is started again at once waits until the engine has released the earlier one,
 * in a job of a fixed size, and in an open job, whose home gives the same rank again. The daemon
 * stands still until both the hang-up and the new Hello wait for it. */
static void comes_back_at_once(void)
{
    static const uint32_t sizes[] = {1, UINT32_MAX};
    static const char *const jobs[] = {"again", "again-open"};

    for (int i = 0; i < 20; i++) {
        int before = connected(), after = connected(), fds[3], count;
        Pwc__ClientReply *reply;

        CU_ASSERT_EQUAL_FATAL(raw_hello(before, jobs[i % 2], 0, sizes[i % 2]), 0);
        for (int k = 0; k < 4; k++) {
            struct answer context, segment;

            CU_ASSERT_EQUAL_FATAL(ask_context(before, 4096, &context), 0);
            CU_ASSERT_EQUAL_FATAL(ask_segment(before, 65536, &segment), 0);
            answer_close(&context);
            answer_close(&segment);
        }
        CU_ASSERT_TRUE(process_stop(d.pid));
        close(before);
        CU_ASSERT_TRUE(raw_ask_hello(after, jobs[i % 2], 0, sizes[i % 2]));
        kill(d.pid, SIGCONT);
        reply = raw_reply(after, fds, &count);
        CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
        CU_ASSERT_EQUAL(reply->body_case, PWC__CLIENT_REPLY__BODY_WELCOME);
        pwc__client_reply__free_unpacked(reply, NULL);
        close(after);
    }
    CU_ASSERT_TRUE(settles());
}

/* Guards: signals that arrive while the daemon ends do not kill it. A signal to a group of
 * processes reaches the daemon twice: directly, and through its keeper. */
static void signalled_while_it_ends(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGUSR2};

    for (int i = 0; i < 5; i++) {
        struct daemon second;
        struct pollfd end = {.events = POLLIN};
        bool ready = false;

        CU_ASSERT_EQUAL_FATAL(
            daemon_start_beside(&second, &d, "second.sock", program, NULL, &ready), 0);
        CU_ASSERT_TRUE(ready);
        end.fd = (int)syscall(SYS_pidfd_open, second.pid, 0);
        kill(second.pid, SIGTERM);
        for (int n = 0; poll(&end, 1, 0) == 0; n++)
            kill(second.pid, signals[n % 3]);
        close(end.fd);
        CU_ASSERT_EQUAL(daemon_stop(&second), 0);
        CU_ASSERT_EQUAL(access(second.socket, F_OK), -1);
    }
}

/* Requests that come together with the signal are not carried out: the daemon ends in order. */
static void asked_while_it_ends(void)
{
    enum { REQUESTS = 16 };
    Pwc__ContextOpen open = PWC__CONTEXT_OPEN__INIT;
    Pwc__ClientRequest requests[REQUESTS];

    for (int i = 0; i < REQUESTS; i++) {
        pwc__client_request__init(&requests[i]);
        requests[i].body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN;
        requests[i].context_open = &open;
    }
    for (int i = 0; i < 5; i++) {
        struct daemon second;
        bool ready = false;
        int s;

        CU_ASSERT_EQUAL_FATAL(
            daemon_start_beside(&second, &d, "second.sock", program, NULL, &ready), 0);
        CU_ASSERT_TRUE(ready);
        s = raw_connect(&second);
        CU_ASSERT_EQUAL(raw_hello(s, "asks", 0, 1), 0);
        kill(second.pid, SIGSTOP);
        CU_ASSERT_EQUAL(waitpid(second.pid, NULL, WUNTRACED), second.pid);
        CU_ASSERT_TRUE(raw_requests(s, requests, REQUESTS));
        kill(second.pid, SIGTERM);
        kill(second.pid, SIGCONT);
        CU_ASSERT_EQUAL(daemon_stop(&second), 0);
        CU_ASSERT_EQUAL(access(second.socket, F_OK), -1);
        close(s);
    }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"modes", modes},
                           {"signalled while it ends", signalled_while_it_ends},
                           {"asked while it ends", asked_while_it_ends},
                           {"one daemon a socket", one_daemon_a_socket},
                           {"stale socket", stale_socket},
                           {"wrong starts", wrong_starts},
                           {"frames that are none", frames_that_are_none},
                           {"descriptors sent", descriptors_sent},
                           {"flood", flood},
                           {"results unread", results_unread},
                           {"many strangers", many_strangers},
                           {"a crowd of callers", crowd_of_callers},
                           {"many lookers", many_lookers},
                           {"hellos", hellos},
                           {"contexts and their quota", contexts_and_their_quota},
                           {"killed client", killed_client},
                           {"comes back at once", comes_back_at_once},
                           {"stalled", stalled},
                           CU_TEST_INFO_NULL};
    int failed, rc;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    program = argv[1];
    rc = daemon_start(&d, program, NULL);
    quiet_descriptors = process_descriptors(d.pid);
    failed = rc < 0 ? 1 : suite_run("daemon", tests);
    return daemon_end(&d, failed);
}

/* The control connection against replies of every kind, right and wrong. */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clientlib/attach/daemon_link.h"
#include "clientlib/attach/deadline.h"
#include "tests/suite.h"
#include "daemon/control/clients/message.h"

enum { BELL_MS = 20000 };

/* A control connection, and the daemon's end of its socket. */
struct link {
    struct daemon_link daemon_link;
    int daemon;
};

static void link_open(struct link *link, int timeout_ms)
{
    int pair[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                          0);
    CU_ASSERT_EQUAL_FATAL(daemon_link_open(&link->daemon_link, pair[0], timeout_ms), 0);
    link->daemon = pair[1];
    CU_ASSERT_EQUAL_FATAL(fcntl(link->daemon, F_SETFL, 0), 0);
}

static void hang_up(struct link *link)
{
    close(link->daemon);
    link->daemon = -1;
}

static void link_close(struct link *link)
{
    if (link->daemon >= 0)
        hang_up(link);
    daemon_link_close(&link->daemon_link);
}

static void send_bytes(struct link *link, const void *bytes, size_t size, const int *fds,
                       int fd_count)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (fd_count > 0)
        message_attach(&message, control, fds, (uint32_t)fd_count);
    CU_ASSERT_EQUAL_FATAL(sendmsg(link->daemon, &message, MSG_NOSIGNAL), (ssize_t)size);
}

static void send_reply(struct link *link, const Pwc__ClientReply *reply, const int *fds,
                       int fd_count)
{
    uint8_t frame[1024] = {0};
    size_t length = pwc__client_reply__pack(reply, frame + 4);

    frame[0] = (uint8_t)length;
    frame[1] = (uint8_t)(length >> 8);
    send_bytes(link, frame, 4 + length, fds, fd_count);
}

static void send_done(struct link *link, uint32_t id, const int *fds, int fd_count)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Done done = PWC__DONE__INIT;

    reply.id = id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_DONE;
    reply.done = &done;
    send_reply(link, &reply, fds, fd_count);
}

static void send_error(struct link *link, uint32_t id, int status, const char *text)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Error error = PWC__ERROR__INIT;

    error.status = status;
    error.text = (char *)(uintptr_t)text;
    reply.id = id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_ERROR;
    reply.error = &error;
    send_reply(link, &reply, NULL, 0);
}

static void send_bound(struct link *link, uint32_t id, uint32_t remote)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Bound bound = PWC__BOUND__INIT;

    bound.remote = remote;
    reply.id = id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_BOUND;
    reply.bound = &bound;
    send_reply(link, &reply, NULL, 0);
}

/* Makes a request that expects a reply of this kind. */
static int call(struct link *link, Pwc__ClientReply__BodyCase expected, daemon_accept *accept,
                void *context)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__SegmentClose close_request = PWC__SEGMENT_CLOSE__INIT;

    request.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE;
    request.segment_close = &close_request;
    return daemon_call(&link->daemon_link, &request, expected, accept, context);
}

static int call_done(struct link *link)
{
    return call(link, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL);
}

static int open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void expect_text(struct link *link, const char *expected)
{
    char text[DAEMON_TEXT_MAX];

    CU_ASSERT_EQUAL(daemon_link_text(&link->daemon_link, text, sizeof(text)), strlen(expected));
    CU_ASSERT_STRING_EQUAL(text, expected);
}

static void test_replies(void)
{
    struct link link;
    char cut[5];

    link_open(&link, 5000);
    send_done(&link, 1, NULL, 0);
    CU_ASSERT_EQUAL(call_done(&link), 0);
    send_error(&link, 2, -EDQUOT, "5 GiB asked, 4 GiB left: ask for less");
    CU_ASSERT_EQUAL(call_done(&link), -EDQUOT);
    expect_text(&link, "5 GiB asked, 4 GiB left: ask for less");
    CU_ASSERT_EQUAL(daemon_link_text(&link.daemon_link, cut, sizeof(cut)), 37);
    CU_ASSERT_STRING_EQUAL(cut, "5 Gi");
    /* The next call has a text of its own, and the connection works as before. */
    send_done(&link, 3, NULL, 0);
    CU_ASSERT_EQUAL(call_done(&link), 0);
    expect_text(&link, "");
    /* A status that is no error number is not passed on. */
    send_error(&link, 4, 17, "");
    CU_ASSERT_EQUAL(call_done(&link), -EPROTO);
    send_error(&link, 5, INT32_MIN, "");
    CU_ASSERT_EQUAL(call_done(&link), -EPROTO);
    link_close(&link);
}

static void test_bad_frames(void)
{
    static const struct {
        const char *what;
        uint8_t bytes[16];
        size_t size;
        bool hang_up;
        int result;
    } frames[] = {
        {"hang-up", {0}, 0, true, -ESHUTDOWN},
        {"half a length", {1, 0}, 2, true, -ESHUTDOWN},
        {"half a body", {8, 0, 0, 0, 1, 2}, 6, true, -ESHUTDOWN},
        {"length over the bound", {1, 0, 16, 0}, 4, false, -EPROTO},
        {"largest length", {0xff, 0xff, 0xff, 0xff}, 4, false, -EPROTO},
        {"no message", {3, 0, 0, 0, 0xff, 0xff, 0xff}, 7, false, -EPROTO},
        {"empty: id 0, no body", {0, 0, 0, 0}, 4, false, -EPROTO},
        {"right id, no body", {2, 0, 0, 0, 8, 1}, 6, false, -EPROTO},
        {"silence", {0}, 0, false, -ETIMEDOUT},
        {"half a body, then silence", {8, 0, 0, 0, 1, 2}, 6, false, -ETIMEDOUT},
    };

    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        struct link link;
        int rc;

        link_open(&link, 50);
        if (frames[i].size > 0)
            send_bytes(&link, frames[i].bytes, frames[i].size, NULL, 0);
        if (frames[i].hang_up)
            hang_up(&link);
        rc = call_done(&link);
        CU_ASSERT_EQUAL(rc, frames[i].result);
        if (rc != frames[i].result)
            printf("\n    %s: %d\n", frames[i].what, rc);
        CU_ASSERT_EQUAL(call_done(&link), frames[i].result);
        link_close(&link);
    }
}

static void test_wrong_kind(void)
{
    struct link link;

    link_open(&link, 5000);
    send_bound(&link, 1, 3);
    CU_ASSERT_EQUAL(call_done(&link), -EPROTO);
    CU_ASSERT_EQUAL(call_done(&link), -EPROTO);
    link_close(&link);
}

/* An Error that answers no request ends the connection, and its text is kept. */
static void test_unsolicited(void)
{
    struct link link;

    link_open(&link, 5000);
    send_error(&link, 0, -EPROTO, "record of 12 bytes: sizes are multiples of 8");
    hang_up(&link);
    CU_ASSERT_EQUAL(call_done(&link), -EPROTO);
    CU_ASSERT_EQUAL(call_done(&link), -EPROTO);
    expect_text(&link, "record of 12 bytes: sizes are multiples of 8");
    link_close(&link);
}

/* A reply that comes after its caller gave up is dropped, with its descriptors. */
static void test_late_reply(void)
{
    struct link link;
    int before;

    link_open(&link, 30);
    before = open_descriptors();
    CU_ASSERT_EQUAL(call_done(&link), -ETIMEDOUT);
    send_done(&link, 1, (int[]){link.daemon, link.daemon}, 2);
    send_done(&link, 2, NULL, 0);
    CU_ASSERT_EQUAL(call_done(&link), 0);
    CU_ASSERT_EQUAL(open_descriptors(), before);
    link_close(&link);
}

struct taken {
    int count;
    int fd;
};

static int take_first(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct taken *taken = context;

    taken->count = fd_count;
    if (fd_count > 0) {
        taken->fd = fds[0];
        fds[0] = -1;
    }
    return 1;
}

static void test_descriptors(void)
{
    int before = open_descriptors();
    struct taken taken;
    struct link link;
    int many[FRAME_FDS_MAX + 2];

    link_open(&link, 5000);
    for (int count = 0; count <= FRAME_FDS_MAX; count++) {
        for (int i = 0; i < FRAME_FDS_MAX; i++)
            many[i] = link.daemon;
        send_done(&link, (uint32_t)count + 1, many, count);
        taken = (struct taken){.fd = -1};
        CU_ASSERT_EQUAL(call(&link, PWC__CLIENT_REPLY__BODY_DONE, take_first, &taken), 0);
        CU_ASSERT_EQUAL(taken.count, count);
        if (count > 0) {
            CU_ASSERT_TRUE(fcntl(taken.fd, F_GETFD) & FD_CLOEXEC);
            close(taken.fd);
        }
    }
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
        many[i] = link.daemon;
    send_done(&link, FRAME_FDS_MAX + 2, many, FRAME_FDS_MAX + 2);
    CU_ASSERT_EQUAL(call_done(&link), -EPROTO);
    link_close(&link);
    CU_ASSERT_EQUAL(open_descriptors(), before);
}

/* This process has no descriptor left: the kernel drops those that come, and the connection
 * continues. */
static void test_descriptors_dropped(void)
{
    struct taken taken = {.fd = -1};
    struct rlimit limit, none;
    struct link link;

    link_open(&link, 5000);
    send_done(&link, 1, &link.daemon, 1);
    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    CU_ASSERT_EQUAL(call(&link, PWC__CLIENT_REPLY__BODY_DONE, take_first, &taken), 0);
    CU_ASSERT_EQUAL(taken.count, 0);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    send_done(&link, 2, &link.daemon, 1);
    CU_ASSERT_EQUAL(call(&link, PWC__CLIENT_REPLY__BODY_DONE, take_first, &taken), 0);
    CU_ASSERT_EQUAL(taken.count, 1);
    close(taken.fd);
    link_close(&link);
}

static int take_three(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    int *seen = context;

    return ++*seen == 3;
}

static int refuse(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    return -ENOLINK;
}

static void test_several_replies(void)
{
    struct link link;
    int seen = 0;

    link_open(&link, 5000);
    for (int i = 0; i < 3; i++)
        send_done(&link, 1, NULL, 0);
    CU_ASSERT_EQUAL(call(&link, PWC__CLIENT_REPLY__BODY_DONE, take_three, &seen), 0);
    CU_ASSERT_EQUAL(seen, 3);
    send_done(&link, 2, NULL, 0);
    CU_ASSERT_EQUAL(call(&link, PWC__CLIENT_REPLY__BODY_DONE, refuse, NULL), -ENOLINK);
    send_done(&link, 3, NULL, 0);
    CU_ASSERT_EQUAL(call_done(&link), 0);
    link_close(&link);
}

struct caller {
    struct link *link;
    uint32_t remote;
    int result;
};

static int take_remote(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    ((struct caller *)context)->remote = reply->bound->remote;
    return 1;
}

static void *call_bound(void *argument)
{
    struct caller *caller = argument;

    caller->result = call(caller->link, PWC__CLIENT_REPLY__BODY_BOUND, take_remote, caller);
    return NULL;
}

static uint32_t read_request(struct link *link)
{
    uint8_t frame[256];
    Pwc__ClientRequest *request;
    uint32_t id;

    CU_ASSERT_EQUAL_FATAL(recv(link->daemon, frame, 4, MSG_WAITALL), 4);
    CU_ASSERT_EQUAL_FATAL(recv(link->daemon, frame + 4, frame[0], MSG_WAITALL), frame[0]);
    request = pwc__client_request__unpack(NULL, frame[0], frame + 4);
    CU_ASSERT_PTR_NOT_NULL_FATAL(request);
    id = request->id;
    pwc__client_request__free_unpacked(request, NULL);
    return id;
}

/* A daemon that does not read: requests are sent whole or not at all, and later the connection
 * works. */
static void test_daemon_does_not_read(void)
{
    enum { CALLS = 500 };
    struct link link;
    int small = 4096;
    uint32_t arrived = 0;
    char byte;

    link_open(&link, 1);
    CU_ASSERT_EQUAL(
        setsockopt(link.daemon_link.frames.fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
    for (int i = 0; i < CALLS; i++)
        CU_ASSERT_EQUAL(call_done(&link), -ETIMEDOUT);
    while (recv(link.daemon, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) {
        CU_ASSERT_EQUAL(read_request(&link), arrived + 1);
        arrived++;
    }
    CU_ASSERT_TRUE(arrived > 0 && arrived < CALLS);
    send_done(&link, CALLS + 1, NULL, 0);
    CU_ASSERT_EQUAL(call_done(&link), 0);
    link_close(&link);
}

/* A request may have as many bytes as the daemon takes; a longer one is not sent. */
static void test_longest_request(void)
{
    static uint8_t bytes[FRAME_SEND_MAX];
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramLoad load = PWC__PROGRAM_LOAD__INIT;
    struct link link;
    size_t around;

    link_open(&link, 5000);
    request.id = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_LOAD;
    request.program_load = &load;
    load.image.data = bytes;
    load.image.len = sizeof(bytes);
    around = pwc__client_request__get_packed_size(&request) - sizeof(bytes);
    CU_ASSERT_EQUAL(daemon_send(&link.daemon_link, &request), -EMSGSIZE);
    load.image.len = sizeof(bytes) - around;
    send_done(&link, 2, NULL, 0);
    CU_ASSERT_EQUAL(
        daemon_call(&link.daemon_link, &request, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL), 0);
    CU_ASSERT_EQUAL(recv(link.daemon, bytes, 4, MSG_WAITALL), 4);
    CU_ASSERT_EQUAL((size_t)bytes[0] + ((size_t)bytes[1] << 8) + ((size_t)bytes[2] << 16),
                    FRAME_SEND_MAX);
    CU_ASSERT_EQUAL(recv(link.daemon, bytes, sizeof(bytes), MSG_WAITALL), sizeof(bytes));
    link_close(&link);
}

/* Calls of several threads are under way together, and answered in any order. */
static void test_threads(void)
{
    enum { CALLERS = 8, ROUNDS = 50 };
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];
    uint32_t ids[CALLERS];
    struct link link;

    link_open(&link, 10000);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t seen = 0;

        for (int i = 0; i < CALLERS; i++) {
            callers[i] = (struct caller){.link = &link};
            CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, call_bound, &callers[i]), 0);
        }
        for (int i = 0; i < CALLERS; i++)
            ids[i] = read_request(&link);
        for (int i = 0; i < CALLERS; i++)
            send_bound(&link, ids[(i * 5 + round) % CALLERS], ids[(i * 5 + round) % CALLERS]);
        for (int i = 0; i < CALLERS; i++) {
            pthread_join(threads[i], NULL);
            CU_ASSERT_EQUAL(callers[i].result, 0);
            seen |= UINT64_C(1) << (callers[i].remote - 1 - (uint32_t)round * CALLERS);
        }
        CU_ASSERT_EQUAL(seen, (1u << CALLERS) - 1);
    }
    /* The end of the connection ends all calls that wait. */
    for (int i = 0; i < CALLERS; i++)
        CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, call_bound, &callers[i]), 0);
    for (int i = 0; i < CALLERS; i++)
        (void)read_request(&link);
    hang_up(&link);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(threads[i], NULL);
        CU_ASSERT_EQUAL(callers[i].result, -ESHUTDOWN);
    }
    link_close(&link);
}

struct sleeper {
    struct link *link;
    int woken; /* how often the bell has rung */
    int result;
};

/* Returns when another thread has read, so that this caller is never the reader. */
static void sleep_until_bell(void *context, int fd, int bell, int64_t deadline)
{
    struct pollfd polled = {.fd = bell, .events = POLLIN};

    (void)fd;
    (void)deadline;
    ((struct sleeper *)context)->woken += poll(&polled, 1, BELL_MS) == 1;
}

static void *call_at_work(void *argument)
{
    struct sleeper *sleeper = argument;
    const struct daemon_meanwhile meanwhile = {
        .work = sleep_until_bell, .context = sleeper, .deadline = deadline_after_ms(BELL_MS)};
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;

    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    request.exchange = &exchange;
    sleeper->result = daemon_call_meanwhile(&sleeper->link->daemon_link, &request,
                                            PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL, &meanwhile);
    return NULL;
}

/* A caller that sleeps is woken when another thread has read its reply, and not only at its
 * deadline. */
static void test_reply_read_by_another(void)
{
    struct link link;
    struct sleeper sleeper = {.link = &link};
    struct caller reader = {.link = &link};
    pthread_t threads[2];
    uint32_t ids[2];

    link_open(&link, BELL_MS);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[0], NULL, call_at_work, &sleeper), 0);
    ids[0] = read_request(&link);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[1], NULL, call_bound, &reader), 0);
    ids[1] = read_request(&link);
    send_done(&link, ids[0], NULL, 0);
    pthread_join(threads[0], NULL); /* the reader still waits */
    CU_ASSERT_EQUAL(sleeper.result, 0);
    CU_ASSERT_EQUAL(sleeper.woken, 1);
    send_bound(&link, ids[1], 7);
    pthread_join(threads[1], NULL);
    CU_ASSERT_EQUAL(reader.result, 0);
    CU_ASSERT_EQUAL(reader.remote, 7);
    link_close(&link);
}

/* ---- signals while the daemon frees what a client had ---------------------------------------- */

enum {
    SIGNALS = 3,
    CLOSE_WAIT_NS = 1000000000, /* as long as a close waits for the daemon */
};

/* The daemon's side of a link whose client closes it. */
struct parting {
    struct link *link;
    pthread_t client; /* the thread that closes */
    _Atomic bool freed;
};

static atomic_int signals_seen;

static void count_signal(int signal)
{
    (void)signal;
    signals_seen++;
}

/* Hangs up only after signals have interrupted the client, which waits for this. */
static void *free_slowly(void *argument)
{
    struct parting *p = argument;
    char byte;

    CU_ASSERT_EQUAL(recv(p->link->daemon, &byte, 1, 0), 0); /* the client has shut its side */
    for (int sent = 1; sent <= SIGNALS; sent++) {
        (void)pthread_kill(p->client, SIGUSR1);
        while (signals_seen < sent)
            sched_yield();
    }
    p->freed = true;
    hang_up(p->link);
    return NULL;
}

/* Guards that a close interrupted by signals still waits until the daemon has freed the rank. On a
 * starved machine the wait may end before, but not before its time. */
static void test_close_beside_signals(void)
{
    const struct sigaction action = {.sa_handler = count_signal};
    struct link link;
    struct parting parting = {.link = &link, .client = pthread_self()};
    pthread_t thread;
    int64_t begun;

    link_open(&link, BELL_MS);
    CU_ASSERT_EQUAL_FATAL(sigaction(SIGUSR1, &action, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, free_slowly, &parting), 0);
    begun = clock_now();
    daemon_link_close(&link.daemon_link);
    CU_ASSERT_TRUE(parting.freed || clock_now() - begun >= CLOSE_WAIT_NS);
    pthread_join(thread, NULL);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"replies and errors", test_replies},
        {"frames that make no sense", test_bad_frames},
        {"a reply of the wrong kind", test_wrong_kind},
        {"an error nobody asked for", test_unsolicited},
        {"a reply that comes late", test_late_reply},
        {"descriptors", test_descriptors},
        {"descriptors that are dropped", test_descriptors_dropped},
        {"several replies to one call", test_several_replies},
        {"a daemon that does not read", test_daemon_does_not_read},
        {"the longest request", test_longest_request},
        {"calls of several threads", test_threads},
        {"a reply that another thread reads", test_reply_read_by_another},
        {"a close beside signals", test_close_beside_signals},
        CU_TEST_INFO_NULL,
    };

    return suite_run("daemon_link", tests);
}

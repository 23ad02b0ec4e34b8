/*
 * Posts (clientlib/attach/daemon_post.h) over a socket whose other end is the test's: their order,
 * how many are under way, which are sent again, and answers that make no sense. One thread; a
 * second one where two threads read.
 */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "clientlib/attach/daemon_post.h"
#include "tests/suite.h"

enum { MANY = 1000, WAIT_MS = 20000 };

struct asked {
    struct daemon_post post;
    Pwc__ClientRequest request;
    Pwc__Bind bind;
    uint32_t remote; /* handle in the answer */
};

/* A link with a mailbox, the daemon's end of its socket, and posts that ask for binds. */
struct desk {
    struct daemon_link link;
    struct daemon_mailbox mailbox;
    int daemon;
    struct asked asked[MANY];
};

static int note_remote(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    struct asked *a = context;

    (void)fds;
    (void)fd_count;
    a->remote = reply->bound->remote;
    return 1;
}

static struct desk *desk_new(void)
{
    struct desk *d = calloc(1, sizeof(*d));
    int pair[2];

    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair),
                          0);
    CU_ASSERT_EQUAL_FATAL(daemon_link_open(&d->link, pair[0], 5000), 0);
    d->daemon = pair[1];
    CU_ASSERT_EQUAL_FATAL(daemon_mailbox_open(&d->mailbox, &d->link), 0);
    for (uint32_t i = 0; i < MANY; i++) {
        struct asked *a = &d->asked[i];

        pwc__client_request__init(&a->request);
        pwc__bind__init(&a->bind);
        a->bind.peer = i;
        a->request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
        a->request.bind = &a->bind;
        a->post.request = &a->request;
        a->post.call.expected = PWC__CLIENT_REPLY__BODY_BOUND;
        a->post.call.accept = note_remote;
        a->post.call.context = a;
    }
    return d;
}

static void desk_free(struct desk *d)
{
    if (d->daemon >= 0)
        close(d->daemon);
    daemon_link_close(&d->link);
    daemon_mailbox_close(&d->mailbox);
    free(d);
}

static int post(struct desk *d, uint32_t i)
{
    return daemon_post(&d->mailbox, &d->asked[i].post);
}

static void post_many(struct desk *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        CU_ASSERT_EQUAL_FATAL(post(d, i), 0);
}

/* ---- the daemon's part ---------------------------------------------------------------------- */

struct seen {
    Pwc__ClientRequest__BodyCase kind;
    uint32_t id;
    uint64_t peer, remote; /* peer of a Bind, remote of an Unbind */
};

/* Reads the next request. False: there is none. */
static bool next_request(struct desk *d, struct seen *out)
{
    Pwc__ClientRequest *request;
    uint8_t head[4], body[1024];
    uint32_t length;

    if (recv(d->daemon, head, sizeof(head), 0) != sizeof(head))
        return false;
    length = (uint32_t)head[0] | (uint32_t)head[1] << 8;
    CU_ASSERT_TRUE_FATAL(length <= sizeof(body) &&
                         recv(d->daemon, body, length, 0) == (ssize_t)length);
    request = pwc__client_request__unpack(NULL, length, body);
    CU_ASSERT_PTR_NOT_NULL_FATAL(request);
    *out = (struct seen){.kind = request->body_case, .id = request->id};
    if (request->body_case == PWC__CLIENT_REQUEST__BODY_BIND)
        out->peer = request->bind->peer;
    if (request->body_case == PWC__CLIENT_REQUEST__BODY_UNBIND)
        out->remote = request->unbind->remote;
    pwc__client_request__free_unpacked(request, NULL);
    return true;
}

/* Checks that the next request binds this peer, and returns the request's id. */
static uint32_t expect_bind(struct desk *d, uint64_t peer)
{
    struct seen seen = {.id = 0};

    CU_ASSERT_TRUE_FATAL(next_request(d, &seen));
    CU_ASSERT_EQUAL(seen.kind, PWC__CLIENT_REQUEST__BODY_BIND);
    CU_ASSERT_EQUAL(seen.peer, peer);
    return seen.id;
}

static bool all_read(struct desk *d)
{
    struct seen seen;

    return !next_request(d, &seen);
}

static void reply(struct desk *d, Pwc__ClientReply *message)
{
    uint8_t frame[512] = {0};
    size_t length = pwc__client_reply__pack(message, frame + 4);

    frame[0] = (uint8_t)length;
    CU_ASSERT_EQUAL_FATAL(send(d->daemon, frame, 4 + length, MSG_NOSIGNAL), (ssize_t)(4 + length));
}

static void answer(struct desk *d, uint32_t id, uint32_t remote)
{
    Pwc__ClientReply message = PWC__CLIENT_REPLY__INIT;
    Pwc__Bound bound = PWC__BOUND__INIT;

    bound.remote = remote;
    message.id = id;
    message.body_case = PWC__CLIENT_REPLY__BODY_BOUND;
    message.bound = &bound;
    reply(d, &message);
}

static void answer_done(struct desk *d, uint32_t id)
{
    Pwc__ClientReply message = PWC__CLIENT_REPLY__INIT;
    Pwc__Done done = PWC__DONE__INIT;

    message.id = id;
    message.body_case = PWC__CLIENT_REPLY__BODY_DONE;
    message.done = &done;
    reply(d, &message);
}

static void refuse(struct desk *d, uint32_t id, int status)
{
    Pwc__ClientReply message = PWC__CLIENT_REPLY__INIT;
    Pwc__Error error = PWC__ERROR__INIT;

    error.status = status;
    error.text = (char *)(uintptr_t) "no";
    message.id = id;
    message.body_case = PWC__CLIENT_REPLY__BODY_ERROR;
    message.error = &error;
    reply(d, &message);
}

/* Checks that post `i` is the next that has ended, with this result. */
static void expect_end(struct desk *d, uint32_t i, int result)
{
    struct daemon_post *ended = daemon_collect(&d->mailbox);

    CU_ASSERT_PTR_EQUAL_FATAL(ended, &d->asked[i].post);
    CU_ASSERT_EQUAL(ended->call.result, result);
}

static void expect_nothing(struct desk *d)
{
    CU_ASSERT_PTR_NULL(daemon_collect(&d->mailbox));
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* Requests are sent in order. Answers come in another order, and each ends its own post. */
static void test_order(void)
{
    struct desk *d = desk_new();
    uint32_t ids[3];

    post_many(d, 3);
    for (uint32_t i = 0; i < 3; i++)
        ids[i] = expect_bind(d, i);
    expect_nothing(d);
    answer(d, ids[2], 12);
    answer(d, ids[0], 10);
    refuse(d, ids[1], -EHOSTDOWN);
    expect_end(d, 2, 0);
    expect_end(d, 0, 0);
    expect_end(d, 1, -EHOSTDOWN);
    expect_nothing(d);
    CU_ASSERT_TRUE(d->asked[0].remote == 10 && d->asked[2].remote == 12);
    desk_free(d);
}

/* Any number of posts is accepted, but only a bounded number is sent, in order; each answer lets
 * one more be sent. */
static void test_many(void)
{
    struct desk *d = desk_new();
    uint32_t ids[MANY];

    post_many(d, MANY);
    for (uint32_t i = 0; i < DAEMON_POSTED_MAX; i++)
        ids[i] = expect_bind(d, i);
    CU_ASSERT_TRUE(all_read(d));
    for (uint32_t i = 0; i < MANY; i++) {
        answer(d, ids[i], i);
        expect_end(d, i, 0);
        if (i + DAEMON_POSTED_MAX < MANY)
            ids[i + DAEMON_POSTED_MAX] = expect_bind(d, i + DAEMON_POSTED_MAX);
        CU_ASSERT_TRUE(all_read(d));
    }
    expect_nothing(d);
    desk_free(d);
}

/* While the socket is full, posts stay unsent, and no call waits; they are sent when an answer
 * arrives. */
static void test_full_socket(void)
{
    struct desk *d = desk_new();
    static const uint8_t junk[4096];
    struct seen seen;
    ssize_t filled = 0, sent;
    uint32_t id;

    CU_ASSERT_EQUAL(post(d, 0), 0);
    id = expect_bind(d, 0);
    while ((sent = send(d->link.frames.fd, junk, sizeof(junk), MSG_DONTWAIT)) > 0)
        filled += sent;
    while ((sent = send(d->link.frames.fd, junk, 1, MSG_DONTWAIT)) > 0)
        filled += sent;
    CU_ASSERT_EQUAL(post(d, 1), 0);
    for (uint8_t drained[4096]; filled > 0; filled -= sent) {
        sent = recv(d->daemon, drained,
                    (size_t)filled < sizeof(drained) ? (size_t)filled : sizeof(drained), 0);
        CU_ASSERT_TRUE_FATAL(sent > 0);
    }
    CU_ASSERT_FALSE(next_request(d, &seen));
    answer(d, id, 0);
    expect_end(d, 0, 0);
    (void)expect_bind(d, 1);
    desk_free(d);
}

/* The daemon restarts: a post that it refused for that reason is sent again, before later ones. */
static void test_started_anew(void)
{
    struct desk *d = desk_new();
    uint32_t id, again;

    post_many(d, 2);
    id = expect_bind(d, 0);
    (void)expect_bind(d, 1);
    refuse(d, id, -ECONNABORTED);
    expect_nothing(d);
    again = expect_bind(d, 0);
    CU_ASSERT_NOT_EQUAL(again, id);
    answer(d, again, 5);
    expect_end(d, 0, 0);
    desk_free(d);
}

/* A post that the daemon refuses for lack of room is sent again when another post was answered, and
 * fewer are under way then. A post that is refused while it is alone ends with the error. */
static void test_no_room(void)
{
    struct desk *d = desk_new();
    uint32_t ids[3];

    post_many(d, 4);
    for (uint32_t i = 0; i < 3; i++)
        ids[i] = expect_bind(d, i);
    (void)expect_bind(d, 3);
    refuse(d, ids[0], -ENOBUFS);
    expect_nothing(d);
    CU_ASSERT_TRUE(all_read(d));
    answer(d, ids[1], 1);
    expect_end(d, 1, 0);
    ids[0] = expect_bind(d, 0);
    CU_ASSERT_TRUE(all_read(d));
    CU_ASSERT_TRUE(daemon_withdraw(&d->asked[2].post));
    CU_ASSERT_TRUE(daemon_withdraw(&d->asked[3].post));
    refuse(d, ids[0], -ENOBUFS);
    expect_end(d, 0, -ENOBUFS);
    /* Afterwards the full number may be under way again. */
    for (uint32_t i = 0; i < DAEMON_POSTED_MAX; i++)
        CU_ASSERT_EQUAL(post(d, 10 + i), 0);
    for (uint32_t i = 0; i < DAEMON_POSTED_MAX; i++)
        (void)expect_bind(d, 10 + i);
    desk_free(d);
}

/* A withdrawn post: if it was sent, what the daemon makes for it is given back; if it was not sent,
 * it never is. A post that was answered already cannot be withdrawn, and is collected. */
static void test_withdraw(void)
{
    struct desk *d = desk_new();
    struct seen seen = {.id = 0};
    uint32_t ids[DAEMON_POSTED_MAX];

    post_many(d, DAEMON_POSTED_MAX + 2);
    for (uint32_t i = 0; i < DAEMON_POSTED_MAX; i++)
        ids[i] = expect_bind(d, i);
    CU_ASSERT_TRUE(daemon_withdraw(&d->asked[DAEMON_POSTED_MAX].post));
    CU_ASSERT_TRUE(daemon_withdraw(&d->asked[7].post));
    (void)expect_bind(d, DAEMON_POSTED_MAX + 1); /* post 7 has made room */
    answer(d, ids[7], 77);
    answer(d, ids[8], 88);
    answer(d, ids[9], 99);
    expect_end(d, 8, 0);
    CU_ASSERT_TRUE_FATAL(next_request(d, &seen));
    CU_ASSERT_EQUAL(seen.kind, PWC__CLIENT_REQUEST__BODY_UNBIND);
    CU_ASSERT_EQUAL(seen.remote, 77);
    CU_ASSERT_FALSE(daemon_withdraw(&d->asked[9].post));
    expect_end(d, 9, 0);
    expect_nothing(d);
    CU_ASSERT_TRUE(all_read(d));
    desk_free(d);
}

/* Answers with a wrong id, and second answers, end no post. */
static void test_odd_answers(void)
{
    struct desk *d = desk_new();
    uint32_t id;

    post_many(d, 2);
    id = expect_bind(d, 0);
    (void)expect_bind(d, 1);
    answer(d, 1000000, 3);
    answer(d, id, 4);
    answer(d, id, 5);
    expect_end(d, 0, 0);
    expect_nothing(d);
    CU_ASSERT_EQUAL(d->asked[0].remote, 4);
    desk_free(d);
}

/* An answer of a wrong kind, a closed connection or a senseless frame ends each post, sent or not,
 * and refuses later ones. */
static void test_end_of_all(void)
{
    for (unsigned how = 0; how < 3; how++) {
        struct desk *d = desk_new();
        int expected = how == 1 ? -ESHUTDOWN : -EPROTO;
        unsigned ended = 0;
        struct daemon_post *p;

        post_many(d, MANY);
        if (how == 0) {
            answer_done(d, expect_bind(d, 0));
        } else if (how == 1) {
            close(d->daemon);
            d->daemon = -1;
        } else {
            CU_ASSERT_EQUAL(send(d->daemon, "\xff\xff\xff\xff", 4, 0), 4);
        }
        while ((p = daemon_collect(&d->mailbox)) != NULL) {
            CU_ASSERT_EQUAL(p->call.result, expected);
            ended++;
        }
        CU_ASSERT_EQUAL(ended, MANY);
        CU_ASSERT_EQUAL(post(d, 0), expected);
        desk_free(d);
    }
}

/* ---- another thread reads ------------------------------------------------------------------- */

static int call_done(struct desk *d)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__SegmentClose segment = PWC__SEGMENT_CLOSE__INIT;

    request.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE;
    request.segment_close = &segment;
    return daemon_call(&d->link, &request, PWC__CLIENT_REPLY__BODY_DONE, NULL, NULL);
}

static void *call_from_thread(void *context)
{
    return (void *)(intptr_t)call_done(context);
}

/* The bell rings for an answer that another thread has read. Only when the answer is collected can
 * the bell be silenced. */
static void test_other_reader(void)
{
    struct desk *d = desk_new();
    struct pollfd request = {.fd = d->daemon, .events = POLLIN};
    struct pollfd bell = {.fd = d->mailbox.bell, .events = POLLIN};
    struct seen seen = {.id = 0};
    pthread_t thread;
    uint32_t id;
    void *result;

    CU_ASSERT_EQUAL(post(d, 0), 0);
    id = expect_bind(d, 0);
    CU_ASSERT_EQUAL(poll(&bell, 1, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, call_from_thread, d), 0);
    CU_ASSERT_EQUAL(poll(&request, 1, WAIT_MS), 1);
    CU_ASSERT_TRUE_FATAL(next_request(d, &seen));
    answer(d, id, 6);
    CU_ASSERT_EQUAL_FATAL(poll(&bell, 1, WAIT_MS), 1);
    daemon_mailbox_silence(&d->mailbox);
    CU_ASSERT_EQUAL(poll(&bell, 1, 0), 1);
    expect_end(d, 0, 0);
    CU_ASSERT_EQUAL(poll(&bell, 1, 0), 1);
    daemon_mailbox_silence(&d->mailbox);
    CU_ASSERT_EQUAL(poll(&bell, 1, 0), 0);
    answer_done(d, seen.id);
    pthread_join(thread, &result);
    CU_ASSERT_PTR_NULL(result);
    desk_free(d);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"order", test_order},
        {"many", test_many},
        {"a full socket", test_full_socket},
        {"a daemon that was started anew", test_started_anew},
        {"a daemon without room", test_no_room},
        {"posts that are given up", test_withdraw},
        {"odd answers", test_odd_answers},
        {"the end of all", test_end_of_all},
        {"another thread reads", test_other_reader},
        CU_TEST_INFO_NULL,
    };

    return suite_run("posts", tests);
}

/* Attaching, contexts, collectives, threads and forks, against a daemon on a thread. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/clientlib/daemon/client_world.h"
#include "pwc/am.h"
#include "pwc/atomic.h"
#include "pwc/signal.h"
#include "pwc/team.h"
#include "pwc/vector.h"
#include "proto/job_socket.h"
#include "proto/team_abi.h"
#include "tests/suite.h"

static bool refuse_hello(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    if (request->body_case != PWC__CLIENT_REQUEST__BODY_HELLO)
        return false;
    fake_daemon_error(daemon, request->id, -EADDRINUSE, "rank 0 of test is live: pid 123");
    return true;
}

/* A daemon that welcomes the client although their versions do not fit. */
static bool welcome_as(struct fake_daemon *daemon, const Pwc__ClientRequest *request,
                       uint32_t version, uint32_t rings)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Welcome welcome = PWC__WELCOME__INIT;

    welcome.version = version;
    welcome.rings = rings;
    welcome.release = (char *)(uintptr_t) "9.8.7";
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_WELCOME;
    reply.welcome = &welcome;
    fake_daemon_reply(daemon, &reply, NULL, 0);
    return true;
}

static bool newer_version(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    return welcome_as(daemon, request, 2, SESSION_VERSION);
}

static bool newer_rings(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    return welcome_as(daemon, request, 1, SESSION_VERSION + 1);
}

static bool older_rings(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    return welcome_as(daemon, request, 1, SESSION_VERSION - 1);
}

static bool stay_silent(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    return true;
}

static unsigned busy_hellos; /* so many Hellos the daemon still refuses */

static bool busy(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    if (request->body_case != PWC__CLIENT_REQUEST__BODY_HELLO || busy_hellos == 0)
        return false;
    busy_hellos--;
    fake_daemon_error(daemon, request->id, -EAGAIN, "too many connections");
    return true;
}

/* A daemon that is busy with other connections is asked again until the timeout is over. */
static void test_attach_again(void)
{
    static const struct {
        unsigned refused;
        int timeout_ms, result;
    } rows[] = {{0, 10000, 0}, {1, 10000, 0}, {5, 10000, 0}, {UINT_MAX, 50, -EDQUOT}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_daemon *daemon = calloc(1, sizeof(*daemon));
        char error[256] = "";
        struct pwc_attr attr = {.job = "test",
                                .size = 1,
                                .timeout_ms = rows[i].timeout_ms,
                                .error = error,
                                .error_size = sizeof(error)};
        pwc_client *client = NULL;

        busy_hellos = rows[i].refused;
        CU_ASSERT_EQUAL_FATAL(fake_daemon_start(daemon, busy), 0);
        attr.socket = daemon->path;
        CU_ASSERT_EQUAL(pwc_init(&attr, &client), rows[i].result);
        if (client) {
            CU_ASSERT_EQUAL(pwc_finalize(client), 0);
        } else {
            CU_ASSERT_PTR_NOT_NULL(strstr(error, "too many connections"));
        }
        fake_daemon_stop(daemon);
        free(daemon);
    }
}

static void test_attach_refused(void)
{
    static const struct {
        fake_hook *hook;
        int result, timeout_ms;
        const char *text;
    } rows[] = {
        {refuse_hello, -EADDRINUSE, 10000, "rank 0 of test is live: pid 123"},
        {newer_version, -EPROTONOSUPPORT, 10000, "daemon 9.8.7 version 2 with"},
        {newer_rings, -EPROTONOSUPPORT, 10000, "upgrade the library, and build the program anew"},
        {older_rings, -EPROTONOSUPPORT, 10000, "upgrade the daemon, pwcd"},
        {stay_silent, -ETIMEDOUT, 50, "the daemon has not answered within 50 ms"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_daemon *daemon = calloc(1, sizeof(*daemon));
        char error[256] = "";
        struct pwc_attr attr = {.job = "test",
                                .size = 1,
                                .timeout_ms = rows[i].timeout_ms,
                                .error = error,
                                .error_size = sizeof(error)};
        pwc_client *client = NULL;

        CU_ASSERT_EQUAL_FATAL(fake_daemon_start(daemon, rows[i].hook), 0);
        attr.socket = daemon->path;
        CU_ASSERT_EQUAL(pwc_init(&attr, &client), rows[i].result);
        CU_ASSERT_PTR_NOT_NULL(strstr(error, rows[i].text));
        if (rows[i].result == -EPROTONOSUPPORT)
            CU_ASSERT_PTR_NOT_NULL(strstr(error, "library 0."));
        fake_daemon_stop(daemon);
        CU_ASSERT_EQUAL(pwc_init(&attr, &client), -ENOENT);
        CU_ASSERT_PTR_NOT_NULL(strstr(error, daemon->path));
        CU_ASSERT_PTR_NULL(client);
        free(daemon);
    }
}

/* Listens under the name 50 ms after the client has begun to look for it. */
static void *listen_late(void *context)
{
    const char *name = context;
    struct sockaddr_un address;
    socklen_t size = job_socket_address(name, &address);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), c = -1;

    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    if (bind(s, (struct sockaddr *)&address, size) == 0 && listen(s, 1) == 0)
        c = accept(s, NULL, NULL);
    if (c >= 0)
        close(c); /* the hang-up ends the client's attempt */
    close(s);
    return c >= 0 ? context : NULL;
}

/* pwc_init waits for a job's daemon that starts later than its ranks, up to the timeout. */
static void test_wait_for_daemon(void)
{
    char error[128] = "", name[64];
    struct pwc_attr attr = {
        .job = "test", .size = 1, .timeout_ms = 30, .error = error, .error_size = 128};
    pwc_client *client = NULL;
    pthread_t thread;
    void *came;

    snprintf(name, sizeof(name), "@pwcd-test/%d", (int)getpid());
    attr.socket = name;
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -ECONNREFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error, name));
    attr.timeout_ms = 20000;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, listen_late, name), 0);
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -ESHUTDOWN);
    pthread_join(thread, &came);
    CU_ASSERT_PTR_NOT_NULL(came);
}

/* Reserved words, which later versions may use, must be 0: other values are refused, with a text
 * that names the struct. */
static void test_reserved_words(void)
{
    struct world *w = world_new();
    char why[128] = "";
    struct pwc_attr attr = {.socket = w->daemon.path,
                            .job = "test",
                            .size = 1,
                            .error = why,
                            .error_size = sizeof(why)};
    struct pwc_ctx_attr ctx_attr = {0};
    pwc_client *client;
    pwc_ctx *ctx;
    pwc_remote *remote;
    struct pwc_key key;

    for (size_t i = 0; i < sizeof(attr.reserved) / sizeof(attr.reserved[0]); i++) {
        attr.reserved[i] = UINT64_C(1) << 63;
        CU_ASSERT_EQUAL(pwc_init(&attr, &client), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(why, "pwc_attr"));
        attr.reserved[i] = 0;
    }
    for (size_t i = 0; i < sizeof(ctx_attr.reserved) / sizeof(ctx_attr.reserved[0]); i++) {
        ctx_attr.reserved[i] = 1;
        CU_ASSERT_EQUAL(pwc_ctx_create(w->client, &ctx_attr, &ctx), -EINVAL);
        CU_ASSERT_TRUE(pwc_error_text(w->client, why, sizeof(why)) > 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(why, "pwc_ctx_attr"));
        ctx_attr.reserved[i] = 0;
    }
    CU_ASSERT_EQUAL(pwc_region_key(w->region, &key), 0);
    CU_ASSERT_EQUAL(key.reserved, 0);
    key.reserved = 1;
    CU_ASSERT_EQUAL(pwc_bind(w->ctx, 0, &key, &remote), -EINVAL);
    CU_ASSERT_TRUE(pwc_error_text(w->client, why, sizeof(why)) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "pwc_key"));
    world_free(w);
}

/* A daemon, as those to 0.6, that sends no version of its team areas. */
static bool form_unversioned(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__TeamFormed formed = PWC__TEAM_FORMED__INIT;
    Pwc__TeamRun run = PWC__TEAM_RUN__INIT, *runs = &run;
    Pwc__Done done = PWC__DONE__INIT;

    reply.id = request->id;
    if (request->body_case == PWC__CLIENT_REQUEST__BODY_TEAM_JOIN) {
        CU_ASSERT_EQUAL(request->team_join->area, TEAM_VERSION);
        run.count = 1;
        formed.number = 7;
        formed.window = TEAM_WINDOW;
        formed.n_runs = 1;
        formed.runs = &runs;
        reply.body_case = PWC__CLIENT_REPLY__BODY_TEAM_FORMED;
        reply.team_formed = &formed;
    } else if (request->body_case == PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE) {
        CU_ASSERT_EQUAL(request->team_leave->number, 7);
        CU_ASSERT_TRUE(request->team_leave->broken);
        reply.body_case = PWC__CLIENT_REPLY__BODY_DONE;
        reply.done = &done;
    } else {
        return false;
    }
    fake_daemon_reply(daemon, &reply, NULL, 0);
    return true;
}

/* The layout of a team area is not that of another version: the library says which side is older,
 * and leaves the team. */
static void test_area_of_another_version(void)
{
    struct world *w = world_new();
    char why[128] = "";
    pwc_team *team;

    w->daemon.hook = form_unversioned;
    CU_ASSERT_EQUAL(pwc_team_world(w->ctx, NULL, &team), -EPROTONOSUPPORT);
    CU_ASSERT_TRUE(pwc_error_text(w->client, why, sizeof(why)) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "have version 1, the library's 2: upgrade the daemon"));
    w->daemon.hook = NULL;
    world_free(w);
}

static void *accept_all(void *context)
{
    int listener = *(int *)context;

    for (int c = accept(listener, NULL, NULL); c >= 0; c = accept(listener, NULL, NULL))
        close(c);
    return NULL;
}

/* The listener's queue is full: one more client waits until the listener accepts, up to its
 * timeout. */
static void test_crowd_of_ranks(void)
{
    char error[128] = "", name[64];
    struct pwc_attr attr = {
        .job = "test", .size = 1, .timeout_ms = 50, .error = error, .error_size = 128};
    int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), crowd[8], count = 0;
    struct sockaddr_un address;
    pwc_client *client = NULL;
    pthread_t thread;
    socklen_t size;

    snprintf(name, sizeof(name), "@pwcd-test/%d/crowd", (int)getpid());
    size = job_socket_address(name, &address);
    CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&address, size), 0);
    CU_ASSERT_EQUAL_FATAL(listen(listener, 0), 0);
    do {
        CU_ASSERT_FATAL(count < 8);
        crowd[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    } while (connect(crowd[count++], (struct sockaddr *)&address, size) == 0);
    CU_ASSERT_EQUAL(errno, EAGAIN);

    attr.socket = name;
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -ETIMEDOUT);
    CU_ASSERT_PTR_NOT_NULL(strstr(error, "takes no connections"));
    attr.timeout_ms = 20000;
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, accept_all, &listener), 0);
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -ESHUTDOWN);
    shutdown(listener, SHUT_RD);
    pthread_join(thread, NULL);
    close(listener);
    while (count > 0)
        close(crowd[--count]);
}

/* The process that listens under the name belongs to another user: its daemon is refused. */
static void test_foreign_daemon(void)
{
    char error[128] = "", name[64], byte = 0;
    struct pwc_attr attr = {
        .job = "test", .size = 1, .timeout_ms = 1000, .error = error, .error_size = 128};
    struct sockaddr_un address;
    pwc_client *client = NULL;
    int reported[2], status;
    pid_t pid;

    if (geteuid() != 0) {
        printf("left out: only root can be another ");
        return;
    }
    snprintf(name, sizeof(name), "@pwcd-test/%d/foreign", (int)getpid());
    attr.socket = name;
    CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM, 0, reported), 0);
    pid = fork();
    if (pid == 0) {
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        socklen_t size = job_socket_address(name, &address);

        close(reported[0]);
        if (setresuid(65534, 65534, 65534) == 0 &&
            bind(s, (struct sockaddr *)&address, size) == 0 && listen(s, 1) == 0 &&
            write(reported[1], "x", 1) == 1)
            (void)!read(reported[1], &byte, 1); /* until the test ends */
        _exit(0);
    }
    close(reported[1]);
    CU_ASSERT_EQUAL(read(reported[0], &byte, 1), 1);
    CU_ASSERT_EQUAL(pwc_init(&attr, &client), -EACCES);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(error, "user 65534, neither this user nor root nor the one in its name"));
    close(reported[0]);
    waitpid(pid, &status, 0);
}

/* A socket is there, and its mode or its folder keeps this user out: the error says so, and not
 * that there is no daemon. */
static void test_socket_of_others(void)
{
    char error[256] = "", path[80];
    struct pwc_attr attr = {
        .socket = path, .job = "test", .size = 1, .error = error, .error_size = sizeof(error)};
    struct sockaddr_un address;
    socklen_t size;
    int s, status = 0;
    pid_t pid;

    if (geteuid() != 0) {
        printf("left out: only root can be another user ");
        return;
    }
    snprintf(path, sizeof(path), "/tmp/pwc-others-%d", (int)getpid());
    size = job_socket_address(path, &address);
    s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(s, (struct sockaddr *)&address, size), 0);
    CU_ASSERT_EQUAL_FATAL(chmod(path, 0600), 0);
    CU_ASSERT_EQUAL_FATAL(listen(s, 1), 0);
    pid = fork();
    if (pid == 0) {
        pwc_client *client;

        if (setresuid(65534, 65534, 65534) < 0)
            _exit(2);
        _exit(pwc_init(&attr, &client) != -EACCES || !strstr(error, "user 65534 may not connect"));
    }
    waitpid(pid, &status, 0);
    CU_ASSERT_EQUAL(status, 0);
    close(s);
    unlink(path);
}

static void test_attach(void)
{
    struct world *w = world_new();
    pwc_ctx *more[FAKE_SESSIONS];
    char text[64];

    CU_ASSERT_EQUAL(pwc_rank(w->client), 0);
    CU_ASSERT_EQUAL(pwc_size(w->client), 2);
    CU_ASSERT_EQUAL(pwc_packed_max(w->client), FAKE_PACKED_MAX);
    CU_ASSERT_EQUAL(pwc_message_max(w->client), FAKE_MESSAGE_MAX);
    CU_ASSERT_EQUAL(pwc_ctx_peer(w->ctx), 0);
    for (int i = 1; i < FAKE_SESSIONS; i++) {
        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, NULL, &more[i]), 0);
        CU_ASSERT_EQUAL(pwc_ctx_peer(more[i]), pwc_peer_of(0, (uint32_t)i));
    }
    CU_ASSERT_EQUAL(pwc_ctx_create(w->client, NULL, &more[0]), -ENOSPC);
    /* The library has left the program's own descriptor alone. */
    CU_ASSERT_TRUE(fcntl(STDIN_FILENO, F_GETFD) >= 0);
    CU_ASSERT_EQUAL(pwc_error_text(w->client, text, sizeof(text)), strlen(text));
    CU_ASSERT_STRING_EQUAL(text, "4 contexts are open: close one");
    CU_ASSERT_EQUAL(pwc_ctx_destroy(more[2]), 0);
    CU_ASSERT_EQUAL(w->daemon.sessions_open, FAKE_SESSIONS - 1);
    CU_ASSERT_EQUAL(pwc_ctx_create(w->client,
                                   &(struct pwc_ctx_attr){.submit_bytes = SESSION_RING_MAX + 1},
                                   &more[2]),
                    -EINVAL);
    world_free(w); /* contexts, regions and a remote are still open */
}

/* pwc_error_text is about the last call: a call that the library refuses on its own drops what the
 * daemon wrote about an earlier one. */
static void test_text_of_the_last_call(void)
{
    static uint8_t all[2 * 5000];
    struct world *w = world_new();
    struct pwc_region *region;
    pwc_ctx *more[FAKE_SESSIONS];
    struct pwc_event event;
    char text[128];

    for (int i = 1; i < FAKE_SESSIONS; i++)
        CU_ASSERT_EQUAL_FATAL(pwc_ctx_create(w->client, NULL, &more[i]), 0);
    CU_ASSERT_EQUAL(pwc_ctx_create(w->client, NULL, &more[0]), -ENOSPC);
    CU_ASSERT_TRUE(pwc_error_text(w->client, text, sizeof(text)) > 0);
    CU_ASSERT_EQUAL(pwc_exchange(w->ctx, all, 5000, all), -EINVAL);
    (void)pwc_error_text(w->client, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "5000 bytes for an exchange: a rank may give 4096");
    CU_ASSERT_EQUAL(pwc_alloc(w->client, 0, 0, &region), -EINVAL);
    (void)pwc_error_text(w->client, text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "memory of 0 bytes"));
    /* Calls that submit or probe leave the text as it is, because another thread may be about to
     * read it. */
    CU_ASSERT_EQUAL(pwc_put(w->remote, 0, all, 8, PWC_CID_NONE, PWC_CID_NONE, 1u << 31), -EINVAL);
    CU_ASSERT_EQUAL(pwc_wait(w->ctx, PWC_ANY, 1u << 31, &event, 0), -EINVAL);
    (void)pwc_error_text(w->client, text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "memory of 0 bytes"));
    CU_ASSERT_EQUAL(pwc_alloc(w->client, 64, 0, &region), 0);
    CU_ASSERT_EQUAL(pwc_error_text(w->client, text, sizeof(text)), 0);
    world_free(w);
}

/* A program that passes NULL as a remote gets an error, not a SIGSEGV. */
static void test_no_remote(void)
{
    const pwc_cid none = PWC_CID_NONE;
    const struct pwc_piece piece = {0};
    const struct pwc_shape shape = {.dims = 1, .element = 8, .count = {1}};
    struct world *w = world_new();
    uint64_t word = 0, result;
    void *payload;

    CU_ASSERT_EQUAL(pwc_put(NULL, 0, &word, 8, none, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_get(NULL, 0, w->memory, 8, none, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_putv(NULL, &piece, 1, none, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_getv(NULL, &piece, 1, none, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_put_shape(NULL, 0, w->memory, &shape, none, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_get_shape(NULL, 0, w->memory, &shape, none, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_put_signal(NULL, 0, &word, 8, 0, 1, PWC_SET, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_atomic(NULL, 0, PWC_ADD, PWC_U64, &word, 1, none, none, 0), -EINVAL);
    CU_ASSERT_EQUAL(pwc_fetch_atomic(NULL, 0, PWC_ADD, PWC_U64, &word, 1, &result, none, none, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_compare_swap(NULL, 0, PWC_U64, &word, &word, &result, none, none, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_masked_swap(NULL, 0, PWC_U64, &word, &word, &result, none, none, 0),
                    -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_short(NULL, &(struct pwc_am_send){0}), -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_medium(NULL, &(struct pwc_am_send){0}), -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_long(NULL, 0, &(struct pwc_am_send){0}), -EINVAL);
    CU_ASSERT_EQUAL(pwc_am_prepare(NULL, 8, 0, none, 0, &payload), -EINVAL);
    CU_ASSERT_EQUAL(pwc_unbind(NULL), -EINVAL);
    CU_ASSERT_EQUAL(pwc_remote_len(NULL), 0);
    world_free(w);
}

static void test_exchange(void)
{
    struct world *w = world_new();
    uint8_t mine[4096], all[2 * 4096];

    for (size_t len = 0; len <= 4096; len = len * 4 + 1) {
        fill(mine, len, (unsigned)len);
        memset(all, 0x99, sizeof(all));
        CU_ASSERT_EQUAL(pwc_exchange(w->ctx, mine, len, all), 0);
        CU_ASSERT_EQUAL(memcmp(all, mine, len), 0);
        for (size_t i = 0; i < len; i++)
            CU_ASSERT_EQUAL_FATAL(all[len + i], (uint8_t)~mine[i]);
        CU_ASSERT_EQUAL(all[2 * len == sizeof(all) ? 0 : 2 * len],
                        2 * len == sizeof(all) ? mine[0] : 0x99);
    }
    CU_ASSERT_EQUAL(pwc_exchange(w->ctx, mine, 4097, all), -EINVAL);
    CU_ASSERT_EQUAL(pwc_barrier(w->ctx), 0);
    world_free(w);
}

static bool bad_exchange(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    static const struct {
        uint64_t offset;
        size_t length;
    } pieces[] = {{0, 8}, {16, 8}, {9, 8}, {UINT64_MAX, 8}, {0, 17}};
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Exchanged piece = PWC__EXCHANGED__INIT;
    uint8_t bytes[32] = {0};

    if (request->body_case != PWC__CLIENT_REQUEST__BODY_EXCHANGE)
        return false;
    piece.offset = pieces[request->exchange->sequence].offset;
    piece.data.len = pieces[request->exchange->sequence].length;
    piece.data.data = bytes;
    piece.last = true;
    reply.id = request->id;
    reply.body_case = PWC__CLIENT_REPLY__BODY_EXCHANGED;
    reply.exchanged = &piece;
    fake_daemon_reply(daemon, &reply, NULL, 0);
    return true;
}

static void test_exchange_checked(void)
{
    struct world *w = world_new_sized(0, bad_exchange);
    uint8_t all[16];

    for (int i = 0; i < 5; i++)
        CU_ASSERT_EQUAL(pwc_exchange(w->ctx, all, 8, all), -EPROTO);
    world_free(w);
}

/* In a forked child all calls are refused, and the child does not disturb its parent. */
static void test_fork(void)
{
    struct world *w = world_new();
    struct pwc_event event;
    int status;
    pid_t child = fork();

    if (child == 0) {
        uint8_t byte;
        struct pwc_key key;
        pwc_region *region;
        pwc_ctx *ctx;
        pwc_remote *remote;
        bool dead = put(w, 0, w->memory, 8, 1, 0) == -EOWNERDEAD &&
                    get(w, 0, w->memory, 8, 1, 0) == -EOWNERDEAD &&
                    pwc_probe(w->ctx, PWC_ANY, 0, &event) == -EOWNERDEAD &&
                    pwc_wait(w->ctx, PWC_ANY, 0, &event, 0) == -EOWNERDEAD &&
                    pwc_flush(w->ctx, PWC_ANY, -1) == -EOWNERDEAD &&
                    pwc_fd(w->ctx) == -EOWNERDEAD &&
                    pwc_alloc(w->client, 8, PWC_REMOTE_RW, &region) == -EOWNERDEAD &&
                    pwc_register(w->client, &byte, 1, 0, 0, &region) == -EOWNERDEAD &&
                    pwc_region_free(w->region) == -EOWNERDEAD &&
                    pwc_region_key(w->region, &key) == -EOWNERDEAD &&
                    pwc_bind(w->ctx, 0, NULL, &remote) == -EOWNERDEAD &&
                    pwc_unbind(w->remote) == -EOWNERDEAD &&
                    pwc_exchange(w->ctx, NULL, 0, NULL) == -EOWNERDEAD &&
                    pwc_barrier(w->ctx) == -EOWNERDEAD &&
                    pwc_ctx_create(w->client, NULL, &ctx) == -EOWNERDEAD &&
                    pwc_ctx_destroy(w->ctx) == -EOWNERDEAD &&
                    pwc_finalize(w->client) == -EOWNERDEAD && pwc_abort(w->client) == -EOWNERDEAD;

        _exit(dead ? 0 : 1);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(put(w, 0, w->memory, 8, 1, PWC_NO_RCE), 0);
    (void)expect(w, PWC_LOCAL, 1, 0);
    world_free(w);
}

/* While this is true, answers come without their descriptors, as they do when the process has none
 * left. */
static _Atomic bool losing;

static bool lose_descriptors(struct fake_daemon *daemon, const Pwc__ClientRequest *request)
{
    fake_lose_descriptors(daemon, losing);
    return false;
}

static void test_no_descriptors(void)
{
    struct world *w = world_new_sized(0, lose_descriptors);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    pwc_region *region;
    pwc_ctx *ctx;
    void *mine = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    losing = true;
    CU_ASSERT_EQUAL(pwc_ctx_create(w->client, NULL, &ctx), -EMFILE);
    CU_ASSERT_EQUAL(w->daemon.sessions_open, 1);
    CU_ASSERT_EQUAL(pwc_alloc(w->client, 32 << 20, PWC_REMOTE_RW, &region), -EMFILE);
    CU_ASSERT_EQUAL(pwc_register(w->client, mine, page, PWC_REMOTE_RW, PWC_MOVE, &region), -EMFILE);
    CU_ASSERT_EQUAL(w->daemon.segments_open, 1);
    losing = false;
    CU_ASSERT_EQUAL(pwc_ctx_create(w->client, NULL, &ctx), 0);
    CU_ASSERT_EQUAL(pwc_alloc(w->client, 32 << 20, PWC_REMOTE_RW, &region), 0);
    munmap(mine, page);
    world_free(w);
}

struct user {
    struct world *world;
    pthread_t thread;
    unsigned number;
    bool good;
};

/* A thread with a context and memory of its own, which opens and closes regions while other threads
 * do so, too. */
static void *use_from_thread(void *argument)
{
    enum { ROUNDS = 200 };
    struct user *user = argument;
    pwc_client *client = user->world->client;
    bool good = true;
    pwc_ctx *ctx;

    if (pwc_ctx_create(client, NULL, &ctx) < 0)
        return NULL;
    for (int round = 0; round < ROUNDS && good; round++) {
        size_t len = 2000 + 1000 * user->number + (size_t)round;
        struct pwc_event event;
        struct pwc_key key;
        pwc_region *from, *to;
        pwc_remote *remote;

        good = pwc_alloc(client, len, PWC_REMOTE_RW, &from) == 0 &&
               pwc_alloc(client, len, PWC_REMOTE_RW, &to) == 0 && pwc_region_key(to, &key) == 0 &&
               pwc_bind(ctx, pwc_ctx_peer(ctx), &key, &remote) == 0;
        if (!good)
            break;
        fill(pwc_region_addr(from), len, user->number);
        good = pwc_put(remote, 0, pwc_region_addr(from), len, pwc_cid_u64(1), pwc_cid_u64(2),
                       PWC_NO_RCE) == 0 &&
               pwc_wait(ctx, PWC_ANY, 0, &event, WAIT_MS) == 1 && event.status == 0 &&
               memcmp(pwc_region_addr(from), pwc_region_addr(to), len) == 0 &&
               pwc_unbind(remote) == 0 && pwc_region_free(from) == 0 && pwc_region_free(to) == 0;
    }
    user->good = good && pwc_ctx_destroy(ctx) == 0;
    return NULL;
}

static void test_threads(void)
{
    struct world *w = world_new_sized(0, NULL);
    struct user users[FAKE_SESSIONS - 1];
    size_t count = sizeof(users) / sizeof(users[0]);

    for (size_t i = 0; i < count; i++) {
        users[i] = (struct user){.world = w, .number = (unsigned)i};
        CU_ASSERT_EQUAL_FATAL(pthread_create(&users[i].thread, NULL, use_from_thread, &users[i]),
                              0);
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(users[i].thread, NULL);
        CU_ASSERT_TRUE(users[i].good);
    }
    CU_ASSERT_EQUAL(w->daemon.sessions_open, 1);
    CU_ASSERT_EQUAL(w->daemon.regions_open, 1);
    world_free(w);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"attach: refused, silent, no daemon", test_attach_refused},
        {"attaching again", test_attach_again},
        {"attach: a daemon that comes later", test_wait_for_daemon},
        {"attach: more than may wait", test_crowd_of_ranks},
        {"attach: another user's daemon", test_foreign_daemon},
        {"attach: a socket for others", test_socket_of_others},
        {"attach, contexts, the daemon's words", test_attach},
        {"reserved words", test_reserved_words},
        {"a team area of another version", test_area_of_another_version},
        {"the text is about the last call", test_text_of_the_last_call},
        {"calls on no remote", test_no_remote},
        {"exchange and barrier", test_exchange},
        {"an exchange that makes no sense", test_exchange_checked},
        {"a forked child", test_fork},
        {"no descriptor is left", test_no_descriptors},
        {"several threads", test_threads},
        CU_TEST_INFO_NULL,
    };

    return suite_run("client", tests);
}

/*
 * Two daemons as processes: one job on both, and the cases in which two daemons must refuse each
 * other, each with a clear line in both logs. The tests of --auth munge run as a program of their
 * own, in parallel, because all tests wait for deadlines.
 *
 *     test_peers PWCD ODD_PWCD [munge]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/lib/daemon.h"
#include "daemon/peering/directory.h"
#include "daemon/peering/handshake.h"
#include "shm_ring/clock.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/look.h"
#include "tests/control/lib/plan.h"
#include "tests/control/lib/raw_peer.h"
#include "tests/suite.h"

static const char *program, *odd_program;
static struct plan plan;

static bool start(struct daemon *d, const char *node, const char *secret, const char *list)
{
    return plan_start(d, program, node, secret, list);
}

/* Finds the name of a job whose home is this node; the search begins with number `i`. */
static const char *job_from(uint32_t node, int i)
{
    static char name[16];
    const struct directory_id id = {.uid = getuid(), .job = name};

    for (;; i++) {
        snprintf(name, sizeof(name), "job%d", i);
        if (directory_home(&id, 2) == node)
            return name;
    }
}

static const char *job_at(uint32_t node)
{
    return job_from(node, 0);
}

static int hello(const struct daemon *d, const char *job, uint32_t rank, int *s)
{
    *s = raw_connect(d);
    CU_ASSERT_FATAL(*s >= 0);
    return raw_hello(*s, job, rank, 2);
}

/* ---- together -------------------------------------------------------------------------------- */

static bool contribute(int s, uint32_t sequence, const char *data)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Exchange exchange = PWC__EXCHANGE__INIT;

    exchange.sequence = sequence;
    exchange.data.data = (uint8_t *)(uintptr_t)data;
    exchange.data.len = strlen(data);
    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    request.exchange = &exchange;
    return raw_request(s, 20 + sequence, &request);
}

/* Reads the next reply to an exchange: its bytes, "error", or "nothing" within the limit. */
static void gathered(int s, char *to, size_t size)
{
    int fds[3], count;
    Pwc__ClientReply *reply = raw_reply(s, fds, &count);

    snprintf(to, size, "nothing");
    if (!reply)
        return;
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR)
        snprintf(to, size, "error");
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_EXCHANGED && reply->exchanged->last)
        snprintf(to, size, "%.*s", (int)reply->exchanged->data.len,
                 (const char *)reply->exchanged->data.data);
    pwc__client_reply__free_unpacked(reply, NULL);
}

static void exchange_over_two_nodes(const struct daemon *d, uint32_t home)
{
    const char *job = job_at(home);
    int a, b, again;
    char text[64];

    CU_ASSERT_EQUAL(hello(&d[0], job, 0, &a), 0);
    CU_ASSERT_EQUAL(hello(&d[1], job, 1, &b), 0);
    /* A live rank cannot be claimed twice, on any node. */
    CU_ASSERT_EQUAL(hello(&d[1], job, 0, &again), -EADDRINUSE);
    close(again);
    for (uint32_t i = 0; i < 3; i++) {
        CU_ASSERT_TRUE(contribute(i % 2 ? a : b, i, i % 2 ? "left" : "righ"));
        CU_ASSERT_TRUE(contribute(i % 2 ? b : a, i, i % 2 ? "righ" : "left"));
        gathered(a, text, sizeof(text));
        CU_ASSERT_STRING_EQUAL(text, "leftrigh");
        gathered(b, text, sizeof(text));
        CU_ASSERT_STRING_EQUAL(text, "leftrigh");
    }
    /* A rank that gives another length, or leaves, ends the exchange for the other one. */
    CU_ASSERT_TRUE(contribute(a, 3, "1"));
    CU_ASSERT_TRUE(contribute(b, 3, "22"));
    gathered(a, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "error");
    gathered(b, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "error");
    CU_ASSERT_TRUE(contribute(a, 4, "1"));
    close(b);
    gathered(a, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "error");
    close(a);
}

static void one_job(void)
{
    struct daemon d[2];

    CU_ASSERT_TRUE_FATAL(start(&d[0], "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_TRUE_FATAL(start(&d[1], "1", plan.secrets[0], plan.nodes));
    exchange_over_two_nodes(d, 0);
    exchange_over_two_nodes(d, 1);
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
}

/* The home dies: requests that wait there fail in time, and the restarted home is found again. */
static void home_dies(void)
{
    struct daemon d[2];
    const char *job = job_at(1);
    int a, b, s;
    char text[64];

    CU_ASSERT_TRUE_FATAL(start(&d[0], "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_TRUE_FATAL(start(&d[1], "1", plan.secrets[0], plan.nodes));
    CU_ASSERT_EQUAL(hello(&d[0], job, 0, &a), 0);
    CU_ASSERT_TRUE(contribute(a, 0, "left"));
    daemon_kill(&d[1]);
    gathered(a, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "error");
    CU_ASSERT_TRUE(daemon_says(&d[0], "node 1 is given up"));
    CU_ASSERT_EQUAL(hello(&d[0], job, 1, &s), -EHOSTDOWN);
    close(s);

    CU_ASSERT_TRUE_FATAL(start(&d[1], "1", plan.secrets[0], plan.nodes));
    CU_ASSERT_EQUAL(hello(&d[1], job, 1, &b), 0);
    CU_ASSERT_EQUAL(hello(&d[0], job_at(1), 0, &s), -EADDRINUSE); /* a is still rank 0 */
    close(s);
    CU_ASSERT_TRUE(contribute(b, 1, "righ"));
    CU_ASSERT_TRUE(contribute(a, 1, "left"));
    gathered(b, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "leftrigh");
    gathered(a, text, sizeof(text));
    CU_ASSERT_STRING_EQUAL(text, "leftrigh");
    close(a);
    close(b);
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
}

/* A node dies with two ranks of a job, of which the second has called a barrier. When the first
 * leaves, the barrier fails, and the home has a frame for the node that it is giving up. The
 * engine, which waits for a bind, reports the node before the control thread's own deadline. Once
 * the node is back it is found again. */
static void dies_in_a_barrier(void)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Bind bind = PWC__BIND__INIT;
    const char *job = job_at(0);
    struct daemon d[2];
    struct answer context, a;
    int sockets[3], s;

    CU_ASSERT_TRUE_FATAL(start(&d[0], "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_TRUE_FATAL(start(&d[1], "1", plan.secrets[0], plan.nodes));
    for (uint32_t i = 0; i < 3; i++) {
        sockets[i] = raw_connect(&d[i > 0]);
        CU_ASSERT_FATAL(sockets[i] >= 0);
        CU_ASSERT_EQUAL_FATAL(raw_hello(sockets[i], job, i, 3), 0);
    }
    CU_ASSERT_EQUAL_FATAL(ask_context(sockets[0], 4096, &context), 0);
    CU_ASSERT_TRUE(contribute(sockets[2], 0, ""));
    CU_ASSERT_TRUE(raw_is_served(&d[1])); /* so the contribution is on its way */
    kill(d[1].pid, SIGSTOP);
    bind.session = context.handle;
    bind.peer = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
    request.bind = &bind;
    CU_ASSERT_TRUE(raw_request(sockets[0], 5, &request));
    CU_ASSERT_TRUE(raw_is_served(&d[0])); /* so the engine wants the link */
    daemon_kill(&d[1]);
    CU_ASSERT_EQUAL(ask_nothing(sockets[0], &a), -EHOSTDOWN);
    CU_ASSERT_TRUE(daemon_says(&d[0], "node 1 is given up"));

    CU_ASSERT_TRUE_FATAL(start(&d[1], "1", plan.secrets[0], plan.nodes));
    CU_ASSERT_EQUAL(hello(&d[0], job_at(1), 0, &s), 0);
    close(s);
    answer_close(&context);
    for (int i = 0; i < 3; i++)
        close(sockets[i]);
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
}

/* Links that end soon after they began, as where an engine has no memory for them: the daemon dials
 * the other node, which the test plays, but after pauses. */
static void short_links(void)
{
    enum { LINKS = 6, PAUSE_MS = 15, NS_A_MS = 1000000 };
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(plan.ports[1])};
    uint64_t longest = 0;
    struct daemon d;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;

    inet_pton(AF_INET, plan.host, &name.sin_addr);
    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    CU_ASSERT_EQUAL_FATAL(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
    CU_ASSERT_EQUAL_FATAL(listen(listener, LINKS), 0);
    CU_ASSERT_TRUE_FATAL(start(&d, "0", plan.secrets[0], plan.nodes));
    for (int i = 0; i < LINKS; i++) {
        struct raw_peer other;
        uint64_t ended;

        CU_ASSERT_TRUE_FATAL(raw_peer_link(&other, &plan, 1));
        raw_peer_close(&other);
        ended = clock_ns();
        close(accept(listener, NULL, NULL));
        longest = clock_ns() - ended > longest ? clock_ns() - ended : longest;
    }
    CU_ASSERT(longest >= PAUSE_MS * (uint64_t)NS_A_MS);
    close(listener);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* ---- apart ----------------------------------------------------------------------------------- */

static void wrong_secret(void)
{
    struct daemon d[2];
    int s;

    CU_ASSERT_TRUE_FATAL(start(&d[0], "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_TRUE_FATAL(start(&d[1], "1", plan.secrets[1], plan.nodes));
    CU_ASSERT_EQUAL(hello(&d[0], job_at(1), 0, &s), -EHOSTDOWN);
    close(s);
    CU_ASSERT_TRUE(daemon_says(&d[0], "does not know the secret"));
    CU_ASSERT_TRUE(daemon_says(&d[1], "does not know the secret"));
    CU_ASSERT_TRUE(daemon_says(&d[0], "given up"));
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
}

/* ---- by MUNGE -------------------------------------------------------------------------------- */

/* The daemons use a made-up MUNGE (odd.c) and no secret. */
static bool start_munge(struct daemon *d, const char *node, const char *munge)
{
    const char *arguments[] = {
        "--node",         node,         "--nodes",     plan.nodes, "--peer-deadline-ms",
        PLAN_DEADLINE_MS, "--provider", PLAN_PROVIDER, NULL};
    bool started;

    setenv("PWCD_MUNGE", munge, 1);
    started = daemon_start(d, odd_program, arguments) == 0;
    unsetenv("PWCD_MUNGE");
    return started;
}

static void one_job_by_munge(void)
{
    static const char *const how[] = {"vouched", "slow"};

    for (size_t i = 0; i < sizeof(how) / sizeof(how[0]); i++) {
        struct daemon d[2];

        CU_ASSERT_TRUE_FATAL(start_munge(&d[0], "0", how[i]));
        CU_ASSERT_TRUE_FATAL(start_munge(&d[1], "1", how[i]));
        exchange_over_two_nodes(d, 0);
        exchange_over_two_nodes(d, 1);
        CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
        CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
    }
}

/* MUNGE vouches wrongly for one of the daemons: both logs give the reason. */
static void refused_by_munge(void)
{
    static const struct {
        const char *munge, *says; /* MUNGE of node 1 (NULL: the secret), and a text for the logs */
        /* The node that connects: it receives a refusal before either side has proven itself. */
        uint32_t from;
    } rows[] = {
        {"foreign", "the other daemon is user", 1},
        {"altered", "was not made for this connection", 1},
        {"long", "credential that is none", 1},
        {"late", "munged is made up and down", 0},
        {"late", "munged is made up and down", 1},
        {NULL, "node 0 authenticates by munge, node 1 by secret", 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct daemon d[2];
        int s;

        CU_ASSERT_TRUE_FATAL(start_munge(&d[0], "0", "vouched"));
        CU_ASSERT_TRUE_FATAL(rows[i].munge ? start_munge(&d[1], "1", rows[i].munge)
                                           : start(&d[1], "1", plan.secrets[0], plan.nodes));
        CU_ASSERT_EQUAL(hello(&d[rows[i].from], job_at(1 - rows[i].from), 0, &s), -EHOSTDOWN);
        close(s);
        CU_ASSERT_TRUE(daemon_says(&d[0], rows[i].says));
        CU_ASSERT_TRUE(daemon_says(&d[1], rows[i].says));
        CU_ASSERT_TRUE(raw_is_served(&d[0]));
        CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
        CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
    }
}

static void start_without_munge(void)
{
    static const char *const auth[] = {"auto", "munge", "secret"};
    struct daemon first, second;

    CU_ASSERT_TRUE_FATAL(start_munge(&first, "0", "vouched"));
    for (size_t i = 0; i < sizeof(auth) / sizeof(auth[0]); i++) {
        const char *arguments[] = {"--node", "0", "--nodes", plan.nodes, "--auth", auth[i], NULL};
        bool ready = true;

        setenv("PWCD_MUNGE", "down", 1);
        CU_ASSERT_EQUAL(
            daemon_start_beside(&second, &first, "second.sock", odd_program, arguments, &ready), 0);
        unsetenv("PWCD_MUNGE");
        CU_ASSERT_FALSE(ready);
        CU_ASSERT_TRUE(daemon_says(&second, "2 nodes need a secret"));
        CU_ASSERT_TRUE(i == 2 || daemon_says(&second, "munged is made up and down"));
        CU_ASSERT_EQUAL(daemon_stop(&second), 1);
    }
    CU_ASSERT_EQUAL(daemon_stop(&first), 0);
}

/* A daemon that ends must not free the credential that a thread still uses. */
static void ends_while_munge_is_asked(void)
{
    struct daemon d[2];
    int s;

    CU_ASSERT_TRUE_FATAL(start_munge(&d[0], "0", "slow"));
    CU_ASSERT_TRUE_FATAL(start_munge(&d[1], "1", "slow"));
    s = raw_connect(&d[0]);
    CU_ASSERT_TRUE(raw_ask_hello(s, job_at(1), 0, 2));
    CU_ASSERT_TRUE(daemon_says(&d[1], "a credential is opened"));
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    close(s);
}

/* One of the daemons speaks a later version: both logs name the two versions, and so does
 * Inspect. */
static void versions(void)
{
    struct daemon d[2];
    json_t *document, *row;
    const char *reason;
    char says[80];
    int s;

    setenv("PWCD_ODD", "newer", 1);
    CU_ASSERT_TRUE_FATAL(plan_start(&d[1], odd_program, "1", plan.secrets[0], plan.nodes));
    unsetenv("PWCD_ODD");
    CU_ASSERT_TRUE_FATAL(start(&d[0], "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_EQUAL(hello(&d[0], job_at(1), 0, &s), -EHOSTDOWN);
    close(s);
    snprintf(says, sizeof(says), "node 0 speaks control versions %u to %u, node 1 speaks %u to %u",
             HANDSHAKE_VERSION_MIN, HANDSHAKE_VERSION_MAX, HANDSHAKE_VERSION_MAX + 1,
             HANDSHAKE_VERSION_MAX + 1);
    CU_ASSERT_TRUE(daemon_says(&d[0], says));
    CU_ASSERT_TRUE(daemon_says(&d[1], says));
    document = look_at(&d[0], "nodes");
    row = json_array_get(json_object_get(document, "nodes"), 1);
    reason = json_string_value(json_object_get(row, "reason"));
    CU_ASSERT(reason && strstr(reason, says) && strstr(reason, "upgrade pwcd on node 0"));
    json_decref(document);
    /* The other daemon may be the later one as well. */
    CU_ASSERT_EQUAL(hello(&d[1], job_at(0), 0, &s), -EHOSTDOWN);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
}

/* A daemon that ends must not free the name that a thread still looks up. */
static void ends_while_a_name_is_looked_up(void)
{
    struct daemon d;
    int s;

    setenv("PWCD_ODD", "slow", 1);
    CU_ASSERT_TRUE_FATAL(plan_start(&d, odd_program, "0", plan.secrets[0], plan.nodes));
    unsetenv("PWCD_ODD");
    s = raw_connect(&d);
    CU_ASSERT_TRUE(s >= 0 && raw_ask_hello(s, job_at(1), 0, 2));
    CU_ASSERT_TRUE(daemon_says(&d, "is looked up"));
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    close(s);
}

/* Starts an odd daemon that looks names up slowly, one after the other, as node 0 of this list. */
static bool start_slow(struct daemon *d, const char *list)
{
    bool started;

    setenv("PWCD_ODD", "slow", 1);
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    started = plan_start(d, odd_program, "0", plan.secrets[0], list);
    unsetenv("UV_THREADPOOL_SIZE");
    unsetenv("PWCD_ODD");
    return started;
}

/* Counts the names whose lookup has begun after SIGTERM, in the whole log of a daemon. */
static unsigned looked_up_at_the_end(const struct daemon *d)
{
    const char *at = strstr(d->said, "signal 15: ending");
    unsigned count = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(at);
    while ((at = strstr(at + 1, "is looked up")) != NULL)
        count++;
    return count;
}

/* A daemon that ends does not look up names whose lookup has not begun. A few may begin before the
 * daemon has forgotten the others. */
static void ends_while_names_wait(void)
{
    enum { NODES = 13 };
    char list[NODES * 24], name[16];
    const struct directory_id id = {.uid = getuid(), .job = name};
    struct daemon d;
    int sockets[NODES], used;

    used = snprintf(list, sizeof(list), "%s:%u", plan.host, plan.ports[0]);
    for (int i = 1; i < NODES; i++)
        used += snprintf(list + used, sizeof(list) - (size_t)used, ",localhost:%d", i);
    CU_ASSERT_TRUE_FATAL(start_slow(&d, list));
    for (uint32_t node = 1, i = 0; node < NODES; i++) {
        snprintf(name, sizeof(name), "job%u", i);
        if (directory_home(&id, NODES) != node)
            continue;
        sockets[node] = raw_connect(&d);
        CU_ASSERT_TRUE(sockets[node] >= 0 && raw_ask_hello(sockets[node], name, 0, 2));
        node++;
    }
    CU_ASSERT_TRUE(raw_is_served(&d));
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    CU_ASSERT(looked_up_at_the_end(&d) < NODES / 2);
    for (int i = 1; i < NODES; i++)
        close(sockets[i]);
}

/* A node is given up in time, also where no attempt to connect can begin. */
static void cannot_begin_to_dial(void)
{
    struct daemon d;
    int s;

    setenv("PWCD_ODD", "lost", 1);
    CU_ASSERT_TRUE_FATAL(plan_start(&d, odd_program, "0", plan.secrets[0], plan.nodes));
    unsetenv("PWCD_ODD");
    CU_ASSERT_EQUAL(hello(&d, job_at(1), 0, &s), -EHOSTDOWN);
    close(s);
    CU_ASSERT_TRUE(daemon_says(&d, "node 1 is given up"));
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* Sends a ping between the first engines of both nodes, and reads until the answer has come. The
 * daemon that is asked has an association of these engines from then on. */
static bool is_answered(struct raw_peer *p)
{
    Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT, *back;
    Pwc__Ping ping = PWC__PING__INIT;
    bool answered = false;

    frame.body_case = PWC__PEER_FRAME__BODY_PING;
    frame.ping = &ping;
    if (!raw_peer_send(p, &frame))
        return false;
    while (!answered && (back = raw_peer_next(p)) != NULL) {
        answered = back->body_case == PWC__PEER_FRAME__BODY_PING && back->ping->answer;
        pwc__peer_frame__free_unpacked(back, NULL);
    }
    return answered;
}

/* The control thread gives a progress thread up only where the thread does not answer, and not
 * where the control thread itself was late to see the answer. The node that is lost has an
 * association, because the control thread waits only for ends of associations. */
static void hears_late_of_an_end(void)
{
    struct raw_peer other;
    struct daemon d;

    setenv("PWCD_ODD", "late", 1);
    CU_ASSERT_TRUE_FATAL(plan_start(&d, odd_program, "0", plan.secrets[0], plan.nodes));
    unsetenv("PWCD_ODD");
    CU_ASSERT_TRUE(raw_peer_link(&other, &plan, 1));
    CU_ASSERT_TRUE(is_answered(&other));
    raw_peer_close(&other);
    CU_ASSERT_TRUE(daemon_says(&d, "the control thread is late"));
    CU_ASSERT_TRUE(raw_is_served(&d));
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* Both daemons are configured as node 0, and the list of one leads to the other. */
static void one_node_number(void)
{
    struct daemon d[2];
    char turned[96];
    int s;

    snprintf(turned, sizeof(turned), "%s,%.*s", strchr(plan.nodes, ',') + 1,
             (int)(strchr(plan.nodes, ',') - plan.nodes), plan.nodes);
    CU_ASSERT_TRUE_FATAL(start(&d[0], "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_TRUE_FATAL(start(&d[1], "0", plan.secrets[0], turned));
    CU_ASSERT_EQUAL(hello(&d[0], job_at(1), 0, &s), -EHOSTDOWN);
    close(s);
    CU_ASSERT_TRUE(daemon_says(&d[0], "two daemons claim node number 0"));
    CU_ASSERT_TRUE(daemon_says(&d[1], "two daemons claim node number 0"));
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
}

/* A node's daemon dials anew, as after its machine was started again, while this daemon still has
 * the earlier connection: the dial is refused, and the earlier connection is asked whether its
 * other end lives. */
static void dials_as_another(void)
{
    struct raw_peer earlier, later;
    Pwc__PeerFrame *frame;
    struct daemon d;
    bool asked = false;

    CU_ASSERT_TRUE_FATAL(start(&d, "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_TRUE_FATAL(raw_peer_link(&earlier, &plan, 1));
    CU_ASSERT_FALSE(raw_peer_link(&later, &plan, 1));
    CU_ASSERT_TRUE(daemon_says(&d, "two daemons claim node number 1"));
    raw_peer_close(&later);
    while (!asked && (frame = raw_peer_next(&earlier)) != NULL) {
        asked = frame->body_case == PWC__PEER_FRAME__BODY_PING;
        pwc__peer_frame__free_unpacked(frame, NULL);
    }
    CU_ASSERT_TRUE(asked);
    raw_peer_close(&earlier);
    CU_ASSERT_TRUE(raw_peer_link(&later, &plan, 1));
    raw_peer_close(&later);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

static void node_number_taken(void)
{
    const char *arguments[] = {"--node",        "0", "--nodes", plan.nodes, "--secret",
                               plan.secrets[0], NULL};
    struct daemon first, second;
    bool ready = true;

    CU_ASSERT_TRUE_FATAL(start(&first, "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_EQUAL(daemon_start_beside(&second, &first, "second.sock", program, arguments, &ready),
                    0);
    CU_ASSERT_FALSE(ready);
    CU_ASSERT_TRUE(daemon_says(&second, "another --node"));
    CU_ASSERT_EQUAL(daemon_stop(&second), 1);
    CU_ASSERT_EQUAL(daemon_stop(&first), 0);
}

/* Strangers send garbage or nothing to the port for daemons: their connections are closed, and do
 * no harm. */
static void strangers(void)
{
    struct daemon d[2];
    struct sockaddr_in name = {.sin_family = AF_INET};
    int sockets[24], s;

    CU_ASSERT_TRUE_FATAL(start(&d[0], "0", plan.secrets[0], plan.nodes));
    CU_ASSERT_TRUE_FATAL(start(&d[1], "1", plan.secrets[0], plan.nodes));
    inet_pton(AF_INET, plan.host, &name.sin_addr);
    name.sin_port = htons(plan.ports[0]);
    for (int i = 0; i < 24; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CU_ASSERT_EQUAL(connect(sockets[i], (struct sockaddr *)&name, sizeof(name)), 0);
        if (i % 2)
            (void)!send(sockets[i], "\xff\xff\xff\xff\xff", 5, MSG_NOSIGNAL);
        else if (i % 4)
            (void)!send(sockets[i], "\x02\x00\x00\x00\x08\x01", 6, MSG_NOSIGNAL);
    }
    for (int i = 0; i < 24; i++) {
        CU_ASSERT_TRUE(raw_hangs_up(sockets[i]));
        close(sockets[i]);
    }
    CU_ASSERT_EQUAL(hello(&d[1], job_at(0), 0, &s), 0);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d[0]), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d[1]), 0);
}

/* Silent strangers fill all places: the next stranger gets the place of the first. */
static void silent_strangers(void)
{
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(plan.ports[0])};
    struct raw_peer other;
    struct daemon d;
    int sockets[16];

    CU_ASSERT_TRUE_FATAL(start(&d, "0", plan.secrets[0], plan.nodes));
    inet_pton(AF_INET, plan.host, &name.sin_addr);
    for (int i = 0; i < 16; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CU_ASSERT_EQUAL(connect(sockets[i], (struct sockaddr *)&name, sizeof(name)), 0);
    }
    CU_ASSERT_TRUE(raw_peer_link(&other, &plan, 1));
    raw_peer_close(&other);
    for (int i = 0; i < 16; i++)
        close(sockets[i]);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* However many strangers connect, few are accepted in a millisecond. Beyond 16 the daemon closes
 * the oldest for each new one, so the last connection that it closes shows when all were
 * accepted. */
static void crowd_of_strangers(void)
{
    enum { CROWD = 100, KEPT = 16, A_MS = 4, SLACK_MS = 3, NS_A_MS = 1000000 };
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(plan.ports[0])};
    struct daemon d;
    int sockets[CROWD];
    uint64_t began;

    CU_ASSERT_TRUE_FATAL(start(&d, "0", plan.secrets[0], plan.nodes));
    inet_pton(AF_INET, plan.host, &name.sin_addr);
    began = clock_ns();
    for (int i = 0; i < CROWD; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CU_ASSERT_EQUAL(connect(sockets[i], (struct sockaddr *)&name, sizeof(name)), 0);
    }
    CU_ASSERT_TRUE(raw_hangs_up(sockets[CROWD - KEPT - 1]));
    CU_ASSERT(clock_ns() - began >= (CROWD / A_MS - SLACK_MS) * (uint64_t)NS_A_MS);
    for (int i = 0; i < CROWD; i++)
        close(sockets[i]);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* A daemon hides its memory from other processes before it reads the secret. */
static void secret_unseen(void)
{
    const char *arguments[] = {"--secret", plan.secrets[0], "--allow-users", "root", NULL};
    struct daemon d;

    setenv("PWCD_ODD", "frank", 1);
    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, odd_program, arguments), 0);
    unsetenv("PWCD_ODD");
    CU_ASSERT_TRUE(daemon_says(&d, "others may not look"));
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* A user may have a share of a home's jobs. A refusal that is passed on by another node names the
 * home. */
static void a_share_of_a_home(void)
{
    const char *const few[] = {
        "--node",      "0", "--nodes",    plan.nodes,    "--secret", plan.secrets[0],
        "--user-jobs", "1", "--provider", PLAN_PROVIDER, NULL};
    struct daemon home, other;
    struct answer refusal;
    int sockets[2];

    CU_ASSERT_EQUAL_FATAL(daemon_start(&home, program, few), 0);
    CU_ASSERT_TRUE_FATAL(start(&other, "1", plan.secrets[0], plan.nodes));
    CU_ASSERT_EQUAL(hello(&other, job_from(0, 0), 0, &sockets[0]), 0);
    sockets[1] = raw_connect(&other);
    CU_ASSERT_TRUE_FATAL(sockets[1] >= 0 && raw_ask_hello(sockets[1], job_from(0, 1000), 0, 2));
    CU_ASSERT_EQUAL(ask_nothing(sockets[1], &refusal), -EDQUOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(refusal.text, "node 0, which keeps the directory of job"));
    CU_ASSERT_PTR_NOT_NULL(strstr(refusal.text, "user-jobs"));
    close(sockets[0]);
    close(sockets[1]);
    CU_ASSERT_EQUAL(daemon_stop(&other), 0);
    CU_ASSERT_EQUAL(daemon_stop(&home), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"one job", one_job},
                           {"a share of a home", a_share_of_a_home},
                           {"home dies", home_dies},
                           {"dies in a barrier", dies_in_a_barrier},
                           {"short links", short_links},
                           {"wrong secret", wrong_secret},
                           {"versions", versions},
                           {"ends while a name is looked up", ends_while_a_name_is_looked_up},
                           {"ends while names wait", ends_while_names_wait},
                           {"cannot begin to dial", cannot_begin_to_dial},
                           {"hears late of an end", hears_late_of_an_end},
                           {"one node number", one_node_number},
                           {"dials as another", dials_as_another},
                           {"node number taken", node_number_taken},
                           {"strangers", strangers},
                           {"silent strangers", silent_strangers},
                           {"a crowd of strangers", crowd_of_strangers},
                           {"secret unseen", secret_unseen},
                           CU_TEST_INFO_NULL};
    CU_TestInfo by_munge[] = {{"one job by munge", one_job_by_munge},
                              {"refused by munge", refused_by_munge},
                              {"start without munge", start_without_munge},
                              {"ends while munge is asked", ends_while_munge_is_asked},
                              CU_TEST_INFO_NULL};
    bool munge = argc > 3 && strcmp(argv[3], "munge") == 0;
    int failed;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    program = argv[1];
    odd_program = argv[2];
    failed = plan_open(&plan)
                 ? suite_run(munge ? "peers by munge" : "peers", munge ? by_munge : tests)
                 : 1;
    plan_close(&plan);
    return failed;
}

/*
 * pwc-exporter with a daemon: visitors who are slow, many, rude or wrong; a progress thread that
 * stands still; a daemon that ends and is restarted; and the cost of a view for the progress
 * thread.
 *
 *     test_exporter PWCD PWC-EXPORTER
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/raw/look.h"
#include "tests/control/lib/thread.h"
#include "tests/suite.h"
#include "tests/lib/command.h"

enum { WAIT_MS = 20000, ANSWER_ROOM = 1 << 20, LOOKS_MAX = 20 };

#define GET      "GET /metrics HTTP/1.1\r\n"
#define GET_OPEN GET "Accept: application/openmetrics-text\r\n\r\n"

static const char *program, *exporter_path;
static struct daemon d;
static struct command *exporter;
static unsigned port; /* the exporter's port */
static char answer[ANSWER_ROOM];

/* Starts the exporter for the daemon. Returns true once the exporter serves. */
static bool exporter_start(const char *option)
{
    const char *argv[] = {exporter_path, "--socket", d.socket, "--listen", "0", option, NULL};
    const char *at;

    exporter = command_start(argv, NULL);
    at = command_await(exporter, "/metrics\n") ? strstr(exporter->out_text, "127.0.0.1:") : NULL;
    port = at ? (unsigned)atoi(at + 10) : 0;
    return port != 0;
}

/* Stops the exporter, and returns its exit status. */
static int exporter_stop(void)
{
    int status;

    kill(exporter->pid, SIGTERM);
    status = command_finish(exporter);
    command_free(exporter);
    return status;
}

static int visit(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL_FATAL(connect(s, (struct sockaddr *)&at, sizeof(at)), 0);
    return s;
}

/* Reads until the exporter hangs up, and returns the number of bytes; -1: it does not hang up in
 * time. */
static ssize_t read_all(int s)
{
    size_t size = 0;
    ssize_t got = 1;

    while (got > 0) {
        struct pollfd wait = {.fd = s, .events = POLLIN};

        if (poll(&wait, 1, WAIT_MS) != 1 || size == sizeof(answer) - 1)
            return -1;
        got = recv(s, answer + size, sizeof(answer) - 1 - size, 0);
        size += got > 0 ? (size_t)got : 0;
    }
    answer[size] = '\0';
    return (ssize_t)size;
}

/* Sends a request, and returns the answer's status; 0: the exporter hung up without an answer. */
static int ask_for(const char *head)
{
    int s = visit(), status = 0;

    CU_ASSERT_EQUAL(send(s, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
    CU_ASSERT_TRUE(read_all(s) >= 0);
    (void)sscanf(answer, "HTTP/1.1 %d ", &status);
    close(s);
    return status;
}

static double value_of(const char *sample)
{
    const char *at = strstr(answer, sample);

    return at ? strtod(at + strlen(sample), NULL) : -1;
}

static void answers(void)
{
    static const struct {
        const char *head;
        int status;
        const char *says;
    } rows[] = {
        {GET_OPEN, 200, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"},
        {GET "\r\n", 200, "Content-Type: text/plain; version=0.0.4; charset=utf-8"},
        {"GET / HTTP/1.1\r\n\r\n", 404, "metrics are at /metrics"},
        {"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405, "Allow: GET"},
        {"nonsense\r\n\r\n", 0, ""}, /* no answer */
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CU_ASSERT_EQUAL(ask_for(rows[i].head), rows[i].status);
        CU_ASSERT_PTR_NOT_NULL(strstr(answer, rows[i].says));
    }
}

/* Scrapes until the progress thread answers: on a busy machine it may take more than a second. */
static void wait_until_responding(void)
{
    for (int i = 0; i < 2000 && value_of("pwcd_progress_responding{engine=\"0\"} ") != 1; i++) {
        usleep(10000);
        CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
    }
    CU_ASSERT_EQUAL(value_of("pwcd_progress_responding{engine=\"0\"} "), 1);
}

static void whole(void)
{
    const char *body, *length;

    CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
    body = strstr(answer, "\r\n\r\n");
    length = strstr(answer, "Content-Length: ");
    CU_ASSERT_FATAL(body && length);
    CU_ASSERT_EQUAL(strlen(body + 4), strtoul(length + 16, NULL, 10));
    CU_ASSERT_STRING_EQUAL(answer + strlen(answer) - 7, "\n# EOF\n");
    wait_until_responding();
    CU_ASSERT_EQUAL(value_of("\npwcd_nodes "), 1);
    CU_ASSERT_TRUE(value_of("\npwcd_start_time_seconds ") <= (double)time(NULL) + 1);
    CU_ASSERT_TRUE(value_of("\npwcd_start_time_seconds ") > (double)time(NULL) - 3600);
}

/* A client that attaches is shown at the next reading. Without the flag there are no rows of
 * clients. */
static void clients_show(void)
{
    int s = raw_connect(&d);
    bool shown = false;
    double started;

    CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
    started = value_of("\npwcd_start_time_seconds ");
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "secret-job", 0, 1), 0);
    for (int i = 0; i < 200 && !shown; i++) {
        CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
        shown = value_of("\npwcd_clients ") == 1;
        usleep(10000); /* a reading is returned for 250 ms */
    }
    CU_ASSERT_TRUE(shown);
    CU_ASSERT_EQUAL(value_of("\npwcd_start_time_seconds "),
                    started); /* a change would mean a restart */
    CU_ASSERT_PTR_NULL(strstr(answer, "secret-job"));
    CU_ASSERT_PTR_NULL(strstr(answer, "uid="));
    close(s);
}

static void a_byte_at_a_time(void)
{
    int s = visit();

    for (const char *c = GET_OPEN; *c; c++)
        CU_ASSERT_EQUAL(send(s, c, 1, MSG_NOSIGNAL), 1);
    CU_ASSERT_TRUE(read_all(s) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "200 OK"));
    close(s);
}

/* A visitor sends its request and closes its side of the connection: it still gets the answer. */
static void half_closed(void)
{
    int s = visit();

    CU_ASSERT_EQUAL(send(s, GET_OPEN, strlen(GET_OPEN), MSG_NOSIGNAL), (ssize_t)strlen(GET_OPEN));
    shutdown(s, SHUT_WR);
    CU_ASSERT_TRUE(read_all(s) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "# EOF"));
    close(s);
}

static void too_long(void)
{
    static char head[65536];
    int s = visit();

    memset(head, 'x', sizeof(head));
    (void)!send(s, head, sizeof(head), MSG_NOSIGNAL);
    CU_ASSERT_TRUE(read_all(s) > 0);
    CU_ASSERT_PTR_NULL(strstr(answer, "200 OK"));
    close(s);
}

/* A visitor sends more and more after its request: the exporter hangs up. */
static void endless(void)
{
    static const char more[4096];
    int s = visit();
    ssize_t sent = send(s, GET_OPEN, strlen(GET_OPEN), MSG_NOSIGNAL);

    for (int i = 0; i < 10000 && sent >= 0; i++)
        sent = send(s, more, sizeof(more), MSG_NOSIGNAL);
    CU_ASSERT_TRUE(sent < 0);
    close(s);
    CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
}

/* Many connections stay silent: a scrape is served meanwhile, and the silent ones are closed. */
static void silent_crowd(void)
{
    int crowd[20];

    for (size_t i = 0; i < sizeof(crowd) / sizeof(crowd[0]); i++)
        crowd[i] = visit();
    for (int i = 0; i < 3; i++)
        CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
    for (size_t i = 0; i < sizeof(crowd) / sizeof(crowd[0]); i++) {
        CU_ASSERT_EQUAL(read_all(crowd[i]), 0);
        close(crowd[i]);
    }
}

static int descriptors(void)
{
    char path[64];
    DIR *folder;
    int count = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)exporter->pid);
    folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* A visitor asks and hangs up, as often as possible: the exporter keeps nothing of it. */
static void rude(void)
{
    int before;

    CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
    before = descriptors();
    for (int i = 0; i < 500; i++) {
        const struct linger reset = {.l_onoff = 1};
        int s = visit();

        (void)!send(s, GET_OPEN, strlen(GET_OPEN), MSG_NOSIGNAL);
        if (i % 2)
            setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(s);
    }
    CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
    for (int i = 0; i < 1000 && descriptors() > before; i++)
        usleep(10000);
    CU_ASSERT_TRUE(descriptors() <= before);
}

/* ---- a progress thread that stands still ------------------------------------------------------
 */

/* Each scrape is still answered, with the last counters, and a metric shows that the thread is
 * stuck. */
static void stuck(void)
{
    pid_t thread = thread_find(d.pid);
    double rounds;
    int rc;

    CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
    rounds = value_of("pwcd_progress_rounds_total{engine=\"0\"} ");
    rc = thread_hold(thread);
    if (rc == -EPERM) {
        printf("left out: this machine does not let a parent trace its child ");
        return;
    }
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    usleep(300000); /* so that the exporter makes a new reading */
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
        CU_ASSERT_EQUAL(value_of("pwcd_progress_responding{engine=\"0\"} "), 0);
        CU_ASSERT_TRUE(value_of("pwcd_progress_rounds_total{engine=\"0\"} ") >= rounds);
    }
    CU_ASSERT_EQUAL(thread_release(thread), 0);
    wait_until_responding();
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/* Waits until the sample has this value. The exporter returns one reading for 250 ms, so this asks
 * again. */
static bool becomes(const char *sample, double value)
{
    for (int i = 0; i < 2000; i++) {
        CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
        if (value_of(sample) == value)
            return true;
        usleep(10000);
    }
    return false;
}

/* Without a daemon the exporter reports only that; it continues with the next daemon on the same
 * socket. */
static void comes_back(void)
{
    static const char *const none[] = {NULL};
    struct daemon first = d;
    bool ready;

    CU_ASSERT_TRUE(becomes("\npwcd_up ", 1));
    CU_ASSERT_EQUAL_FATAL(kill(d.pid, SIGKILL), 0);
    CU_ASSERT_TRUE(becomes("\npwcd_up ", 0));
    CU_ASSERT_PTR_NULL(strstr(answer, "pwcd_nodes"));
    CU_ASSERT_EQUAL_FATAL(
        daemon_start_beside(&d, &first, strrchr(first.socket, '/') + 1, program, none, &ready), 0);
    CU_ASSERT_TRUE(ready);
    CU_ASSERT_TRUE(becomes("\npwcd_up ", 1));
    CU_ASSERT_EQUAL(value_of("\npwcd_nodes "), 1);
    CU_ASSERT_EQUAL(exporter_stop(), 0);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    daemon_kill(&first);
    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, program, none), 0);
    CU_ASSERT_TRUE_FATAL(exporter_start("--clients"));
}

static void rows_of_clients(void)
{
    bool shown = false;
    int s = raw_connect(&d);

    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "my-job", 0, 1), 0);
    for (int i = 0; i < 2000 && !shown; i++) {
        CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
        shown = strstr(answer, "job_name=\"my-job\",rank=\"0\"} ") != NULL;
        usleep(10000);
    }
    CU_ASSERT_TRUE(shown);
    close(s);
}

/* Reads a counter, and counts the looks: on a busy machine the progress thread may take more than a
 * second to answer, and then its commands are counted only later. */
static json_int_t counter(const char *key, unsigned *looks)
{
    bool running = false;
    json_int_t value = -1;

    for (int i = 0; i < LOOKS_MAX && !running; i++, ++*looks) {
        json_t *counters = look_at(&d, "counters");
        const char *word = json_string_value(json_object_get(counters, "progress"));

        running = word && strcmp(word, "running") == 0;
        value = json_integer_value(json_object_get(counters, key));
        json_decref(counters);
    }
    CU_ASSERT_TRUE(running);
    return value;
}

/* Views are made on the control thread: each costs the progress thread only one command, an echo,
 * however often views are asked for. */
static void views_cost_an_echo(void)
{
    static const char *const views[] = {"status",  "nodes",    "clients", "queues",
                                        "ledgers", "regions",  "teams",   "collectives",
                                        "ops",     "counters", "latency"};
    enum { VIEWS = sizeof(views) / sizeof(views[0]), ROUNDS = 50 };
    json_int_t commands, work;
    unsigned looks = 0;

    CU_ASSERT_TRUE_FATAL(becomes("\npwcd_clients ", 0)); /* clients of earlier tests have left */
    commands = counter("commands", &looks);
    looks = 0;
    work = counter("work", &looks);
    for (int i = 0; i < ROUNDS * VIEWS; i++)
        json_decref(look_at(&d, views[i % VIEWS]));
    commands = counter("commands", &looks) - commands;
    CU_ASSERT_EQUAL(commands, ROUNDS * VIEWS + looks);
    CU_ASSERT_EQUAL(counter("work", &looks) - work, 0);
}

/* Sends a request for a view, without waiting for the answer. */
static bool ask_for_view(int socket, const char *what)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;

    inspect.what = (char *)(uintptr_t)what;
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    return raw_request(socket, 1, &request);
}

/* Connections that ask for a view before its answer is written share that answer. A connection that
 * asks again before it has its answer waits for its turn. */
static void views_are_shared(void)
{
    enum { LOOKERS = 12, EACH = 20 };
    unsigned looks = 0;
    json_int_t commands = counter("commands", &looks);
    int sockets[LOOKERS], answers = 0;

    looks = 0;
    for (int i = 0; i < LOOKERS; i++) {
        sockets[i] = raw_connect(&d);
        CU_ASSERT_FATAL(sockets[i] >= 0);
        for (int n = 0; n < EACH; n++)
            CU_ASSERT_TRUE_FATAL(ask_for_view(sockets[i], "config"));
    }
    for (int n = 0; n < EACH; n++)
        for (int i = 0; i < LOOKERS; i++) {
            int fds[3], fd_count;
            Pwc__ClientReply *reply = raw_reply(sockets[i], fds, &fd_count);

            CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
            answers += reply->body_case == PWC__CLIENT_REPLY__BODY_INSPECTED;
            pwc__client_reply__free_unpacked(reply, NULL);
        }
    CU_ASSERT_EQUAL(answers, LOOKERS * EACH);
    commands = counter("commands", &looks) - commands - looks;
    CU_ASSERT(commands >= EACH);
    CU_ASSERT(commands < LOOKERS * EACH / 2 - 1);
    for (int i = 0; i < LOOKERS; i++)
        close(sockets[i]);
}

static void wrong_options(void)
{
    char taken[16];
    const struct {
        const char *words[3];
        int status;
        const char *says;
    } rows[] = {{{"--listen", "localhost"}, 2, "give a port"},
                {{"--listen", "65536"}, 2, "give a port"},
                {{"--listen", taken}, 1, "give another port, or 0"},
                {{"--listen", "192.0.2.7:0"}, 1, "cannot listen at 192.0.2.7:0"},
                {{"--colour"}, 2, "unrecognized option"},
                {{"status"}, 2, "\"status\" is no option"}};

    snprintf(taken, sizeof(taken), "%u", port);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *argv[] = {exporter_path, rows[i].words[0], rows[i].words[1], NULL};
        struct command *command = command_start(argv, NULL);

        CU_ASSERT_EQUAL(command_finish(command), rows[i].status);
        CU_ASSERT_TRUE(command_said(command, rows[i].says));
        command_free(command);
    }
}

int main(int argc, char **argv)
{
    static const char *const none[] = {NULL};
    CU_TestInfo tests[] = {{"answers", answers},
                           {"whole", whole},
                           {"clients show", clients_show},
                           {"a byte at a time", a_byte_at_a_time},
                           {"half closed", half_closed},
                           {"too long", too_long},
                           {"endless", endless},
                           {"a silent crowd", silent_crowd},
                           {"rude", rude},
                           {"stuck", stuck},
                           {"comes back", comes_back},
                           {"wrong options", wrong_options},
                           {"rows of clients", rows_of_clients},
                           {"views cost an echo", views_cost_an_echo},
                           {"views are shared", views_are_shared},
                           CU_TEST_INFO_NULL};
    int failures;

    signal(SIGPIPE, SIG_IGN);
    if (argc != 3 || daemon_start(&d, argv[1], none) < 0)
        return 2;
    program = argv[1];
    exporter_path = argv[2];
    failures = exporter_start(NULL) ? suite_run("exporter", tests) : 1;
    if (exporter_stop() != 0)
        failures++;
    return daemon_stop(&d) == 0 ? failures : 1;
}

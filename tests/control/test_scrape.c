/*
 * Metrics of a daemon over HTTP, asked for by strangers who are slow, many, rude, or wrong; and
 * while the progress thread stands still.
 *
 *     test_scrape PWCD
 */
#include <arpa/inet.h>
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
#include "tests/lib/process.h"
#include "tests/lib/raw/look.h"
#include "tests/control/thread.h"
#include "tests/suite.h"

enum { WAIT_MS = 20000, ANSWER_ROOM = 1 << 20 };

#define GET      "GET /metrics HTTP/1.1\r\n"
#define GET_OPEN GET "Accept: application/openmetrics-text\r\n\r\n"

static const char *program;
static struct daemon d, first; /* first: set aside while another takes its place */
static char answer[ANSWER_ROOM];

/* Where it serves metrics, by `status`: 0 nowhere. */
static unsigned port_of(const struct daemon *of)
{
    json_t *status = look_at(of, "status");
    const char *at = json_string_value(json_object_get(status, "metrics"));
    unsigned port = at && strrchr(at, ':') ? (unsigned)atoi(strrchr(at, ':') + 1) : 0;

    json_decref(status);
    return port;
}

static int visit(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port_of(&d)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL_FATAL(connect(s, (struct sockaddr *)&at, sizeof(at)), 0);
    return s;
}

/* All that comes until the daemon hangs up, or -1: it does not within the time. */
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

/* Its status, 0: it hung up without a word. */
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
        {"GET / HTTP/1.1\r\n\r\n", 404, "Content-Length: 0"},
        {"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405, "Allow: GET"},
        {"nonsense\r\n\r\n", 400, "Connection: close"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CU_ASSERT_EQUAL(ask_for(rows[i].head), rows[i].status);
        CU_ASSERT_PTR_NOT_NULL(strstr(answer, rows[i].says));
    }
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
    CU_ASSERT_EQUAL(value_of("pwcd_progress_responding{engine=\"0\"} "), 1);
    CU_ASSERT_EQUAL(value_of("\npwcd_nodes "), 1);
    CU_ASSERT_TRUE(value_of("\npwcd_start_time_seconds ") <= (double)time(NULL) + 1);
    CU_ASSERT_TRUE(value_of("\npwcd_start_time_seconds ") > (double)time(NULL) - 3600);
}

/* Who attaches shows at the next reading. Rows of clients don't, without the key. */
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
        usleep(10000); /* a reading holds for 250 ms */
    }
    CU_ASSERT_TRUE(shown);
    CU_ASSERT_EQUAL(value_of("\npwcd_start_time_seconds "),
                    started); /* another would be a restart */
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

/* It says all and hangs up its side: the answer comes. */
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
    static char head[8192];
    int s = visit();

    memset(head, 'x', sizeof(head));
    (void)!send(s, head, sizeof(head), MSG_NOSIGNAL);
    CU_ASSERT_TRUE(read_all(s) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(answer, "431 "));
    close(s);
}

/* Behind its request it goes on talking: it is hung up on. */
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

/* Many who say nothing: whoever asks is served all the same, and they are let go after 5 s. */
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
    CU_ASSERT_TRUE(raw_is_served(&d));
}

/* Asks and goes, as often as it can; nothing of them stays. */
static void rude(void)
{
    int before;

    CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
    before = process_descriptors(d.pid);
    for (int i = 0; i < 500; i++) {
        const struct linger reset = {.l_onoff = 1};
        int s = visit();

        (void)!send(s, GET_OPEN, strlen(GET_OPEN), MSG_NOSIGNAL);
        if (i % 2)
            setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(s);
    }
    CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
    for (int i = 0; i < 1000 && process_descriptors(d.pid) > before; i++)
        usleep(10000);
    CU_ASSERT_TRUE(process_descriptors(d.pid) <= before);
}

/* ---- a progress thread that stands still ------------------------------------------------------
 */

/* Everybody is still answered, with the last counters; and it is told. */
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
    usleep(300000); /* what was read before is given no more */
    for (int i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL(ask_for(GET_OPEN), 200);
        CU_ASSERT_EQUAL(value_of("pwcd_progress_responding{engine=\"0\"} "), 0);
        CU_ASSERT_TRUE(value_of("pwcd_progress_rounds_total{engine=\"0\"} ") >= rounds);
    }
    CU_ASSERT_EQUAL(thread_release(thread), 0);
    for (int i = 0; i < 200 && value_of("pwcd_progress_responding{engine=\"0\"} ") != 1; i++) {
        usleep(10000);
        CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
    }
    CU_ASSERT_EQUAL(value_of("pwcd_progress_responding{engine=\"0\"} "), 1);
}

/* ---- daemons of their own -------------------------------------------------------------------- */

static void other_daemons(void)
{
    static const char *const none[] = {NULL};
    static const char *const open[] = {"--metrics", "127.0.0.1:0", "--metrics-clients", "on", NULL};
    char taken[32];
    const char *same[] = {"--metrics", taken, NULL};
    struct daemon other;
    bool ready = true, shown = false;
    int s;

    first = d;
    CU_ASSERT_EQUAL_FATAL(daemon_start(&other, program, none), 0);
    CU_ASSERT_EQUAL(port_of(&other), 0); /* off by default */
    CU_ASSERT_EQUAL(daemon_stop(&other), 0);

    snprintf(taken, sizeof(taken), "%u", port_of(&d));
    CU_ASSERT_EQUAL_FATAL(daemon_start_beside(&other, &d, "second.sock", program, same, &ready), 0);
    CU_ASSERT_FALSE(ready);
    CU_ASSERT_TRUE(daemon_says(&other, "give another port"));
    CU_ASSERT_NOT_EQUAL(daemon_stop(&other), 0);

    CU_ASSERT_EQUAL_FATAL(daemon_start(&d, program, open), 0);
    s = raw_connect(&d);
    CU_ASSERT_EQUAL_FATAL(raw_hello(s, "my-job", 0, 1), 0);
    for (int i = 0; i < 200 && !shown; i++) {
        CU_ASSERT_EQUAL_FATAL(ask_for(GET_OPEN), 200);
        shown = strstr(answer, "job_name=\"my-job\",rank=\"0\"} ") != NULL;
        usleep(10000);
    }
    CU_ASSERT_TRUE(shown);
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    d = first;
    first.pid = 0;
}

int main(int argc, char **argv)
{
    static const char *const arguments[] = {"--metrics", "0", NULL};
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
                           {"other daemons", other_daemons},
                           CU_TEST_INFO_NULL};
    int failures;

    if (argc != 2 || daemon_start(&d, argv[1], arguments) < 0)
        return 2;
    program = argv[1];
    signal(SIGPIPE, SIG_IGN);
    failures = suite_run("scrape", tests);
    if (first.pid != 0 && first.pid != d.pid) /* a test that gave up */
        daemon_kill(&first);
    return daemon_stop(&d) == 0 ? failures : 1;
}

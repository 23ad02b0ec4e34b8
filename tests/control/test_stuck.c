/*
 * The progress thread stands still: ptrace has stopped it, and no other thread. Inspect and pwcctl
 * still answer, and report "stuck"; clients come and go; and everything continues when the thread
 * does.
 *
 *     test_stuck PWCD PWCCTL
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/session.h"
#include "tests/control/lib/thread.h"
#include "tests/suite.h"

enum { SKIPPED = 77, ASKS_MAX = 20 };

static struct daemon d;
static const char *pwcctl;
static pid_t thread; /* the progress thread */

/* ---- the thread ------------------------------------------------------------------------------ */

static void stop_thread(void)
{
    CU_ASSERT_EQUAL_FATAL(thread_hold(thread), 0);
}

static void let_go(void)
{
    CU_ASSERT_EQUAL_FATAL(thread_release(thread), 0);
}

/* ---- questions ------------------------------------------------------------------------------- */

static const char *const views[] = {"status",  "nodes", "clients",  "queues", "ledgers",
                                    "regions", "ops",   "counters", "config"};
#define VIEWS (sizeof(views) / sizeof(views[0]))

static void ask_all(int s)
{
    for (size_t i = 0; i < VIEWS; i++) {
        Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
        Pwc__Inspect inspect = PWC__INSPECT__INIT;

        inspect.what = (char *)(uintptr_t)views[i];
        request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
        request.inspect = &inspect;
        CU_ASSERT_TRUE(raw_request(s, (uint32_t)i + 1, &request));
    }
}

struct answers {
    size_t running, stuck; /* views with this word for the progress thread */
    json_int_t rounds;     /* the progress thread's rounds, from the last view that has them */
};

/* Checks that all views are answered, with what the control thread knows by itself. */
static struct answers read_all(int s)
{
    struct answers all = {.rounds = -1};

    for (size_t i = 0; i < VIEWS; i++) {
        int fds[3], count;
        Pwc__ClientReply *reply = raw_reply(s, fds, &count);
        json_t *document;
        const char *what, *word;

        CU_ASSERT_PTR_NOT_NULL_FATAL(reply);
        CU_ASSERT_EQUAL_FATAL(reply->body_case, PWC__CLIENT_REPLY__BODY_INSPECTED);
        document = json_loads(reply->inspected->json, 0, NULL);
        what = json_string_value(json_object_get(document, "what"));
        word = json_string_value(json_object_get(document, "progress"));
        CU_ASSERT(what && strcmp(what, views[reply->id - 1]) == 0);
        all.running += word && strcmp(word, "running") == 0;
        all.stuck += word && strcmp(word, "stuck") == 0;
        if (strcmp(views[reply->id - 1], "status") == 0 ||
            strcmp(views[reply->id - 1], "counters") == 0) {
            CU_ASSERT_FATAL(json_is_integer(json_object_get(document, "heartbeat")));
            all.rounds = json_integer_value(json_object_get(document, "heartbeat"));
            CU_ASSERT_EQUAL(json_integer_value(json_object_get(document, "pid")), d.pid);
        }
        json_decref(document);
        pwc__client_reply__free_unpacked(reply, NULL);
    }
    return all;
}

/* Reads the answers to ask_all while the thread stands still. Returns its rounds. */
static json_int_t expect_stuck(int s)
{
    struct answers all = read_all(s);

    CU_ASSERT_EQUAL(all.stuck, VIEWS);
    return all.rounds;
}

/* Asks for all views while the thread runs. Returns its rounds. */
static json_int_t ask_running(int s)
{
    struct answers all = {.stuck = VIEWS};

    /* On a busy machine the progress thread may take more than a second to answer. */
    for (int i = 0; i < ASKS_MAX && all.stuck > 0; i++) {
        ask_all(s);
        all = read_all(s);
    }
    CU_ASSERT_EQUAL(all.running, VIEWS);
    return all.rounds;
}

/* Runs pwcctl for a view and returns what it prints. */
static void run_pwcctl(const char *options, const char *view, char *to, size_t size)
{
    char command[512];
    size_t got = 0;
    FILE *out;

    snprintf(command, sizeof(command), "'%s' --socket '%s' %s %s", pwcctl, d.socket, options, view);
    out = popen(command, "re");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    got = fread(to, 1, size - 1, out);
    to[got] = '\0';
    CU_ASSERT_EQUAL(pclose(out), 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void says_so_and_recovers(void)
{
    int s = raw_connect(&d);
    char text[65536], same[64];
    json_int_t before, stopped;

    CU_ASSERT_FATAL(s >= 0);
    before = ask_running(s);
    stop_thread();
    ask_all(s);
    stopped = expect_stuck(s);
    CU_ASSERT(stopped >= before);
    run_pwcctl("--json", "status", text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "\"progress\":\"stuck\""));
    snprintf(same, sizeof(same), "\"heartbeat\":%lld,", (long long)stopped);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, same)); /* the count stands still */
    run_pwcctl("", "status", text, sizeof(text));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "stuck"));
    run_pwcctl("--json", "counters", text, sizeof(text)); /* reads the file, without the daemon */
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "heartbeat"));
    let_go();
    (void)ask_running(s);
    /* The round of the first answers may not be counted yet: ask in a later one. */
    CU_ASSERT(ask_running(s) > stopped);
    close(s);
}

/* A client that attaches meanwhile has to wait. A client that leaves is given back afterwards. A
 * client from before works on. */
static void clients_meanwhile(void)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Hello hello = PWC__HELLO__INIT;
    struct raw_session stays, goes;
    struct submit_record put;
    struct event_record event = {0};
    struct answer a;
    struct holdings quiet;
    int s;

    CU_ASSERT_TRUE(look_holdings(&d, &quiet));
    CU_ASSERT_EQUAL_FATAL(raw_session_open(&stays, &d, "stuck", 0, 3), 0);
    CU_ASSERT_EQUAL_FATAL(raw_session_open(&goes, &d, "stuck", 1, 3), 0);
    stop_thread();
    put = raw_put(&stays);
    raw_submit(&stays, &put, sizeof(put), put.size);
    raw_session_close(&goes);
    s = raw_connect(&d);
    hello.version_min = hello.version_max = 1;
    hello.rings = SESSION_VERSION;
    hello.job = "stuck";
    hello.rank = 2;
    hello.size = 3;
    request.body_case = PWC__CLIENT_REQUEST__BODY_HELLO;
    request.hello = &hello;
    CU_ASSERT_TRUE(raw_request(s, 2, &request));
    ask_all(s);
    (void)expect_stuck(s); /* answered before the Hello that was sent first */
    let_go();
    CU_ASSERT_EQUAL(ask_nothing(s, &a), 0);
    CU_ASSERT_EQUAL_FATAL(raw_local_event(&stays, &event), 1);
    CU_ASSERT_EQUAL(event.status, 0);
    raw_session_close(&stays);
    close(s);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* SIGTERM ends the daemon although its thread does not return. This is the last test, because no
 * daemon is left. */
static void ends_without_it(void)
{
    int status;

    stop_thread();
    kill(d.pid, SIGTERM);
    CU_ASSERT_TRUE(daemon_says(&d, "does not come back from a call: this daemon ends without it"));
    CU_ASSERT_EQUAL(waitpid(thread, &status, __WALL), thread);
    CU_ASSERT_EQUAL(daemon_stop(&d), 1);
    CU_ASSERT_NOT_EQUAL(access(d.directory, F_OK), 0); /* the folder is gone */
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"says so, and recovers", says_so_and_recovers},
                           {"clients meanwhile", clients_meanwhile},
                           {"ends without it", ends_without_it},
                           CU_TEST_INFO_NULL};
    static const char *const arguments[] = {"--peer-deadline-ms", "500", NULL};
    int failed = 1, rc;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    pwcctl = argv[2];
    rc = daemon_start(&d, argv[1], arguments);
    thread = rc == 0 ? thread_find(d.pid) : 0;
    rc = thread > 0 ? thread_hold(thread) : -ESRCH;
    if (rc == 0 && thread_release(thread) == 0) {
        failed = suite_run("stuck", tests);
    } else if (rc == -EPERM) {
        printf("left out: this machine does not let a parent trace its child\n");
        failed = SKIPPED;
    }
    if (d.pid > 0) { /* the last test has failed or did not run */
        kill(d.pid, SIGKILL);
        while (thread > 0 && waitpid(thread, NULL, __WALL) == thread)
            continue;
        daemon_kill(&d);
    }
    return failed;
}

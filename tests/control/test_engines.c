/*
 * A daemon with several progress threads, beside another node: clients are spread over the engines,
 * also those of open jobs, whose home may be the other node. A rank is unique over all engines, the
 * bound on clients is for the whole daemon, a thread that stands still delays only its own clients,
 * and engines that can't link say why.
 *
 *     test_engines PWCD ODD-PWCD
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/control/lib/plan.h"
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/look.h"
#include "tests/suite.h"

#define ENGINES 3u
#define CLIENTS 7u /* clients that the daemon may have */
#define THREAD  "pwcd-progress\n"

enum { LOOKS_MAX = 20 };

static struct plan plan;
static struct daemon d, other; /* nodes 0 and 1 */
static const char *odd_program;

/* Reads from `status` how many clients each engine has. Returns false if there is no such answer.
 */
static bool spread(uint32_t counts[ENGINES])
{
    json_t *document = look_at(&d, "status"), *row;
    const json_t *engines = json_object_get(document, "engines");
    bool whole = json_array_size(engines) == ENGINES;
    json_int_t sum = 0;
    size_t i;

    json_array_foreach(engines, i, row)
    {
        whole = whole && json_integer_value(json_object_get(row, "engine")) == (json_int_t)i;
        counts[i % ENGINES] = (uint32_t)json_integer_value(json_object_get(row, "clients"));
        sum += counts[i % ENGINES];
    }
    /* A connection that only looks is not counted as a client. */
    whole = whole && json_integer_value(json_object_get(document, "clients")) == sum &&
            json_integer_value(json_object_get(document, "connections")) > sum;
    json_decref(document);
    return whole;
}

/* Waits until the engines have these numbers of clients: the daemon gives a client back some time
 * after it has left. */
static bool becomes(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t counts[ENGINES] = {0};

    for (int i = 0; i < 2000; i++) {
        if (!spread(counts))
            return false;
        if (counts[0] == a && counts[1] == b && counts[2] == c)
            return true;
        usleep(5000);
    }
    printf("%u %u %u instead of %u %u %u ", counts[0], counts[1], counts[2], a, b, c);
    return false;
}

/* Reads from `clients` which engine a rank has; -1: the rank is not listed. */
static int engine_of(uint32_t rank)
{
    json_t *document = look_at(&d, "clients"), *row;
    int engine = -1;
    size_t i;

    json_array_foreach(json_object_get(document, "clients"), i,
                       row) if (json_integer_value(json_object_get(row, "rank")) == rank) engine =
        (int)json_integer_value(json_object_get(row, "engine"));
    json_decref(document);
    return engine;
}

static int join(uint32_t rank, int *status)
{
    int s = raw_connect(&d);

    CU_ASSERT_FATAL(s >= 0);
    *status = raw_hello(s, "spread", rank, 64);
    return s;
}

static void clients_are_spread(void)
{
    int s[CLIENTS], status, refused;

    CU_ASSERT_TRUE(becomes(0, 0, 0));
    for (uint32_t i = 0; i < CLIENTS; i++) {
        s[i] = join(i, &status);
        CU_ASSERT_EQUAL(status, 0);
        CU_ASSERT_EQUAL(engine_of(i),
                        (int)(i % ENGINES)); /* fewest clients first, then the lowest number */
    }
    CU_ASSERT_TRUE(becomes(3, 2, 2));

    refused = join(CLIENTS, &status);
    CU_ASSERT_EQUAL(status, -ENOSPC);
    close(refused);

    close(s[1]);
    close(s[4]);
    CU_ASSERT_TRUE(becomes(3, 0, 2));
    for (uint32_t i = 0; i < 2; i++) { /* an attached rank, whose engine is not the emptiest */
        refused = join(2, &status);
        CU_ASSERT_EQUAL(status, -EADDRINUSE);
        close(refused);
    }
    s[1] = join(1, &status);
    CU_ASSERT_EQUAL(status, 0);
    s[4] = join(4, &status);
    CU_ASSERT_EQUAL(status, 0);
    CU_ASSERT_EQUAL(engine_of(1), 1);
    CU_ASSERT_EQUAL(engine_of(4), 1);
    for (uint32_t i = 0; i < CLIENTS; i++)
        close(s[i]);
    CU_ASSERT_TRUE(becomes(0, 0, 0));
}

/* ---- open jobs ------------------------------------------------------------------------------- */

enum { JOINS = 6 };

static void all_leave(const int s[JOINS])
{
    for (int i = 0; i < JOINS; i++)
        close(s[i]);
    CU_ASSERT_TRUE(becomes(0, 0, 0));
}

static void an_open_job_is_spread(void)
{
    int s[JOINS];

    for (int i = 0; i < JOINS; i++) {
        s[i] = raw_connect(&d);
        CU_ASSERT_EQUAL(raw_hello(s[i], "grows", 0, UINT32_MAX), 0);
    }
    CU_ASSERT_TRUE(becomes(2, 2, 2));
    all_leave(s);
}

static bool is_welcome(int s)
{
    int fds[3], count;
    Pwc__ClientReply *reply = raw_reply(s, fds, &count);
    bool welcome = reply && reply->body_case == PWC__CLIENT_REPLY__BODY_WELCOME;

    if (reply)
        pwc__client_reply__free_unpacked(reply, NULL);
    return welcome;
}

/* Clients that join at once are spread, although the home of their job has given none of them a
 * rank yet. The homes of some of these jobs are the other node. */
static void joins_at_once_are_spread(void)
{
    for (char job[] = "at-once-0"; job[8] < '8'; job[8]++) {
        int s[JOINS], status;

        for (int i = 0; i < JOINS; i++)
            s[i] = raw_connect(&d);
        CU_ASSERT_TRUE(raw_is_served(&d)); /* so these connections are accepted */
        kill(d.pid, SIGSTOP);
        CU_ASSERT_EQUAL(waitpid(d.pid, &status, WUNTRACED), d.pid);
        for (int i = 0; i < JOINS; i++)
            CU_ASSERT_TRUE(raw_ask_hello(s[i], job, 0, UINT32_MAX));
        kill(d.pid, SIGCONT);
        for (int i = 0; i < JOINS; i++)
            CU_ASSERT_TRUE(is_welcome(s[i]));
        CU_ASSERT_TRUE(becomes(2, 2, 2));
        all_leave(s);
    }
}

/* ---- a thread that stands still -------------------------------------------------------------- */

static pid_t find_thread(void)
{
    char path[64], name[32];
    const struct dirent *task;
    pid_t found = 0;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)d.pid);
    tasks = opendir(path);
    while (tasks && (task = readdir(tasks)) != NULL) {
        FILE *comm;

        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/comm", (int)d.pid, task->d_name);
        comm = fopen(path, "re");
        if (comm && fgets(name, sizeof(name), comm) && strcmp(name, THREAD) == 0)
            found = (pid_t)atoi(task->d_name);
        if (comm)
            fclose(comm);
    }
    if (tasks)
        closedir(tasks);
    return found;
}

/* Returns how many engines `status` reports as stuck, and the first of them in *engine. */
static size_t look_stuck(int *engine)
{
    json_t *document = look_at(&d, "status");
    const json_t *stuck = json_object_get(document, "stuck_engines");
    const char *word = json_string_value(json_object_get(document, "progress"));
    size_t count = json_array_size(stuck);

    CU_ASSERT_FATAL(word && strcmp(word, count > 0 ? "stuck" : "running") == 0);
    *engine = count > 0 ? (int)json_integer_value(json_array_get(stuck, 0)) : -1;
    json_decref(document);
    return count;
}

/* As look_stuck, where `count` engines are stuck. On a busy machine the thread of another engine
 * may take more than a second to answer, so this looks again. */
static size_t look_stuck_until(size_t count, int *engine)
{
    size_t found = look_stuck(engine);

    for (int i = 0; i < LOOKS_MAX && found > count; i++)
        found = look_stuck(engine);
    return found;
}

static void one_thread_stands_still(void)
{
    int s[ENGINES], status, engine, rc;
    struct answer a;
    pid_t thread = find_thread();

    CU_ASSERT_FATAL(thread > 0);
    rc = ptrace(PTRACE_SEIZE, thread, NULL, NULL) == 0 ? 0 : -errno;
    if (rc == -EPERM) {
        printf("left out: this machine does not let a parent trace its child ");
        return;
    }
    CU_ASSERT_EQUAL_FATAL(rc, 0);
    for (uint32_t i = 0; i < ENGINES; i++) {
        s[i] = join(i, &status);
        CU_ASSERT_EQUAL_FATAL(status, 0);
    }
    CU_ASSERT_EQUAL_FATAL(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(waitpid(thread, &status, __WALL), thread);
    CU_ASSERT_EQUAL(look_stuck_until(1, &engine), 1);
    CU_ASSERT_FATAL(engine >= 0 && engine < (int)ENGINES);
    for (int i = 0; i < (int)ENGINES; i++)
        if (i != engine) {
            CU_ASSERT_EQUAL(ask_context(s[i], 4096, &a), 0);
            answer_close(&a);
        }
    CU_ASSERT_EQUAL_FATAL(ptrace(PTRACE_CONT, thread, NULL, NULL), 0);
    CU_ASSERT_EQUAL(ask_context(s[engine], 4096, &a), 0);
    answer_close(&a);
    CU_ASSERT_EQUAL(look_stuck_until(0, &engine), 0);
    for (uint32_t i = 0; i < ENGINES; i++)
        close(s[i]);
    CU_ASSERT_TRUE(becomes(0, 0, 0));
    CU_ASSERT_EQUAL(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
    CU_ASSERT_EQUAL(waitpid(thread, &status, __WALL), thread);
    CU_ASSERT_EQUAL(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
}

/* ---- engines without a link ------------------------------------------------------------------ */

/* Guards that a bind between two engines ends, and that the log says why, where the fabric refuses
 * the ring of their link when it has tried: both engines would fail again and again. */
static void siblings_without_rings(void)
{
    static const char *const arguments[] = {"--progress-threads", "2", "--direct", "off", NULL};
    struct daemon second;
    struct answer a;
    bool ready = true;
    int s[2];

    setenv("PWCD_ODD", "ringless", 1);
    CU_ASSERT_EQUAL_FATAL(
        daemon_start_beside(&second, &d, "second.sock", odd_program, arguments, &ready), 0);
    unsetenv("PWCD_ODD");
    for (uint32_t i = 0; i < 2; i++) {
        s[i] = raw_connect(&second);
        CU_ASSERT_EQUAL_FATAL(raw_hello(s[i], "siblings", i, 2), 0);
    }
    CU_ASSERT_EQUAL_FATAL(ask_context(s[1], 4096, &a), 0);
    answer_close(&a);
    CU_ASSERT_EQUAL_FATAL(ask_context(s[0], 4096, &a), 0);
    answer_close(&a);
    CU_ASSERT_EQUAL(ask_bind(s[0], a.handle, 1, NULL, &a), -EHOSTDOWN);
    answer_close(&a);
    CU_ASSERT_TRUE(daemon_says(&second, "engines 0 and 1 of this node: Input/output error"));
    for (uint32_t i = 0; i < 2; i++)
        close(s[i]);
    CU_ASSERT_EQUAL(daemon_stop(&second), 0);
}

/* Starts node 0, and node 1, the home of some jobs. */
static bool start(const char *program)
{
    const char *arguments[] = {"--progress-threads",
                               "3",
                               "--clients-max",
                               "7",
                               "--node",
                               "0",
                               "--nodes",
                               plan.nodes,
                               "--secret",
                               plan.secrets[0],
                               "--provider",
                               PLAN_PROVIDER,
                               NULL};

    return plan_open(&plan) && daemon_start(&d, program, arguments) == 0 &&
           plan_start(&other, program, "1", plan.secrets[0], plan.nodes);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"clients are spread", clients_are_spread},
                           {"an open job is spread", an_open_job_is_spread},
                           {"joins at once are spread", joins_at_once_are_spread},
                           {"one thread stands still", one_thread_stands_still},
                           {"siblings without rings", siblings_without_rings},
                           CU_TEST_INFO_NULL};
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 3)
        return 2;
    odd_program = argv[2];
    if (start(argv[1]))
        failed = suite_run("engines", tests);
    if (failed) {
        daemon_kill(&d);
        daemon_kill(&other);
    } else if (daemon_stop(&d) != 0 || daemon_stop(&other) != 0) {
        failed = 1;
    }
    plan_close(&plan);
    return failed;
}

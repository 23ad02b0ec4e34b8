/* The log: fields of the journal, where lines are written, and the limits on their number. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shm_ring/clock.h"
#include "daemon/control/watch/log.h"
#include "tests/suite.h"

static void expect(enum log_level level, const struct log_subject *about, const char *expected)
{
    char fields[LOG_FIELDS_MAX][LOG_FIELD_BYTES], all[LOG_FIELDS_MAX * LOG_FIELD_BYTES] = "";
    size_t count = log_fields(level, about, fields);

    CU_ASSERT_FATAL(count <= LOG_FIELDS_MAX);
    for (size_t i = 0; i < count; i++) {
        strcat(all, i > 0 ? " " : "");
        strcat(all, fields[i]);
    }
    CU_ASSERT_STRING_EQUAL(all, expected);
}

static void test_fields(void)
{
    struct log_subject nobody = log_nobody(), node = log_node(16383), rank = log_nobody();
    struct log_subject long_name = log_nobody();
    char job[2 * LOG_FIELD_BYTES], fields[LOG_FIELDS_MAX][LOG_FIELD_BYTES];

    expect(LOG_LEVEL_ERROR, NULL, "PRIORITY=3");
    expect(LOG_LEVEL_WARNING, &nobody, "PRIORITY=4");
    expect(LOG_LEVEL_INFO, &node, "PRIORITY=6 PWCD_PEER=16383");
    rank.client = 0;
    rank.rank = UINT32_MAX;
    rank.pid = 17;
    rank.user = 0;
    rank.job = "weather";
    expect(LOG_LEVEL_DEBUG, &rank,
           "PRIORITY=7 PWCD_CLIENT=0 PWCD_RANK=4294967295 PWCD_PID=17 PWCD_UID=0 "
           "PWCD_JOB=weather");
    memset(job, 'j', sizeof(job));
    job[sizeof(job) - 1] = '\0';
    long_name.job = job;
    CU_ASSERT_EQUAL(log_fields(LOG_LEVEL_INFO, &long_name, fields), 2);
    CU_ASSERT_EQUAL(strlen(fields[1]), LOG_FIELD_BYTES - 1);
}

/* The log goes to the journal only when standard error is a stream that systemd has connected with
 * it. */
static void test_journal(void)
{
    char stream[64], text[128] = "";
    struct stat st;
    struct log log;
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    CU_ASSERT_EQUAL_FATAL(fstat(ends[1], &st), 0);
    unsetenv("JOURNAL_STREAM");
    log_open(&log, ends[1], LOG_LEVEL_INFO);
    CU_ASSERT_FALSE(log.journal);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_open(&log, ends[1], LOG_LEVEL_INFO);
    CU_ASSERT_TRUE(log.journal);
    /* A process may write a line and exit, so the journal must not look up the unit by the
     * process. */
    log_line(&log, LOG_LEVEL_ERROR, "no such key: %s", "many");
    CU_ASSERT_FATAL(read(ends[0], text, sizeof(text) - 1) > 0);
    CU_ASSERT_STRING_EQUAL(text, "<3>no such key: many\n");
    log_open(&log, STDIN_FILENO, LOG_LEVEL_INFO); /* another descriptor, not the journal's */
    CU_ASSERT_FALSE(log.journal);
    setenv("JOURNAL_STREAM", "none", 1);
    log_open(&log, ends[1], LOG_LEVEL_INFO);
    CU_ASSERT_FALSE(log.journal);
    unsetenv("JOURNAL_STREAM");
    close(ends[0]);
    close(ends[1]);
}

static void test_lines(void)
{
    struct log_subject about = log_node(3);
    char text[512] = "";
    struct log log;
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    log_open(&log, ends[1], LOG_LEVEL_WARNING);
    log_line(&log, LOG_LEVEL_INFO, "too low");
    log_about(&log, LOG_LEVEL_INFO, &about, "too low");
    log_line(&log, LOG_LEVEL_ERROR, "%d", 1);
    log_about(&log, LOG_LEVEL_WARNING, &about, "node %d", 3);
    log_hostile(&log, LOG_SOURCE_CONNECTION, NULL, "stranger");
    log_start(&log, LOG_LEVEL_INFO, "too low");
    log_start(&log, LOG_LEVEL_WARNING, "by hand");
    CU_ASSERT_FATAL(read(ends[0], text, sizeof(text) - 1) > 0);
    CU_ASSERT_STRING_EQUAL(text, "pwcd: error: 1\npwcd: warning: node 3\npwcd: warning: stranger\n"
                                 "pwcd: info: by hand\n");
    close(ends[0]);
    close(ends[1]);
}

/* Lines of one source do not use up the share of another, and each line that is left out is
 * counted. */
static void test_limits(void)
{
    enum { MORE = 3 };
    char text[2048] = "", expected[2048] = "";
    struct log log;
    size_t used = 0;
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    log_open(&log, ends[1], LOG_LEVEL_WARNING);
    for (uint32_t i = 0; i < LOG_LINES_PER_SECOND + MORE; i++) {
        log.limits[LOG_SOURCE_CONNECTION].since_ns = clock_ns(); /* all in one second */
        log_hostile(&log, LOG_SOURCE_CONNECTION, NULL, "connection %u", i);
        if (i < LOG_LINES_PER_SECOND)
            used += (size_t)sprintf(expected + used, "pwcd: warning: connection %u\n", i);
    }
    log_hostile(&log, LOG_SOURCE_CLIENT, NULL, "client");
    log_hostile(&log, LOG_SOURCE_NODE, NULL, "node");
    used += (size_t)sprintf(expected + used, "pwcd: warning: client\npwcd: warning: node\n");

    log.limits[LOG_SOURCE_CONNECTION].since_ns = 0; /* the next second */
    log_hostile(&log, LOG_SOURCE_CONNECTION, NULL, "one more");
    used += (size_t)sprintf(expected + used,
                            "pwcd: warning: %d more lines about connections were left out\n"
                            "pwcd: warning: one more\n",
                            MORE);
    log.limits[LOG_SOURCE_CLIENT] =
        (struct log_limit){.since_ns = clock_ns(), .lines = LOG_LINES_PER_SECOND};
    log_hostile(&log, LOG_SOURCE_CLIENT, NULL, "left out");
    log_end(&log);
    log_end(&log); /* the second call writes nothing */
    sprintf(expected + used, "pwcd: warning: 1 more lines about clients were left out\n");
    CU_ASSERT_FATAL(read(ends[0], text, sizeof(text) - 1) > 0);
    CU_ASSERT_STRING_EQUAL(text, expected);
    close(ends[0]);
    close(ends[1]);
}

#define SECOND UINT64_C(1000000000)

/* A line that is logged twice a second, without end, is written seldom, with the number of repeats.
 * The test makes up the times, so that the machine's uptime does not matter. */
static void test_repeats(void)
{
    uint64_t now = 5 * SECOND;
    char text[2048] = "";
    struct log_repeat *r;
    struct log log;
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    log_open(&log, ends[1], LOG_LEVEL_WARNING);
    r = &log.repeats[0];
    for (int i = 0; i < 20; i++)
        log_hostile_at(&log, LOG_SOURCE_NODE, NULL, "secret", now);
    log_hostile_at(&log, LOG_SOURCE_CONNECTION, NULL, "secret", now); /* another source */
    now += LOG_PAUSE_FIRST_S * SECOND;
    log_hostile_at(&log, LOG_SOURCE_NODE, NULL, "secret", now);
    CU_ASSERT_EQUAL(r->pause_s, 2 * LOG_PAUSE_FIRST_S);
    now += 2 * LOG_PAUSE_FIRST_S * SECOND - 1; /* too early */
    log_hostile_at(&log, LOG_SOURCE_NODE, NULL, "secret", now);
    CU_ASSERT_FATAL(read(ends[0], text, sizeof(text) - 1) > 0);
    CU_ASSERT_STRING_EQUAL(text, "pwcd: warning: secret\npwcd: warning: secret\n"
                                 "pwcd: warning: secret (21 times in 10 s)\n");
    for (int i = 0; i < 20; i++) {
        now += LOG_PAUSE_MOST_S * SECOND;
        log_hostile_at(&log, LOG_SOURCE_NODE, NULL, "secret", now);
    }
    CU_ASSERT_EQUAL(r->pause_s, LOG_PAUSE_MOST_S); /* the pauses have a bound */
    for (int i = 0; i < LOG_REPEATS; i++) {        /* until other lines have replaced it */
        sprintf(text, "node %d", i);
        log_hostile_at(&log, LOG_SOURCE_NODE, NULL, text, now + 1);
    }
    CU_ASSERT_EQUAL(r->count, 1);
    log.level = LOG_LEVEL_INFO; /* at level warning, those that left are no line */
    log_hostile_at(&log, LOG_SOURCE_LEFT, NULL, "left", now);
    log.level = LOG_LEVEL_WARNING;
    log_hostile_at(&log, LOG_SOURCE_LEFT, NULL, "left again", now);
    memset(text, 0, sizeof(text));
    CU_ASSERT_FATAL(read(ends[0], text, sizeof(text) - 1) > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "pwcd: info: left\n"));
    CU_ASSERT_PTR_NULL(strstr(text, "left again"));
    close(ends[0]);
    close(ends[1]);
}

/* A line that its source's limit leaves out does not start a pause: it is written as soon as the
 * limit allows. */
static void test_repeats_left_out(void)
{
    uint64_t now = 5 * SECOND;
    char text[2048] = "", expected[2048] = "", line[64];
    struct log log;
    size_t used = 0;
    int ends[2];

    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    log_open(&log, ends[1], LOG_LEVEL_WARNING);
    for (uint32_t i = 0; i < LOG_LINES_PER_SECOND; i++) {
        sprintf(line, "node %u", i);
        log_hostile_at(&log, LOG_SOURCE_NODE, NULL, line, now);
        used += (size_t)sprintf(expected + used, "pwcd: warning: %s\n", line);
    }
    log_hostile_at(&log, LOG_SOURCE_NODE, NULL, "secret", now);
    log_hostile_at(&log, LOG_SOURCE_NODE, NULL, "secret", now + 2 * SECOND);
    log_hostile_at(&log, LOG_SOURCE_NODE, NULL, "secret", now + 4 * SECOND); /* in a pause */
    sprintf(expected + used, "pwcd: warning: 1 more lines about other nodes were left out\n"
                             "pwcd: warning: secret (2 times in 2 s)\n");
    CU_ASSERT_FATAL(read(ends[0], text, sizeof(text) - 1) > 0);
    CU_ASSERT_STRING_EQUAL(text, expected);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    CU_TestInfo tests[] = {{"fields", test_fields},
                           {"journal", test_journal},
                           {"lines", test_lines},
                           {"limits", test_limits},
                           {"lines that come again and again", test_repeats},
                           {"lines that come again, and are left out", test_repeats_left_out},
                           CU_TEST_INFO_NULL};

    return suite_run("log", tests);
}

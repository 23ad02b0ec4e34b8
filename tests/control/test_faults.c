/*
 * A daemon that cannot watch its clients' processes refuses clients with that reason. Also: a
 * client truncates shared memory, so that the daemon's accesses fault (the odd daemon leaves out
 * the seals that prevent this). The daemon continues, quarantines the client that owned the memory,
 * gives the reason, and gives back all; other clients notice nothing. A daemon whose ledgers cannot
 * be registered ends with the reason.
 *
 *     test_faults ODD-PWCD
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "proto/exit_status.h"
#include "tests/lib/bystanders.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/session.h"
#include "tests/lib/raw/team.h"
#include "tests/suite.h"

#define JOB    "faulting"
#define REASON "shared memory faulted"

static const char *program;
static struct daemon d;
static struct bystanders others;
static struct holdings quiet;

static void cut(int fd)
{
    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, 0), 0);
}

/* Checks that client `s`, whose memory has faulted, is quarantined. */
static void expect_quarantine(struct raw_session *s)
{
    struct answer last;

    CU_ASSERT_EQUAL(ask_nothing(s->socket, &last), -EPROTO);
    CU_ASSERT_STRING_EQUAL(last.text, REASON);
    CU_ASSERT_TRUE(raw_hangs_up(s->socket));
    CU_ASSERT_TRUE(look_quarantined(&d, JOB, 0, REASON));
    raw_session_close(s);
}

/* A client truncates the memory of its rings, and then rings the daemon's doorbell. */
static void session(void)
{
    struct raw_session s;

    CU_ASSERT_EQUAL_FATAL(raw_session_open(&s, &d, JOB, 0, 1), 0);
    cut(s.session_fd);
    raw_ring(&s);
    expect_quarantine(&s);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

/* A client truncates the segment that a put, its own or its neighbour's, copies from or to. */
static void segments(void)
{
    static const struct {
        const char *what;
        uint32_t length;
        uint16_t flags;
        uint8_t kind;
        bool neighbour; /* the neighbour submits, towards the client's memory; else the client */
    } rows[] = {
        {"the source of a put", 8192, 0, SUBMIT_PUT, false},
        {"the target of a packed put", 64, SUBMIT_INLINE, SUBMIT_PUT, true},
        {"the target of a large put", 8192, 0, SUBMIT_PUT, true},
        {"what a get reads", 8192, 0, SUBMIT_GET, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct raw_session s, neighbour;
        struct raw_session *by = rows[i].neighbour ? &neighbour : &s;
        struct answer bound;
        struct {
            struct submit_record record;
            uint8_t payload[64];
        } op;
        unsigned failures = CU_get_number_of_failures();

        CU_ASSERT_EQUAL_FATAL(raw_session_open(&s, &d, JOB, 0, 2), 0);
        CU_ASSERT_EQUAL_FATAL(raw_session_open(&neighbour, &d, JOB, 1, 2), 0);
        CU_ASSERT_EQUAL_FATAL(ask_bind(by->socket, by->session, 0, &s.key, &bound), 0);
        memset(&op, 0, sizeof(op));
        op.record = raw_put(by);
        op.record.kind = rows[i].kind;
        op.record.flags = rows[i].flags;
        op.record.length = rows[i].length;
        op.record.remote = bound.handle;
        op.record.size += rows[i].flags & SUBMIT_INLINE ? sizeof(op.payload) : 0;
        cut(s.segment_fd);
        raw_submit(by, &op, op.record.size, op.record.size);
        expect_quarantine(&s);
        if (rows[i].neighbour) {
            struct event_record event = {0};

            CU_ASSERT_EQUAL(raw_local_event(&neighbour, &event), 1);
            op.record = raw_put(&neighbour); /* the neighbour puts to itself */
            raw_submit(&neighbour, &op, op.record.size, op.record.size);
            CU_ASSERT_EQUAL(raw_local_event(&neighbour, &event), 1);
            CU_ASSERT_EQUAL(event.status, 0);
        }
        raw_session_close(&neighbour);
        CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
        if (CU_get_number_of_failures() != failures)
            fprintf(stderr, "%s\n", rows[i].what);
    }
}

/* A member truncates the memory that the members of a team share. Nothing in it reaches the other
 * members any more, so all of them are quarantined. */
static void areas(void)
{
    struct raw_session s[2];
    struct raw_team team[2];
    struct submit_record wake = {.size = sizeof(wake), .kind = SUBMIT_TEAM_WAKE};

    for (uint32_t rank = 0; rank < 2; rank++) {
        Pwc__TeamJoin join;

        CU_ASSERT_EQUAL_FATAL(raw_session_open(&s[rank], &d, JOB, rank, 2), 0);
        join = raw_team_call(s[rank].session, 0, 0);
        CU_ASSERT_TRUE_FATAL(raw_team_join(s[rank].socket, &join));
    }
    for (uint32_t rank = 0; rank < 2; rank++)
        CU_ASSERT_EQUAL_FATAL(raw_team_formed(s[rank].socket, &team[rank]), 0);
    cut(team[0].area);
    wake.remote = team[0].handle;
    raw_submit(&s[0], &wake, wake.size, wake.size);
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct answer last;

        CU_ASSERT_EQUAL(ask_nothing(s[rank].socket, &last), -EPROTO);
        CU_ASSERT_STRING_EQUAL(last.text, REASON);
        CU_ASSERT_TRUE(raw_hangs_up(s[rank].socket));
        raw_session_close(&s[rank]);
        raw_team_close(&team[rank]);
    }
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

static void unwatched(void)
{
    struct daemon blind;
    struct answer a;
    int s;

    setenv("PWCD_ODD", "blind", 1);
    CU_ASSERT_EQUAL_FATAL(daemon_start(&blind, program, NULL), 0);
    s = raw_connect(&blind);
    CU_ASSERT_EQUAL(ask_nothing(s, &a), -EMFILE);
    CU_ASSERT_STRING_EQUAL(a.text, "this daemon cannot watch your process: Too many open files");
    CU_ASSERT_TRUE(raw_hangs_up(s));
    CU_ASSERT_TRUE(daemon_says(&blind, "cannot be watched: Too many open files"));
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&blind), 0);
}

/* A daemon without memory for ledgers ends by itself, also where a keeper would start another, and
 * leaves no socket. */
static void unlocked(void)
{
    static const char *const keep[] = {"--keep", NULL};
    static const char *const *const rows[] = {NULL, keep};

    setenv("PWCD_ODD", "unlocked", 1);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct daemon second;
        bool ready = true;

        CU_ASSERT_EQUAL_FATAL(
            daemon_start_beside(&second, &d, "second.sock", program, rows[i], &ready), 0);
        CU_ASSERT_TRUE(daemon_says(&second, "does not register the memory for ledgers"));
        CU_ASSERT_TRUE(daemon_says(&second, "raise the limit of locked memory"));
        CU_ASSERT_FALSE(daemon_says(&second, "it is started again")); /* its log has ended */
        CU_ASSERT_EQUAL(raw_connect(&second), -ENOENT);
        CU_ASSERT_EQUAL(daemon_stop(&second), EXIT_UNLOCKED);
    }
}

static void others_go_on(void)
{
    CU_ASSERT_TRUE(bystanders_go_on(&others));
}

static bool start(void)
{
    /* All operations go through the daemon, because libpwc would refuse boards and pairs without
     * seals. */
    const char *const arguments[] = {"--direct", "off", NULL};

    setenv("PWCD_ODD", "unsealed", 1);
    if (daemon_start(&d, program, arguments) < 0)
        return false;
    return bystanders_start_on(&others, d.socket, "bystanders") == 0 && look_holdings(&d, &quiet);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"session", session},   {"segments", segments},
                           {"team areas", areas},  {"unwatched", unwatched},
                           {"unlocked", unlocked}, {"others go on", others_go_on},
                           CU_TEST_INFO_NULL};
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    program = argv[1];
    if (start())
        failed = suite_run("faults", tests);
    if (others.runs && !bystanders_stop(&others))
        failed = 1;
    return daemon_end(&d, failed);
}

/* The hostile client of hostile_client.h, and the clients beside it. */
#include "tests/control/lib/hostile_client.h"

#include <errno.h>
#include <signal.h>
#include "tests/lib/bystanders.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/look.h"

#define JOB "hostile"

/* Set by hostile_main before the tests run. */
static struct daemon d;
static struct bystanders others;
static struct raw_session neighbour;
static struct holdings quiet; /* holdings of the daemon without the hostile client */

void hostile_open(struct raw_session *s)
{
    CU_ASSERT_EQUAL_FATAL(raw_session_open(s, &d, JOB, 0, 2), 0);
    atomic_store(&s->shared->handlers[0], 1); /* has a handler, for messages to itself */
}

void hostile_quarantined(struct raw_session *s, const char *reason)
{
    struct answer last;

    CU_ASSERT_EQUAL(ask_nothing(s->socket, &last), -EPROTO);
    CU_ASSERT_STRING_EQUAL(last.text, reason);
    CU_ASSERT_TRUE(raw_hangs_up(s->socket));
    CU_ASSERT_EQUAL(atomic_load(&s->shared->state), SESSION_QUARANTINED);
    CU_ASSERT_TRUE(look_quarantined(&d, JOB, 0, reason));
    raw_session_close(s);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

void hostile_event(struct raw_session *s, int status)
{
    struct event_record event = {0};

    CU_ASSERT_EQUAL_FATAL(raw_local_event(s, &event), 1);
    CU_ASSERT_EQUAL(event.status, status);
    CU_ASSERT_EQUAL(event.kind, EVENT_LOCAL);
    CU_ASSERT_EQUAL(atomic_load(&s->shared->state), SESSION_LIVE);
}

void hostile_served(struct raw_session *s)
{
    struct submit_record put = raw_put(s);

    raw_submit(s, &put, sizeof(put), put.size);
    hostile_event(s, 0);
}

void hostile_leave(struct raw_session *s)
{
    raw_session_close(s);
    CU_ASSERT_TRUE(look_returns_to(&d, &quiet));
}

const struct raw_session *hostile_neighbour(void)
{
    return &neighbour;
}

bool hostile_others_served(void)
{
    return raw_is_served(&d);
}

void hostile_others_go_on(void)
{
    hostile_served(&neighbour);
    CU_ASSERT_TRUE(bystanders_go_on(&others));
}

static bool start(const char *program)
{
    if (daemon_start(&d, program, NULL) < 0)
        return false;
    return bystanders_start_on(&others, d.socket, "bystanders") == 0 &&
           raw_session_open(&neighbour, &d, JOB, 1, 2) == 0 && look_holdings(&d, &quiet);
}

int hostile_main(int argc, char **argv, const char *name, CU_TestInfo *tests)
{
    int failed = 1;

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    if (start(argv[1]))
        failed = suite_run(name, tests);
    raw_session_close(&neighbour);
    if (others.runs && !bystanders_stop(&others))
        failed = 1;
    return daemon_end(&d, failed);
}

/*
 * Accounts of users: the control thread's time is charged to the user that it is spent for, and a
 * user that has spent too much waits until it has paid, unless it is alone.
 */
#include <string.h>
#include "daemon/control/clients/accepts.h"
#include "daemon/control/clients/account.h"
#include "daemon/control/clients/client.h"
#include "daemon/control/clients/turns.h"
#include "shm_ring/clock.h"
#include "tests/suite.h"

#define MS UINT64_C(1000000)

static struct control control;
static struct quota_user busy, other;
static struct client asking;

static void begin(void)
{
    memset(&control, 0, sizeof(control));
    uv_loop_init(&control.loop);
    uv_timer_init(&control.loop, &control.paying);
    control.paying.data = &control;
    other = (struct quota_user){.uid = 2, .held[QUOTA_CLIENTS] = 1};
    busy = (struct quota_user){.uid = 1, .account.paid_at = clock_ns(), .next = &other};
    control.users = &busy;
    asking = (struct client){.control = &control, .user = &busy};
}

static void end(void)
{
    uv_close((uv_handle_t *)&control.paying, NULL);
    uv_run(&control.loop, UV_RUN_DEFAULT);
    CU_ASSERT_EQUAL(uv_loop_close(&control.loop), 0);
}

static void compute(uint64_t ns)
{
    uint64_t from = clock_of(CLOCK_THREAD_CPUTIME_ID);

    while (clock_of(CLOCK_THREAD_CPUTIME_ID) - from < ns)
        continue;
}

/* Time between a begin and its end is charged to the user, except for the time of inner calls for
 * another user. */
static void charged(void)
{
    struct account *outer, *inner;

    begin();
    compute(MS);
    outer = account_begin(&control, &busy.account);
    compute(2 * MS);
    inner = account_begin(&control, &other.account);
    compute(3 * MS);
    account_end(&control, inner);
    compute(MS);
    account_end(&control, outer);
    compute(MS);
    CU_ASSERT(busy.account.spent >= 3 * MS && busy.account.spent < 4 * MS);
    CU_ASSERT(other.account.spent >= 3 * MS && other.account.spent < 4 * MS);
    CU_ASSERT_PTR_NULL(control.charged);
    end();
}

/* An eighth of the time that passes is paid, to the last nanosecond, and never more than was
 * spent. */
static void paid(void)
{
    uint64_t from;

    begin();
    from = busy.account.paid_at;
    busy.account.spent = 10 * MS;
    CU_ASSERT_EQUAL(account_spent(&busy.account, from + 8 * MS), 9 * MS);
    CU_ASSERT_EQUAL(account_spent(&busy.account, from + 8 * MS), 9 * MS);
    CU_ASSERT_EQUAL(account_spent(&busy.account, from + 80 * MS - 8), 1);
    CU_ASSERT_EQUAL(account_spent(&busy.account, from + 1000 * MS), 0);
    end();
}

/* Only clients of other users count, not connections that only look. */
static void alone(void)
{
    begin();
    busy.account.spent = ACCOUNT_MOST;
    CU_ASSERT_FALSE(turns_may(&asking));
    turns_leave(&asking);
    other.held[QUOTA_CLIENTS] = 0;
    busy.held[QUOTA_CLIENTS] = 1;
    CU_ASSERT_TRUE(turns_may(&asking));
    end();
}

static void turn_over(uv_check_t *check)
{
    (void)check;
    while (turns_next(&control))
        continue;
    if (!asking.in_line)
        uv_stop(&control.loop);
}

static void too_late(uv_timer_t *timer)
{
    (void)timer;
}

static void wake(uv_async_t *async)
{
    (void)async;
}

/* A request of a user that has spent too much stays in line until the debt is paid. The loop, which
 * has nothing else to do, wakes up for that request, also where its timer is set for another user's
 * longer debt. Time below the bound that a user may spend ahead makes no request wait. */
static void waits_and_goes_on(void)
{
    begin();
    control.turn_end.data = &control;
    uv_async_init(&control.loop, &control.resume, wake);
    uv_check_init(&control.loop, &control.turn_end);
    uv_check_start(&control.turn_end, turn_over);
    busy.account.spent = ACCOUNT_AHEAD;
    CU_ASSERT_TRUE(turns_may(&asking));
    CU_ASSERT_EQUAL(uv_timer_start(&control.paying, too_late, 3600 * 1000, 0), 0);
    busy.account = (struct account){.spent = ACCOUNT_AHEAD + 5 * MS, .paid_at = clock_ns()};
    CU_ASSERT_FALSE(turns_may(&asking));
    CU_ASSERT_TRUE(asking.in_line);
    uv_run(&control.loop, UV_RUN_DEFAULT);
    CU_ASSERT_FALSE(asking.in_line);
    CU_ASSERT(account_spent(&busy.account, clock_ns()) <= ACCOUNT_AHEAD);
    uv_close((uv_handle_t *)&control.turn_end, NULL);
    uv_close((uv_handle_t *)&control.resume, NULL);
    end();
}

/* A wait is never much longer than a second, whatever the user has spent before, alone or not. */
static void no_long_wait(void)
{
    struct account *before;

    begin();
    busy.account.spent = ACCOUNT_MOST - 1;
    before = account_begin(&control, &busy.account);
    compute(MS);
    account_end(&control, before);
    CU_ASSERT_EQUAL(busy.account.spent, ACCOUNT_MOST);
    CU_ASSERT(account_wait_ms(&busy.account) <= 1001);
    other.held[QUOTA_CLIENTS] = 0;
    CU_ASSERT_TRUE(turns_may(&asking));
    CU_ASSERT_EQUAL(busy.account.spent, 0);
    end();
}

/* A user that hangs up and connects again still has its debt; a user without debt is forgotten. */
static void remembered(void)
{
    struct quota_user *u;

    begin();
    control.users = NULL;
    control.user_connections = 1;
    u = quota_enter(&control, 7);
    CU_ASSERT_PTR_NOT_NULL_FATAL(u);
    u->account.spent = ACCOUNT_MOST;
    quota_leave(&(struct client){.control = &control, .user = u});
    CU_ASSERT_PTR_EQUAL(control.users, u);
    CU_ASSERT_PTR_EQUAL(quota_enter(&control, 7), u);
    CU_ASSERT(u->account.spent > 0);
    u->account.spent = 0;
    quota_leave(&(struct client){.control = &control, .user = u});
    CU_ASSERT_PTR_NULL(control.users);
    end();
}

/* The fifth connection of a millisecond waits for the next one. */
static void accepts(void)
{
    struct accepts a = {0};

    for (uint64_t now = 1; now < 4; now++) {
        for (uint32_t i = 0; i < 4; i++) {
            CU_ASSERT_TRUE(accepts_more(&a, now));
            CU_ASSERT_TRUE(accepts_more(&a, now)); /* the question itself does not count */
            a.count++;
        }
        CU_ASSERT_FALSE(accepts_more(&a, now));
        CU_ASSERT_FALSE(accepts_more(&a, now));
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"time is charged", charged},
                           {"time is paid", paid},
                           {"a user that is alone", alone},
                           {"waits, and goes on", waits_and_goes_on},
                           {"no long wait", no_long_wait},
                           {"remembered until it has paid", remembered},
                           {"accepts", accepts},
                           CU_TEST_INFO_NULL};

    return suite_run("account", tests);
}

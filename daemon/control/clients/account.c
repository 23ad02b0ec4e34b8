/* Charges the thread's time to accounts (account.h). Thread: control. */
#include "daemon/control/clients/account.h"

#include <time.h>
#include "daemon/control/control.h"
#include "shm_ring/clock.h"

enum { NS_A_MS = 1000000 };

static void charge(struct account *a, uint64_t ns)
{
    a->spent = a->spent + ns < ACCOUNT_MOST ? a->spent + ns : ACCOUNT_MOST;
}

/* Charges the processor time since the last call. Time that the hypervisor or another program takes
 * is charged to no account. */
static void settle(struct control *control)
{
    uint64_t now = clock_of(CLOCK_THREAD_CPUTIME_ID);

    if (control->charged)
        charge(control->charged, now - control->charged_from);
    control->charged_from = now;
}

struct account *account_begin(struct control *control, struct account *a)
{
    struct account *before = control->charged;

    if (a != before)
        settle(control);
    control->charged = a;
    return before;
}

void account_end(struct control *control, struct account *before)
{
    (void)account_begin(control, before);
}

void account_forget(struct control *control, const struct account *a)
{
    if (control->charged == a)
        control->charged = NULL;
}

uint64_t account_spent(struct account *a, uint64_t now_ns)
{
    uint64_t paid_ns = (now_ns - a->paid_at) / ACCOUNT_SHARE;

    a->spent = a->spent > paid_ns ? a->spent - paid_ns : 0;
    a->paid_at = now_ns;
    return a->spent;
}

void account_forgive(struct account *a)
{
    a->spent = 0;
}

uint64_t account_wait_ms(struct account *a)
{
    uint64_t spent = a->spent > ACCOUNT_AHEAD ? account_spent(a, clock_ns()) : 0;

    return spent > ACCOUNT_AHEAD ? 1 + (spent - ACCOUNT_AHEAD) * ACCOUNT_SHARE / NS_A_MS : 0;
}

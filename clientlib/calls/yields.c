/* Judges yields (yields.h). Thread: the one that owns the context. */
#include "clientlib/calls/yields.h"

#include <sched.h>
#include <sys/resource.h>
#include "clientlib/attach/deadline.h"

enum {
    ASKED_FIRST = 8,  /* yields about which the kernel is asked at first */
    ASKED_EVERY = 64, /* later, one of so many */
    FACTOR = 3,       /* between a lone and a shared yield, where only one of them was seen */
};

/* How often this thread has lost the processor to another thread. */
static int64_t switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw + usage.ru_nivcsw : 0;
}

/* A shorter time counts at once, a longer one by an eighth: the processor may become slower. */
static void learn(int64_t *known, int64_t took)
{
    *known = *known == 0 || took < *known ? took : *known + (took - *known) / 8;
}

static bool is_short(const struct yields *y, int64_t took)
{
    if (y->lone_ns == 0)
        return took < y->shared_ns / FACTOR;
    if (y->shared_ns == 0)
        return took < y->lone_ns * FACTOR;
    return took < (y->lone_ns + y->shared_ns) / 2;
}

bool yields_in_vain(struct yields *y)
{
    bool asks = y->count < ASKED_FIRST || y->count % ASKED_EVERY == 0;
    int64_t before = asks ? switches() : 0;
    int64_t begun = clock_now();
    int64_t took;

    y->count++;
    sched_yield();
    took = clock_now() - begun;
    if (!asks)
        return is_short(y, took);
    if (switches() != before) {
        learn(&y->shared_ns, took);
        return false;
    }
    learn(&y->lone_ns, took);
    return true;
}

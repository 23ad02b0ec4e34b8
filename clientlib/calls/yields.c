/* Judges yields (yields.h). Thread: the one that owns the context. */
#include "clientlib/calls/yields.h"

#include <sched.h>
#include <sys/resource.h>
#include "clientlib/attach/deadline.h"

enum {
    ASKED_FIRST = 8,  /* yields about which the kernel is asked at first */
    ASKED_EVERY = 64, /* later, one of so many */
    FACTOR = 3,       /* a yield that takes so many times as long as a lone one is not lone */
};

/* How often this thread has lost the processor to another thread. */
static int64_t switches(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw + usage.ru_nivcsw : 0;
}

/* A shorter time counts at once. A longer one adds an eighth at most: the processor may become
 * slower, but a thread that computes may also have had a whole slice. */
static void learn(int64_t *known, int64_t took)
{
    if (*known == 0 || took < *known)
        *known = took;
    else
        *known += (took < *known * 2 ? took - *known : *known) / 8;
}

static bool is_short(const struct yields *y, int64_t took)
{
    int64_t limit = y->lone_ns != 0 ? y->lone_ns * FACTOR : y->shared_ns / FACTOR;
    int64_t middle = (y->lone_ns + y->shared_ns) / 2;

    /* The only shared yield that was seen may have been a slice: then the middle is too late. */
    return took < (y->lone_ns != 0 && y->shared_ns != 0 && middle < limit ? middle : limit);
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

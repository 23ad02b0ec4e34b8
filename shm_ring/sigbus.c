/*
 * Owns the process's SIGBUS handler and the table of ranges that it may replace by zero pages.
 *
 * The table is the only global state here: a signal's disposition belongs to the process, and its
 * handler gets no context.
 *
 * Thread: the handler runs on the thread that faulted; add, hit, any and remove on any thread.
 */
#include "shm_ring/sigbus.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#define SLOT_FREE    ((uintptr_t)0)
#define SLOT_CLAIMED ((uintptr_t)1) /* being filled: no mapping starts here */

/* A slot of the table. The thread that claimed the slot fills and frees it; the handler only reads
 * it, and counts. */
struct range {
    _Atomic uintptr_t base; /* SLOT_FREE, SLOT_CLAIMED, or the start of a live range */
    _Atomic size_t size;
    _Atomic uint32_t faults;
};

static struct range ranges[SIGBUS_RANGES_MAX];
static _Atomic uint64_t faults_total;
static _Atomic uint32_t first_free; /* slots before this one are rarely free */

static_assert(ATOMIC_POINTER_LOCK_FREE == 2 && ATOMIC_LLONG_LOCK_FREE == 2,
              "the handler may not meet a lock");

/* The range that holds `address`, or NULL; *base and *size belong together. */
static struct range *find_range(uintptr_t address, uintptr_t *base, size_t *size)
{
    for (uint32_t i = 0; i < SIGBUS_RANGES_MAX; i++) {
        struct range *r = &ranges[i];

        *base = atomic_load(&r->base);
        *size = atomic_load(&r->size);
        if (*base <= SLOT_CLAIMED || address < *base || address - *base >= *size)
            continue;
        if (atomic_load(&r->base) == *base) /* not freed and claimed again between the loads */
            return r;
    }
    return NULL;
}

static void give_up(const siginfo_t *info)
{
    signal(SIGBUS, SIG_DFL);
    if (info->si_code <= 0) /* sent, not faulted: a return would not raise it again */
        raise(SIGBUS);
}

static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
    int saved_errno = errno;
    uintptr_t base;
    size_t size;
    struct range *r =
        info->si_code <= 0 ? NULL : find_range((uintptr_t)info->si_addr, &base, &size);

    /* The pages are private and writable, so that the daemon's own stores into this client's memory
     * continue as well. */
    if (r != NULL &&
        mmap((void *)base, size, PROT_READ | PROT_WRITE,
             MAP_FIXED | MAP_ANONYMOUS | MAP_PRIVATE | MAP_NORESERVE, -1, 0) != MAP_FAILED) {
        atomic_fetch_add(&r->faults, 1);
        atomic_fetch_add(&faults_total, 1);
    } else {
        give_up(info);
    }
    errno = saved_errno;
}

int sigbus_install(void)
{
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};

    sigemptyset(&action.sa_mask);
    return sigaction(SIGBUS, &action, NULL) == 0 ? 0 : -errno;
}

/* A slot from `from` on; -ENOSPC. */
static int add_from(uint32_t from, void *base, size_t size)
{
    for (uint32_t i = from; i < SIGBUS_RANGES_MAX; i++) {
        struct range *r = &ranges[i];
        uintptr_t expected = SLOT_FREE;

        if (atomic_load(&r->base) != SLOT_FREE ||
            !atomic_compare_exchange_strong(&r->base, &expected, SLOT_CLAIMED))
            continue;
        atomic_store(&r->size, size);
        atomic_store(&r->faults, 0);
        atomic_store(&r->base, (uintptr_t)base);
        return (int)i;
    }
    return -ENOSPC;
}

int sigbus_add(void *base, size_t size)
{
    uint32_t from = atomic_load(&first_free);
    int range = add_from(from, base, size);

    if (range >= 0) /* unless an earlier slot has become free meanwhile */
        (void)atomic_compare_exchange_strong(&first_free, &from, (uint32_t)range + 1);
    else
        range = add_from(0, base, size);
    return range;
}

bool sigbus_hit(int range)
{
    return atomic_load(&ranges[range].faults) != 0;
}

bool sigbus_any(uint64_t *seen)
{
    uint64_t total = atomic_load_explicit(&faults_total, memory_order_relaxed);
    bool any = total != *seen;

    *seen = total;
    return any;
}

void sigbus_remove(int range)
{
    uint32_t first = atomic_load(&first_free);

    atomic_store(&ranges[range].base, SLOT_FREE);
    while ((uint32_t)range < first &&
           !atomic_compare_exchange_weak(&first_free, &first, (uint32_t)range))
        continue;
}

/*
 * Owns nothing: arm, ring, sleep and wake on a doorbell word (doorbell.h shows the pairing).
 *
 * Thread: one sleeper and any number of wakers, in any processes that map the word.
 */
#include "shm_ring/doorbell.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif

#if defined(PWC_MUTANT_NO_FENCE)

/* A broken doorbell that the litmus test must catch: only the compiler is fenced, not the
 * processor. */
static void store_then_fence(struct doorbell_word *word, uint32_t mode)
{
    atomic_store_explicit(&word->armed, mode, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

static uint32_t fence_then_load(struct doorbell_word *word)
{
    atomic_signal_fence(memory_order_seq_cst);
    return atomic_load_explicit(&word->armed, memory_order_relaxed);
}

void doorbell_fence(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

#elif defined(THREAD_SANITIZER)

/* ThreadSanitizer does not understand fences. Two read-modify-writes of one word give the same
 * order. */
static void store_then_fence(struct doorbell_word *word, uint32_t mode)
{
    (void)atomic_exchange_explicit(&word->armed, mode, memory_order_seq_cst); /* C */
}

static uint32_t fence_then_load(struct doorbell_word *word)
{
    return atomic_fetch_or_explicit(&word->armed, 0, memory_order_seq_cst); /* D */
}

/* A sleeper in a build with ThreadSanitizer never calls membarrier, so it does not leave the call
 * out. */
void doorbell_fence(void)
{
}

#else

static void store_then_fence(struct doorbell_word *word, uint32_t mode)
{
    atomic_store_explicit(&word->armed, mode, memory_order_relaxed); /* C */
    atomic_thread_fence(memory_order_seq_cst);                       /* C */
}

static uint32_t fence_then_load(struct doorbell_word *word)
{
    atomic_thread_fence(memory_order_seq_cst);                       /* D */
    return atomic_load_explicit(&word->armed, memory_order_relaxed); /* D */
}

void doorbell_fence(void)
{
#if defined(PWC_MUTANT_NO_FENCE_S)
    atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_seq_cst); /* S */
#endif
}

#endif

void doorbell_arm(struct doorbell_word *word, uint32_t mode)
{
    store_then_fence(word, mode);
}

void doorbell_announce(struct doorbell_word *word, uint32_t mode)
{
    atomic_store_explicit(&word->armed, mode, memory_order_relaxed); /* C */
}

#if defined(PWC_MUTANT_NO_FENCE)

int doorbell_fence_others(void)
{
    atomic_signal_fence(memory_order_seq_cst);
    return 0;
}

int doorbell_register(void)
{
    return 0;
}

#elif defined(THREAD_SANITIZER)

/* ThreadSanitizer does not understand membarrier either. */
int doorbell_fence_others(void)
{
    return -ENOSYS;
}

int doorbell_register(void)
{
    return -ENOSYS;
}

#else

int doorbell_fence_others(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0 ? 0 : -errno; /* C */
}

int doorbell_register(void)
{
    int rc = (int)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);

    return rc == 0 ? 0 : -errno;
}

#endif

void doorbell_begin_fenced(_Atomic uint32_t *fenced)
{
    atomic_store_explicit(fenced, 1, memory_order_release); /* S */
}

void doorbell_end_fenced(_Atomic uint32_t *fenced)
{
    atomic_store_explicit(fenced, 0, memory_order_relaxed); /* S */
    doorbell_fence();                                       /* S */
}

bool doorbell_is_fenced(const _Atomic uint32_t *fenced)
{
    return atomic_load_explicit(fenced, memory_order_acquire) == 1; /* S */
}

bool doorbell_stands(const struct doorbell_word *word, uint32_t mode)
{
    return atomic_load_explicit(&word->armed, memory_order_relaxed) == mode;
}

void doorbell_disarm(struct doorbell_word *word)
{
    /* No order needed: a waker that still sees the arm only wakes once too often. */
    atomic_store_explicit(&word->armed, DOORBELL_AWAKE, memory_order_relaxed);
}

/* Takes an arm that this waker has seen. */
static uint32_t take(struct doorbell_word *word)
{
    /* Several wakers may have seen the arm: the exchange gives it to one of them. */
    uint32_t mode = atomic_exchange_explicit(&word->armed, DOORBELL_AWAKE, memory_order_acq_rel);

    return mode == DOORBELL_FUTEX || mode == DOORBELL_FD ? mode : DOORBELL_AWAKE;
}

uint32_t doorbell_ring(struct doorbell_word *word)
{
    return fence_then_load(word) == DOORBELL_AWAKE ? DOORBELL_AWAKE : take(word);
}

uint32_t doorbell_ring_unfenced(struct doorbell_word *word)
{
    uint32_t armed;

    atomic_signal_fence(memory_order_seq_cst);                        /* D */
    armed = atomic_load_explicit(&word->armed, memory_order_relaxed); /* D */
    return armed == DOORBELL_AWAKE ? DOORBELL_AWAKE : take(word);
}

int doorbell_sleep(struct doorbell_word *word, int64_t timeout_ns)
{
    struct timespec limit = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};

    if (syscall(SYS_futex, &word->armed, FUTEX_WAIT, DOORBELL_FUTEX, timeout_ns < 0 ? NULL : &limit,
                NULL, 0) == 0)
        return 0;
    return errno == EAGAIN ? 0 : -errno; /* EAGAIN: a waker rang before we slept */
}

void doorbell_wake(struct doorbell_word *word)
{
    /* Wakes one sleeper. A client may put more sleepers on this word: they cost the daemon nothing
     * and are not woken. */
    (void)syscall(SYS_futex, &word->armed, FUTEX_WAKE, 1, NULL, NULL, 0);
}

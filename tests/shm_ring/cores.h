/* Pins the two sides of a race to two processors. */
#ifndef PWC_TESTS_SHM_RING_CORES_H
#define PWC_TESTS_SHM_RING_CORES_H

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

/* The first two processors that this process may use; false where there is only one. */
static inline bool cores_find_two(int cores[2])
{
    cpu_set_t set;
    int found = 0;

    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return false;
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++)
        if (CPU_ISSET(i, &set))
            cores[found++] = i;
    return found == 2;
}

static inline void cores_pin(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

/* One turn of a waiting loop: spins, and yields now and then in case the other side has no core. */
static inline void cores_spin(unsigned *turns)
{
    if ((++*turns & 0xfff) == 0)
        sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

#endif

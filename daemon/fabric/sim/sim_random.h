/*
 * A small source of random numbers for simulations: splitmix64 (Steele, Lea and Flood 2014). Its
 * state is one word, so a run can be repeated from its seed. Not for secrets.
 *
 * Thread: the thread that owns the struct.
 */
#ifndef PWC_FABRIC_SIM_RANDOM_H
#define PWC_FABRIC_SIM_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_next(struct sim_random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A number below `limit` (0 where `limit` is 0). The small bias of the multiplication does not
 * matter here. */
static inline uint64_t sim_random_below(struct sim_random *r, uint64_t limit)
{
    return (uint64_t)((unsigned __int128)sim_random_next(r) * limit >> 64);
}

/* A value from `low` to `high`, both included. */
static inline uint64_t sim_random_range(struct sim_random *r, uint64_t low, uint64_t high)
{
    return low + sim_random_below(r, high - low + 1);
}

static inline bool sim_random_chance(struct sim_random *r, uint32_t per_mille)
{
    return sim_random_below(r, 1000) < per_mille;
}

static inline void sim_random_fill(struct sim_random *r, void *to, size_t size)
{
    uint8_t *bytes = to;

    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)sim_random_next(r);
}

#endif

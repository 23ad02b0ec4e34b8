/*
 * The simulation's timeline: a binary heap of entries, by time and then by order of entry.
 *
 * Thread: the owner of the sim_world that embeds it.
 */
#ifndef PWC_FABRIC_SIM_TIMELINE_H
#define PWC_FABRIC_SIM_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

struct sim_entry {
    uint64_t time;
    uint64_t order; /* filled in by sim_timeline_add */
    uint32_t what;
    uint32_t subject; /* an operation, or a node */
    uint64_t a, b;
};

struct sim_timeline {
    struct sim_entry *entries;
    uint32_t count, room;
    uint64_t entered;
};

/* Adds an entry. -ENOMEM. */
int sim_timeline_add(struct sim_timeline *t, const struct sim_entry *entry);
/* Time of the first entry; UINT64_MAX: there is none. */
uint64_t sim_timeline_next(const struct sim_timeline *t);
/* Removes the first entry into *out, if its time is not after `now`. */
bool sim_timeline_take(struct sim_timeline *t, uint64_t now, struct sim_entry *out);
void sim_timeline_free(struct sim_timeline *t);

#endif

/*
 * Scenarios of test_crash in which the victim also dies within the calls of the control thread:
 * clients, contexts, segments, regions and binds that come and go, peers that go down, come up and
 * are given up. Control repeats calls that were not answered, and in the end nothing is left over.
 */
#ifndef PWC_TESTS_ENGINE_CRASH_CONTROL_H
#define PWC_TESTS_ENGINE_CRASH_CONTROL_H

#include <stddef.h>
#include "tests/engine/world/paths/driver.h"
#include "tests/engine/world/messages/message_flood.h"

struct crash_scenario {
    const char *name;
    void (*run)(struct driver *d);
    uint64_t ordered_write_max;
    uint32_t protocol;
    uint32_t rails;
    void (*messages)(struct flood *f); /* runs a scenario of messages, instead of `run` */
    uint32_t nodes;                    /* nodes for the four clients; 0: two */
};

extern const struct crash_scenario crash_control_scenarios[];
extern const size_t crash_control_count;
extern const struct crash_scenario crash_team_scenarios[]; /* crash_teams.c */
extern const size_t crash_team_count;
extern const struct crash_scenario crash_offload_scenarios[]; /* crash_offloads.c */
extern const size_t crash_offload_count;

#endif

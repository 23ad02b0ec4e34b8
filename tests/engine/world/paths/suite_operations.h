/*
 * The suite of the operations' meaning: what put, get and notification do, over any path.
 *
 * Each case gets a fresh path, drives it, and checks every event and byte against the model.
 *
 * Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_SUITE_OPERATIONS_H
#define PWC_TESTS_ENGINE_SUITE_OPERATIONS_H

#include <stddef.h>
#include "tests/engine/world/paths/driver.h"

struct suite_case {
    const char *name;
    void (*run)(struct driver *s);
    unsigned needs; /* abilities that the case needs, enum path_ability */
};

extern const struct suite_case suite_cases[];
extern const size_t suite_case_count;

/* Runs the case. Returns NULL when it holds on this path, or a text that says what does not. `s` is
 * room that the caller gives. */
const char *suite_run(struct driver *s, const struct suite_case *c, const struct path *path,
                      uint64_t seed);

#endif

/*
 * The part of the suite (suite_operations.h) about lives: flushes, several contexts of a client,
 * binds that are undone, contexts that close. Thread: one.
 */
#ifndef PWC_TESTS_ENGINE_SUITE_LIVES_H
#define PWC_TESTS_ENGINE_SUITE_LIVES_H

#include "tests/engine/world/paths/driver.h"

void lives_flush(struct driver *s);
void lives_flush_held(struct driver *s);
void lives_flush_breaks(struct driver *s);
void lives_flush_dead(struct driver *s);
void lives_flush_lost(struct driver *s);
void lives_contexts(struct driver *s);
void lives_context_full(struct driver *s);
void lives_unbind(struct driver *s);
void lives_unbind_often(struct driver *s);
void lives_use_after_unbind(struct driver *s);
void lives_close_origin(struct driver *s);
void lives_close_target(struct driver *s);
void lives_close_spill(struct driver *s);
void lives_close_often(struct driver *s);

#endif

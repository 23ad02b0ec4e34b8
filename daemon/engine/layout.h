/*
 * Where the engine's tables stand in the arena and in private memory, by the configuration. Any
 * thread may call these functions, which keep no state.
 */
#ifndef PWC_ENGINE_LAYOUT_H
#define PWC_ENGINE_LAYOUT_H

#include "daemon/engine/state/state.h"

/* Sets the engine's pointers and returns the bytes needed; with base NULL it only measures. */
uint64_t arena_layout(struct engine *e, const struct engine_config *c, void *base);
uint64_t private_layout(struct engine *e, const struct engine_config *c, void *base);
/* A hash of all counts and entry sizes: where it differs, an arena has another layout. */
uint64_t layout_fingerprint(const struct engine_config *c);
uint32_t table_size(const struct engine_config *c, enum table table);
/* Bytes of the longest block of an active message. */
uint32_t message_longest(const struct engine_config *c);

#endif

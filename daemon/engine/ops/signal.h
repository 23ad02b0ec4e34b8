/* The block of a put with signal (proto/session_abi.h), submitted, staged and received.
 * Thread: the progress thread. */
#ifndef PWC_ENGINE_SIGNAL_H
#define PWC_ENGINE_SIGNAL_H

#include <stdbool.h>
#include <string.h>
#include "daemon/engine/engine.h"
#include "proto/session_abi.h"
#include "proto/word_abi.h"

/* Whether the code is one of the two operations of signals. */
static inline bool signal_code_valid(uint8_t code)
{
    return code == word_code(WORD_SET, WORD_U64) || code == word_code(WORD_ADD, WORD_U64);
}

/* Fills in the origin's words of a block that is being staged. */
static inline void signal_fill(const struct engine_key *key, void *block)
{
    struct signal s;

    memcpy(&s, block, sizeof(s));
    s.slot = key->slot;
    s.generation = key->generation;
    memset(s.unused, 0, sizeof(s.unused));
    memcpy(block, &s, sizeof(s));
}

#endif

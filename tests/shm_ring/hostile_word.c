/* word.c compiled so that another writer seems to change the word before each try: every compare
 * and swap fails. */
#include "tests/shm_ring/hostile_word.h"

#include <stdbool.h>

static uint32_t tries;

/* Replaces the compiler's function: the word has changed meanwhile, so the swap fails. */
#define __atomic_compare_exchange_n(at, expected, desired, weak, success, failure)                 \
    (tries++, (void)(desired), *(expected) = ++*(at), false)
#define word_apply     hostile_word_apply
#define word_apply_all hostile_word_apply_all
#include "shm_ring/word.c"

uint32_t hostile_word_tries(void)
{
    uint32_t count = tries;

    tries = 0;
    return count;
}

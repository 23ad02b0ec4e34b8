/* Variants of word_apply and word_apply_all in which each compare and swap fails (hostile_word.c).
 * One thread. */
#ifndef PWC_TESTS_HOSTILE_WORD_H
#define PWC_TESTS_HOSTILE_WORD_H

#include <stdint.h>

int hostile_word_apply(void *at, uint8_t code, const void *operands, void *fetched);
uint32_t hostile_word_apply_all(void *at, uint8_t code, uint32_t count, const void *operands,
                                void *fetched);
/* Tries since the last call. */
uint32_t hostile_word_tries(void);

#endif

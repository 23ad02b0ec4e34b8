/* Finds the known word that is nearest to an unknown one. Thread: any. */
#ifndef PWC_CONTROL_NEAREST_H
#define PWC_CONTROL_NEAREST_H

#define NEAREST_WORD_MAX 32u

/* How many letters to change, add, drop or swap with their neighbour to make `b` out of `a`. Where
 * a word has more than NEAREST_WORD_MAX letters, the result is NEAREST_WORD_MAX + 1. */
unsigned nearest_distance(const char *a, const char *b);

/* Puts `candidate` into *nearest, and its distance into *distance, if it is nearer to `word` than
 * *nearest is, and no more than a third of the letters differ. *nearest is NULL at first. */
void nearest_try(const char *word, const char *candidate, const char **nearest, unsigned *distance);

#endif

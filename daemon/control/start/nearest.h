/* Finds the known word that is nearest to an unknown one. Thread: any. */
#ifndef PWC_CONTROL_NEAREST_H
#define PWC_CONTROL_NEAREST_H

#define NEAREST_WORD_MAX 32u

/* How many letters to change, add, drop or swap with their neighbour to make `b` out of `a`. A word
 * of more than NEAREST_WORD_MAX letters: a larger number than that. */
unsigned nearest_distance(const char *a, const char *b);

/* Puts `candidate` into *nearest, and its distance into *distance, if it is nearer to `word` than
 * the present one and near enough to be meant: a third of the letters. Begin with *nearest NULL. */
void nearest_try(const char *word, const char *candidate, const char **nearest, unsigned *distance);

#endif

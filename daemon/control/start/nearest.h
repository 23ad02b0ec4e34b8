/* The word that was meant by one that is not known. Thread: any. */
#ifndef PWC_CONTROL_NEAREST_H
#define PWC_CONTROL_NEAREST_H

#define NEAREST_WORD_MAX 32u

/* Letters to change, add, drop or swap with a neighbour to make `b` of `a`; each of at most
 * NEAREST_WORD_MAX letters, else a number larger than that. */
unsigned nearest_distance(const char *a, const char *b);

/* Keeps `candidate` in *nearest, at *distance, where it is nearer to `word` than what stands there,
 * and near enough to be meant: one letter of three. Begin with *nearest NULL. */
void nearest_try(const char *word, const char *candidate, const char **nearest, unsigned *distance);

#endif

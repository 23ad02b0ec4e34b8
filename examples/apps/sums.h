/*
 * A reduction over a tree of ranks with up to 16 children each: vectors of numbers are added up on
 * their way to rank 0. When all is there, rank 0 releases the others down the same tree, and the
 * next round begins.
 *
 *                 0
 *          /    /   \    \
 *         1    2 ... 15   16        17 ranks: one stage; 33: two, 17 to 32 are children of 1
 *      / ... \
 *     17 ... 32
 */
#ifndef EXAMPLES_APPS_SUMS_H
#define EXAMPLES_APPS_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#define SUMS_ARITY 16u

struct sums {
    uint32_t rank, ranks;
    uint32_t count;    /* numbers in a vector */
    uint32_t parent;   /* of all but rank 0 */
    uint32_t first;    /* rank of the first child; the others have the ranks after it */
    uint32_t children; /* 0 at leaves */
    uint32_t place;    /* among its parent's children */
    double *own;       /* a vector; the caller lends it, and `inbox` */
    double *inbox;     /* SUMS_ARITY vectors: a place for each child's */
};

/* `memory` holds sums_bytes(count) bytes: inbox, then own. */
uint64_t sums_bytes(uint32_t count);
void sums_open(struct sums *sums, uint32_t rank, uint32_t ranks, uint32_t count, double *memory);

/* Writes this rank's part of the sum of a round into `own`. */
void sums_contribute(struct sums *sums, uint32_t round);

/* Adds the inbox to `own`, when the vectors of all children are there. */
void sums_add(struct sums *sums);

/* On rank 0: whether `own` is what a serial loop over all ranks gives. Prints a difference. */
bool sums_check(const struct sums *sums, uint32_t round);

#endif

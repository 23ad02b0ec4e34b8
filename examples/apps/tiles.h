/*
 * The Cholesky factorization A = L * L^T of a matrix in tiles of 32 x 32, left-looking: which tiles
 * a rank computes, and which ranks need them.
 *
 *            k=0   1    2    3
 *     m=0   +----+                      tile (m,k), with k up to m, becomes that tile of L;
 *           | D  |                      D: diagonal, from (m,0) to (m,m-1)
 *     m=1   +----+----+                 P: panel, from (m,0) to (m,k-1) and (k,0) to (k,k)
 *           | P  | D  |
 *     m=2   +----+----+----+            row m is the work of rank m mod ranks; so a panel tile
 *           | P  | P  | D  |            needs from others what stands in row k, and every tile
 *     m=3   +----+----+----+----+       but those of the last row goes to all ranks
 *           | P  | P  | P  | D  |
 *           +----+----+----+----+
 *
 * Rounds alternate between two copies of the tiles. A rank ends a round when it has every tile that
 * is sent in this round. By then all other ranks have begun the round, and have ended the previous
 * one: so no rank still reads a place where a tile of the next round is put.
 */
#ifndef EXAMPLES_APPS_TILES_H
#define EXAMPLES_APPS_TILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TILE_SIDE  32u
#define TILE_CELLS (TILE_SIDE * TILE_SIDE)
#define TILE_BYTES (TILE_CELLS * sizeof(double))

struct tiles {
    uint32_t rank, ranks;
    uint32_t rows;    /* of tiles, more than `ranks` */
    uint32_t round;   /* the round that is being computed */
    uint32_t missing; /* tiles of this round that others still have to send */
    double *memory;   /* two copies of all tiles; lent */
    double *first;    /* first column of tiles of the matrix, not yet factored; owned */
    uint32_t *there;  /* by tag: the last round whose tile is there, plus 1; owned */
};

/* A tile's number in `memory`, which includes the copy; also the tag with which the tile is sent.
 */
uint32_t tiles_tag(const struct tiles *tiles, uint32_t m, uint32_t k);
uint32_t tiles_tags(const struct tiles *tiles);               /* how many there are */
uint32_t tiles_copy(const struct tiles *tiles, uint32_t tag); /* 0 or 1: the copy with this tile */
double *tiles_at(const struct tiles *tiles, uint32_t tag);

static inline uint32_t tiles_owner(const struct tiles *tiles, uint32_t m)
{
    return m % tiles->ranks;
}

/* `memory` holds tiles_bytes(rows) bytes. False without memory, or where rows are too few. */
uint64_t tiles_bytes(uint32_t rows);
bool tiles_open(struct tiles *tiles, uint32_t rank, uint32_t ranks, uint32_t rows, double *memory);
void tiles_close(struct tiles *tiles);

void tiles_begin(struct tiles *tiles, uint32_t round);

/* Notes that the tile of another rank with this tag is in its place. Returns its owner. */
uint32_t tiles_arrived(struct tiles *tiles, uint32_t tag);
bool tiles_there(const struct tiles *tiles, uint32_t m, uint32_t k);

/* Both compute a tile of this rank, when all tiles that it needs are there, and return its tag. */
uint32_t tiles_diagonal(struct tiles *tiles, uint32_t k);
uint32_t tiles_panel(struct tiles *tiles, uint32_t m, uint32_t k);

/*
 * The ranks to which this one sends a tile of `owner`: two at most, so that tiles spread along a
 * binary tree whose root is the owner. Returns how many.
 */
uint32_t tiles_children(const struct tiles *tiles, uint32_t owner, uint32_t children[2]);

/* Whether the tiles of the last round are those of a serial factorization. Prints a difference. */
bool tiles_check(const struct tiles *tiles);

/* Multiplications and additions of a factorization. */
double tiles_flops(const struct tiles *tiles);

#endif

/*
 * The pieces of a vector or a shape, one after the other: joined where they stand side by side on
 * both sides, and without those of no bytes. A shape makes its pieces as they are asked for. To go
 * over them again, copy the struct before.
 *
 * Thread: any, each struct with its caller.
 */
#ifndef PWC_CLIENTLIB_PIECES_H
#define PWC_CLIENTLIB_PIECES_H

#include <stdbool.h>
#include "pwc/vector.h"

struct pieces {
    const struct pwc_piece *list; /* the next of a vector */
    size_t left;                  /* of the list, or 1 while a shape has elements */
    struct pwc_shape shape;       /* contiguous dimensions folded into the element */
    size_t index[4];              /* of the next element of the shape */
    struct pwc_piece element;     /* that element */
    struct pwc_piece ahead;       /* taken already, but not joined; no bytes: there is none */
};

void pieces_of_vector(struct pieces *p, const struct pwc_piece *list, size_t n);
/* 0; -EINVAL: it is no shape; -EMSGSIZE: its elements have more bytes than there are addresses. */
int pieces_of_shape(struct pieces *p, uint64_t off, void *local, const struct pwc_shape *shape);
/* False: there are no more. */
bool pieces_next(struct pieces *p, struct pwc_piece *out);

#endif

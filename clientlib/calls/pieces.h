/*
 * The pieces of a vector or a shape, one after the other, without empty pieces. Pieces of a list
 * are joined where they are adjacent on both sides, pieces of a shape where its dimensions are
 * contiguous. The pieces of a shape are made one at a time, by pieces_next. To go over the pieces
 * again, copy the struct first.
 *
 * Thread: any; a struct belongs to its caller.
 */
#ifndef PWC_CLIENTLIB_PIECES_H
#define PWC_CLIENTLIB_PIECES_H

#include <stdbool.h>
#include "pwc/vector.h"

struct pieces {
    const struct pwc_piece *list; /* for a vector, the rest of its list; NULL: a shape */
    size_t left;           /* pieces left in the list, or in the innermost dimension of a shape */
    struct pwc_piece next; /* for a list, a piece that was taken, and may be joined with later
                              ones */
    ptrdiff_t local_stride, remote_stride; /* of a shape's innermost dimension */
    struct pwc_shape outer;                /* the other dimensions of a shape */
    size_t index[4];                       /* position in the dimensions of `outer` */
};

/* Describes all pieces of a shape together, without making them. A range is from the start of the
 * lowest piece to the end of the highest. */
struct pieces_extent {
    uint64_t count;
    size_t length;                  /* of each piece */
    uint64_t from, end;             /* range of offsets in the region */
    uint64_t local_from, local_end; /* range of addresses; both 0: it wraps around */
};

void pieces_of_vector(struct pieces *p, const struct pwc_piece *list, size_t n);
/* 0; -EINVAL: `shape` is not valid; -EMSGSIZE: its elements have more bytes than there are
 * addresses. */
int pieces_of_shape(struct pieces *p, uint64_t off, void *local, const struct pwc_shape *shape);

/* Checks a shape with elements, before its first piece is taken: 0; -E2BIG: over PWC_PIECES_MAX
 * pieces; -ERANGE: offsets overflow. */
int pieces_extent(const struct pieces *p, struct pieces_extent *out);

/* Takes up to `most` pieces of one row of a shape's innermost dimension. Returns their number, and
 * the first one in *out; 0: there are no more. */
uint32_t pieces_take_row(struct pieces *p, uint32_t most, struct pwc_piece *out);

/* The steps of pieces_next for a list, and for the end of a shape's innermost dimension. */
bool pieces_next_listed(struct pieces *p, struct pwc_piece *out);
void pieces_carry(struct pieces *p);

/* Gives the next piece. False: there are no more. */
static inline bool pieces_next(struct pieces *p, struct pwc_piece *out)
{
    if (p->list)
        return pieces_next_listed(p, out);
    if (p->left == 0)
        return false;
    *out = p->next;
    if (--p->left == 0) {
        pieces_carry(p);
    } else {
        p->next.off += (uint64_t)p->remote_stride;
        p->next.local = (void *)((uintptr_t)p->next.local + (uintptr_t)p->local_stride);
    }
    return true;
}

#endif

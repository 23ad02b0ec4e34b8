/*
 * Writes a vector into the submit ring: a series of records (session_abi.h) that are published
 * together, or not at all. Short pieces of a put are packed into blocks, each long piece is a put
 * or a get of its own, and the end has the remote event. The caller adds the long pieces first.
 *
 * Thread: the one that owns the context; as a channel's calls, these never block.
 */
#ifndef PWC_CLIENTLIB_CHANNEL_VECTOR_H
#define PWC_CLIENTLIB_CHANNEL_VECTOR_H

#include "clientlib/channel/channel.h"

struct channel_vector {
    struct channel *ch;
    struct submit_record like;   /* the whole operation: kind, remote, flags, rid */
    struct submit_record *last;  /* the record that was written last, or NULL */
    struct submit_record *block; /* the block that is not full, or NULL */
    uint8_t *block_end;          /* where its next piece goes */
    uint32_t block_max;          /* the most bytes of pieces in one block */
    uint64_t begun;              /* the ring's tail before the first record */
    uint32_t slot;               /* the vector's slot (pending.h), the id of all records except
                                    those of copied pieces */
    uint32_t records;
};

/* The most bytes of pieces in one block. */
uint32_t channel_block_max(const struct channel *ch, uint32_t packed_max);
/* Whether a piece fits into a vector's block. */
static inline bool channel_piece_short(uint32_t block_max, uint64_t offset, uint64_t length)
{
    return length < UINT64_C(1) << VECTOR_LENGTH_BITS && offset >> VECTOR_OFFSET_BITS == 0 &&
           sizeof(struct vector_piece) + abi_pad8((uint32_t)length) <= block_max;
}

/*
 * Begins the records of a vector. `like` has the kind (SUBMIT_PUT or SUBMIT_GET), remote, flags and
 * remote id of the operation, and its whole length; `slot` is the slot for its end. Returns 0, or
 * an error as channel_submit.
 */
int channel_vector_begin(struct channel_vector *v, struct channel *ch,
                         const struct submit_record *like, uint32_t slot, uint32_t packed_max);
/* Adds a long piece: `piece` has its offset, length, segment, local offset, and as lid its own slot
 * or the vector's. 0, -EAGAIN, -EPROTO. */
int channel_vector_long(struct channel_vector *v, const struct submit_record *piece);
/* Adds a short piece of a put. Results as above. */
int channel_vector_short(struct channel_vector *v, uint64_t offset, const void *bytes,
                         uint32_t length);
/* Adds elements of a put that the daemon reads: `first` has segment and local offset of the first
 * one. Results as above. */
int channel_vector_strided(struct channel_vector *v, const struct submit_record *first,
                           const struct submit_strided *elements);
/* Adds the end, with the bytes of a remote id, and submits all: 0, or another result of
 * channel_submit, or an error as above. */
int channel_vector_end(struct channel_vector *v, const void *rid);
/* Called after an error of the calls above: takes all records back. */
void channel_vector_cancel(struct channel_vector *v);

#endif

/*
 * How a fabric shares its operations out. A peer that answers nothing keeps what is under way to
 * it, so reads and payloads get at most a quarter for one peer, and leave an eighth free for the
 * records and acknowledgements of all peers. A silent peer also keeps a window of runs of records,
 * so the last sixteenth is for records to peers with few operations under way.
 *
 * Owns nothing. Thread: the progress thread.
 */
#ifndef PWC_FABRIC_SHARE_H
#define PWC_FABRIC_SHARE_H

#include <stdbool.h>
#include <stdint.h>

#define SHARE_FEW 8u /* operations under way to one peer */

/* Whether one more operation may begin, with `free` of `most` left, and `theirs` under way to its
 * peer. */
static inline bool share_left(uint32_t most, uint32_t free, uint32_t theirs, bool record)
{
    if (record)
        return free > most / 16 || (free > 0 && theirs < SHARE_FEW);
    return free > most / 8 && theirs < (most + 3) / 4;
}

#endif

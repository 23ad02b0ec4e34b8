/*
 * Hand-over: a program that submits, and then computes on the processor of its daemon. A daemon
 * that polls there has yielded, and nothing wakes it: what was submitted would leave only when the
 * program waits, or when its slice ends. So the program yields once before it computes. The library
 * cannot know that it will compute, and learns from what it did:
 *
 *     pause | submit, submit           | computes | pause: the daemon has taken nothing
 *     pause | submit, submit and yield | computes | ..     a row of two, from now on
 *     pause | submit, submit and yield | pause             forgotten: the program waits at once
 *
 * Times of single submissions are not known, so a program that computes before it submits is taken
 * for the same. It waits soon after its yield, and would have yielded then.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_HAND_OVER_H
#define PWC_CLIENTLIB_HAND_OVER_H

#include <stdbool.h>
#include <stdint.h>

struct pwc_ctx;

struct hand_over {
    uint64_t row;    /* submissions before the program computes; 0: it does not */
    uint64_t paused; /* submissions when the last pause ended */
    int64_t resumed; /* when that was */
    int64_t handed;  /* when the last row since then was handed over; 0: none */
};

/* Whether the daemon waits for this processor: it runs here, and has submissions to take. */
bool hand_over_is_due(struct pwc_ctx *ctx);
/* Called after a submission that others wait for: yields once, if the daemon waits for this
 * processor and yields have not been long. */
void hand_over(struct pwc_ctx *ctx);
/* The same after the last submission of a row (CHANNEL_ENDS_ROW). */
void hand_over_row(struct pwc_ctx *ctx);

/* A pause of a call that waits begins and ends. `owed`: the daemon waits for this processor. */
void hand_over_pauses(struct pwc_ctx *ctx, int64_t now, bool owed);
void hand_over_resumes(struct pwc_ctx *ctx, int64_t now);

#endif

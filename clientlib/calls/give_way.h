/*
 * Giving way: a program submits, and then computes on the processor of its daemon. A daemon that
 * polls there has yielded, and nothing wakes it: what was submitted would leave only when the
 * program waits, or when its slice ends. So the program yields once before it computes. The library
 * cannot know that the program will compute, and learns from what the program did:
 *
 *     pause | submit, submit           | computes | pause: the daemon has taken nothing
 *     pause | submit, submit and yield | computes | ..     a burst of two, from now on
 *     pause | submit, submit and yield | pause             the eighth in a row: forgotten
 *
 * Times of single submissions are not known. So a program that computes before it submits looks the
 * same to the library. Such a program waits soon after the yield, so the yield costs nothing. And
 * where a program computes between several submissions without a pause, the library yields only
 * after the last of them. A program may wait at once for some operations and compute during others,
 * so the burst is not forgotten sooner.
 *
 * A yield reaches only threads of the same scheduler group (shm_ring/patience.h). A daemon of
 * another group gets its share of the processor without yields, and after a yield in vain it would
 * poll in that share. So after four yields in vain the library does not yield for 100 ms. After a
 * long yield, which shows that another program computes on this processor, the library does not
 * yield for as long as patience says.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_GIVE_WAY_H
#define PWC_CLIENTLIB_GIVE_WAY_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct pwc_ctx;

struct give_way {
    uint64_t burst;          /* submissions before the program computes; 0: it does not */
    uint64_t submitted_then; /* submissions when the last pause ended */
    int64_t resumed;         /* when the last pause ended */
    int64_t gave;            /* when the last burst since then ended; 0: none has */
    uint32_t at_once;        /* yields in a row after which the program waited at once */
    uint32_t vain;           /* yields in a row that have not let the daemon run */
    bool refused;            /* a call has been refused for lack of room */
    int64_t again_at;        /* no yields before, because four were in vain */
};

/* Whether the daemon's progress thread runs on this processor. False where that is not known. */
bool give_way_is_here(const struct pwc_ctx *ctx);
/* Whether the daemon waits for this processor: it runs here, and has submissions to take. */
bool give_way_is_due(struct pwc_ctx *ctx);
/* Called after a submission that others wait for: yields once, if the daemon waits for this
 * processor and yields have not been long. */
void give_way(struct pwc_ctx *ctx);
/* Called after a submission that has returned CHANNEL_WAKES or CHANNEL_ENDS_BURST: wakes the
 * daemon, or yields. */
void give_way_or_wake(struct pwc_ctx *ctx, int rc);

/* Called when a call is refused with `rc`, and returns `rc`. With -EAGAIN, no room, the program
 * probes and tries again, and only its daemon can make room. */
static inline int give_way_refused(struct give_way *g, int rc)
{
    g->refused = rc == -EAGAIN;
    return rc;
}

/* Called when a probe after such a call has found nothing, so that room is not there yet: yields
 * once, if the daemon runs on this processor and yields have not been long. A yield for room is
 * made also where yields were in vain, because the program has nothing else to do. */
void give_way_for_room(struct pwc_ctx *ctx);

/* Called after a submission that belongs to no burst: a reply, a piece of a longer payload
 * (series.h), the record of a flush. */
void give_way_passes_over(struct pwc_ctx *ctx);

/* A pause of a call that waits begins and ends. `owed`: the daemon waits for this processor. */
void give_way_pauses(struct pwc_ctx *ctx, int64_t now, bool owed);
void give_way_resumes(struct pwc_ctx *ctx, int64_t now);

#endif

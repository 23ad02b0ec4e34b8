/*
 * Counters: how many operations of a context have ended, and how many of its peers' operations have
 * arrived, whether these have events or not. Conventions as in pwc.h.
 *
 *     origin                                     target
 *     pwc_put(dst, 0, row, bytes,                pwc_counter_wait(ctx, PWC_COUNT_ARRIVED, n, -1);
 *             PWC_CID_NONE, PWC_CID_NONE,        the rows of n puts are there
 *             PWC_NO_LCE | PWC_NO_RCE);
 *     pwc_counter_wait(ctx, PWC_COUNT_ENDED, n, -1);
 *     n puts have ended
 */
#ifndef PWC_COUNTER_H
#define PWC_COUNTER_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * PWC_COUNT_ENDED: operations of this context that have ended, whether they failed or not. Each
 * submitting call counts once: also a vector, a message or a reply. Flushes and the calls of teams
 * do not count.
 *
 * PWC_COUNT_FAILED: the ended operations that failed. A failure is counted before the operation is
 * counted as ended.
 *
 * PWC_COUNT_ARRIVED: operations of peers that have changed memory of this process over remotes that
 * lead to this context: puts with or without remote event, with signal or notification; atomics,
 * except PWC_READ; vectors. Each call of the origin counts once, when all its data is placed, and
 * before its remote event is seen. A put of no bytes counts if it has a remote event. Not counted
 * are operations that fail, gets, messages with their payload, and puts to the region of an
 * offload, for which pwc_offload_view has counts.
 */
enum pwc_counter {
    PWC_COUNT_ENDED = 0,
    PWC_COUNT_FAILED = 1,
    PWC_COUNT_ARRIVED = 2,
};

/*
 * Gives the number so far in *out. The number is 0 when the context is created and only grows,
 * whatever happens to peers, daemons and links. After the call the data of all counted operations
 * is visible.
 *
 * Never blocks. Makes no system call, unless a neighbour has appeared or gone. Where gets, vectors,
 * fetching atomics, or operations that were given a request, are under way, a call for ENDED or
 * FAILED keeps the local events that have arrived for later probes, up to 1 MiB, as pwc_flush does;
 * beyond that such operations are counted when the program takes events.
 *
 * -EINVAL: no such counter; -ENOMEM: as pwc_probe; -ESHUTDOWN, -EPROTO: the session is over.
 */
PWC_API int pwc_counter_read(pwc_ctx *ctx, enum pwc_counter which, uint64_t *out);

/*
 * Waits until the counter is `threshold` or more: 0; or -ETIMEDOUT after timeout_ms. timeout_ms < 0
 * waits for ever, 0 looks once. After the call the data of all counted operations is visible.
 *
 * Polls for about 200 us, yielding the processor, then sleeps. Each counted operation wakes the
 * call at once. Meanwhile handlers of active messages run. Events of the kinds of pwc_set_handler
 * go to its function. Other events stay for later probes; remote events that would fill their ring
 * are kept, up to 1 MiB, as pwc_flush does, and so are local events as in pwc_counter_read. A
 * daemon that dies is noticed within a second.
 *
 * -EINVAL: no such counter; -EDEADLK: in a handler; -ENOBUFS: too many events are kept, probe
 * first; -ENOMEM: as pwc_probe; -ESHUTDOWN, -EPROTO: the session is over.
 */
PWC_API int pwc_counter_wait(pwc_ctx *ctx, enum pwc_counter which, uint64_t threshold,
                             int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif

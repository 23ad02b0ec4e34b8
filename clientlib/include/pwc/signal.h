/*
 * Puts with signal, and waiting for a word. Conventions as in pwc.h.
 *
 * A signal is a word of 64 bits in the region of a put, which is set, or added to, when the payload
 * is there. So the target needs no event: it waits for the word. The terms and comparisons, which
 * read the word as unsigned, are those of OpenSHMEM 1.5 (shmem_put_signal,
 * shmem_signal_wait_until).
 *
 *     origin                                     target
 *     pwc_put_signal(dst, 0, row, bytes,         pwc_wait_word(ctx, &arrived, PWC_GE, n, -1);
 *                    offset of arrived, 1,       the rows of n puts are there
 *                    PWC_ADD, lid, 0);
 */
#ifndef PWC_SIGNAL_H
#define PWC_SIGNAL_H

#include <pwc/atomic.h>
#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Put `len` bytes from `src` to offset `off` of the region behind `dst`, as pwc_put does, and then
 * change the word of 64 bits at offset `signal_off` of the same region: PWC_SET stores `value`,
 * PWC_ADD adds it and wraps around. A program that reads the new word finds the payload. There is
 * no remote event; the put wakes a pwc_wait_word of the context that `dst` was bound to. A length
 * of 0 is the signal alone: `src` is not looked at.
 *
 * The call is one operation with one local event: payload and signal succeed or fail together. The
 * word is changed once, by an atomic instruction, so signals of several origins to one word, and
 * the operations of pwc/atomic.h, are atomic to one another. Until the local event has arrived, the
 * payload may be written to the target again. Signals of one pair of contexts arrive in the order
 * of submission.
 *
 * Never blocks, except where pwc_put does. `flags` as for pwc_put, without PWC_NO_RCE and
 * PWC_NOTIFY. Errors as for pwc_put; also these, at once or, where only the target can detect the
 * error, as the status of the local event:
 *     -EINVAL         the word is not aligned to 8 bytes; `op` is neither PWC_SET nor PWC_ADD
 *     -ERANGE         the word goes past the end of the region
 *     -ECONNABORTED   status only: the link was lost for good, or with PWC_ADD the target's daemon
 *                     died at that moment, and it is unknown whether the word was changed
 */
PWC_API int pwc_put_signal(pwc_remote *dst, uint64_t off, const void *src, size_t len,
                           uint64_t signal_off, uint64_t value, enum pwc_atomic_op op, pwc_cid lid,
                           unsigned flags);

/* How a word is compared with a value: word == value, word != value, word > value, ... */
enum pwc_compare {
    PWC_EQ = 0,
    PWC_NE = 1,
    PWC_GT = 2,
    PWC_GE = 3,
    PWC_LT = 4,
    PWC_LE = 5,
};

/*
 * Waits until a word of this process's memory, read as unsigned, compares with `value` as `compare`
 * says: 1; or 0 after timeout_ms. timeout_ms < 0 waits for ever, 0 looks once. After a 1 everything
 * that the word's writer stored before is visible. The word may change again at once: read it for
 * its value.
 *
 * Polls for about 200 us, yielding the processor, then sleeps. A signal or an atomic operation of a
 * peer towards this context wakes the call at once, and so does any event. Other changes do not
 * wake it: plain puts without event, stores of this process's own threads, and operations towards
 * other contexts. The call looks again every millisecond, so it sees these changes up to a
 * millisecond later.
 *
 * While it waits, handlers of active messages run. Events stay for later probes; remote events that
 * would fill their ring are kept, up to 1 MiB, as pwc_flush does. A daemon that dies is noticed
 * within a second.
 *
 * -EINVAL: no such comparison, or the word is not aligned to 8 bytes; -EDEADLK: in a handler;
 * -ENOBUFS: too many events are kept, probe first; -ENOMEM: as pwc_probe; -ESHUTDOWN, -EPROTO: the
 * session is over.
 */
PWC_API int pwc_wait_word(pwc_ctx *ctx, const uint64_t *word, enum pwc_compare compare,
                          uint64_t value, int timeout_ms);

#ifdef __cplusplus
}
#endif
#endif

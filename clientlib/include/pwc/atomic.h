/*
 * Remote atomics: arithmetic, swaps and reads on words of a peer's region. Conventions as in pwc.h.
 *
 * An atomic is atomic against every other atomic of this header on the same word (from any rank,
 * through the daemon or not), against pwc_put_signal, and against the owner's own atomic
 * instructions of the same width (such as C11's atomic_fetch_add). An atomic is not atomic against
 * plain stores of the owner or against puts. All are sequentially consistent.
 *
 *     rank 0, another node     rank 1, the owner         rank 2, the owner's node
 *     pwc_atomic               atomic_fetch_add          pwc_atomic
 *          |                        |                         |
 *     owner's daemon: lock add      | lock add                | lock add
 *          +----------------->  the word  <-------------------+
 *
 * The terms are those of MPI-3's MPI_Fetch_and_op and MPI_Compare_and_swap and of libfabric's
 * fi_atomic(3).
 *
 *   - A word is naturally aligned: `off`, counted from the region's start, is a multiple of the
 *     type's size, and so is the address of the region.
 *   - Integers wrap around. Floating point follows IEEE 754; PWC_MIN and PWC_MAX are its 2019
 *     edition's minimumNumber and maximumNumber: a number beats a NaN, and -0.0 is less than 0.0.
 *   - `count` elements side by side are one operation with one event, but each element is atomic on
 *     its own: another atomic may change an element between two of them.
 *   - An atomic is done after the placement of all earlier puts and atomics of its pair of
 *     contexts. A later get, or a later put of more than pwc_packed_max bytes, may overtake it: use
 *     PWC_FENCE there.
 *   - Each atomic is done once, or not at all, whatever links and daemons do meanwhile. Where the
 *     owner's daemon dies in the middle of an atomic, the outcome is unknown, and the atomic ends
 *     with -ECONNABORTED.
 */
#ifndef PWC_ATOMIC_H
#define PWC_ATOMIC_H

#include <pwc/pwc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The type of an element: integers with and without sign, and floating point; the number in the
 * name is its bits. Types from PWC_C64 on are for collectives (pwc/collective.h), not for
 * atomics. */
enum pwc_type {
    PWC_I8 = 0,
    PWC_U8 = 1,
    PWC_I16 = 2,
    PWC_U16 = 3,
    PWC_I32 = 4,
    PWC_U32 = 5,
    PWC_I64 = 6,
    PWC_U64 = 7,
    PWC_F32 = 8,
    PWC_F64 = 9,
    PWC_C64 = 10,    /* complex: two F32, the real part first, as C's float complex */
    PWC_C128 = 11,   /* two F64 */
    PWC_BOOL = 12,   /* a byte, true if not 0 */
    PWC_F64_AT = 13, /* struct pwc_f64_at */
    PWC_I64_AT = 14, /* struct pwc_i64_at */
};

/* A value and where it was found, a number that the program gives: for PWC_MINLOC, PWC_MAXLOC. */
struct pwc_f64_at {
    double value;
    int64_t at;
};

struct pwc_i64_at {
    int64_t value, at;
};

enum pwc_atomic_op {
    PWC_SET = 0, /* with pwc_fetch_atomic: a swap */
    PWC_ADD = 1,
    PWC_PROD = 2,
    PWC_MIN = 3,
    PWC_MAX = 4,
    PWC_AND = 5, /* PWC_AND, PWC_OR and PWC_XOR: integers only */
    PWC_OR = 6,
    PWC_XOR = 7,
    PWC_READ = 8, /* pwc_fetch_atomic only; changes nothing, and takes no operand */
    /* For collectives only. Logical operations, on integers and PWC_BOOL, give 1 or 0. */
    PWC_LAND = 11,
    PWC_LOR = 12,
    PWC_LXOR = 13,
    PWC_MINLOC = 14, /* the least value, and of equal ones the least `at` */
    PWC_MAXLOC = 15, /* the greatest value, and of equal ones the least `at` */
};

#define PWC_FETCH_MAX 16 /* elements of one pwc_fetch_atomic */

/*
 * Combine `count` elements (at least 1) at offset `off` of the region behind `dst` with as many
 * operands, which are read during the call and may be in any memory. The local event, with id
 * `lid`, says that the atomic is done; the remote event, with id `rid`, appears at the target after
 * the change. Both are like those of pwc_put; their op is PWC_OP_ATOMIC, and the local event's
 * length is the bytes of the elements.
 *
 * Never blocks, except with PWC_WAIT. `flags`: PWC_NO_LCE, PWC_NO_RCE, PWC_FENCE, PWC_UNORDERED,
 * PWC_NOTIFY, PWC_WAIT. To wait for the end, give a request (pwc/request.h) as `lid`. The call
 * needs the right to write. -EAGAIN: probe, and try again. -EINVAL: no such operation on such a
 * type, `count` is 0, `off` is not a multiple of the type's size, flags, an id over PWC_CID_MAX;
 * -EMSGSIZE: operands over pwc_packed_max, or too long for a quarter of a small submission ring;
 * -ERANGE; -EKEYREJECTED; -EBUSY: an active message has been prepared; -ESHUTDOWN, -EPROTO: the
 * session is over.
 *
 * Status of the local event, which comes even with PWC_NO_LCE: 0, or
 *     -EBUSY          the word was changed 4096 times between a read and a write of this operation,
 *                     which only a program that does so on purpose can cause. Elements before that
 *                     word are done, and the event's length says how many elements; that word and
 *                     the elements after it are unchanged.
 *     -EINVAL         the region itself is not aligned (between contexts of one node the result of
 *                     the call)
 *     -ECONNABORTED   the outcome is unknown
 *     -EKEYREJECTED, -EHOSTDOWN, as for pwc_put
 */
PWC_API int pwc_atomic(pwc_remote *dst, uint64_t off, enum pwc_atomic_op op, enum pwc_type type,
                       const void *operands, size_t count, pwc_cid lid, pwc_cid rid,
                       unsigned flags);

/*
 * As pwc_atomic, and fetches the values from before the change. These values are in `result` when
 * pwc_probe, pwc_wait or pwc_flush of this context has seen the end, also with PWC_NO_LCE. For one
 * element `result` may be any memory that lives until then; for several, up to PWC_FETCH_MAX, it
 * must lie in a region of this client (else -EFAULT). After a failure `result` is undefined. The
 * call needs the rights to read and to write; PWC_READ needs the right to read alone, and looks at
 * no operands.
 */
PWC_API int pwc_fetch_atomic(pwc_remote *dst, uint64_t off, enum pwc_atomic_op op,
                             enum pwc_type type, const void *operands, size_t count, void *result,
                             pwc_cid lid, pwc_cid rid, unsigned flags);

/*
 * If the word has the bits of *expected, it becomes *desired; `result` gets the earlier value in
 * both cases, so the swap has taken place where `result` and `*expected` have the same bits. For
 * floating point: -0.0 is not 0.0, and a NaN equals itself. As pwc_fetch_atomic of one element.
 */
PWC_API int pwc_compare_swap(pwc_remote *dst, uint64_t off, enum pwc_type type,
                             const void *expected, const void *desired, void *result, pwc_cid lid,
                             pwc_cid rid, unsigned flags);

/*
 * The bits of the word where *mask has ones become those of *desired; the other bits are unchanged.
 * As pwc_fetch_atomic of one element; integers only.
 */
PWC_API int pwc_masked_swap(pwc_remote *dst, uint64_t off, enum pwc_type type, const void *mask,
                            const void *desired, void *result, pwc_cid lid, pwc_cid rid,
                            unsigned flags);

#ifdef __cplusplus
}
#endif
#endif

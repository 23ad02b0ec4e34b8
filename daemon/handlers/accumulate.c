/* Owns nothing: the helper accumulate (accumulate.h). Thread: the thread that runs the handler. */
#include "daemon/handlers/accumulate.h"

#include "shm_ring/fold.h"

/* The code of a fold, or -1. Where the processor wrongly predicts that a wrong code is right, it
 * computes with code 0. */
static int fold_code(uint64_t type, uint64_t op)
{
    uint64_t known = window_index(type, FOLD_TYPES), kind = window_index(op, FOLD_OPS);
    uint8_t code = word_code((enum word_op)kind, (enum word_type)known);
    /* A wrong operation became operation 0, which is no fold. */
    uint64_t wrong = window_mask((type ^ known) | !fold_code_valid(code));

    code &= (uint8_t)~wrong;
    return wrong ? -1 : code;
}

static bool apart(const uint8_t *a, const uint8_t *b, uint64_t bytes)
{
    return (uintptr_t)a + bytes <= (uintptr_t)b || (uintptr_t)b + bytes <= (uintptr_t)a;
}

uint64_t accumulate(struct run *r, const uint64_t *reg)
{
    int code = fold_code(reg[4], reg[5]);
    uint64_t count = reg[3], bytes, chunk;
    uint8_t *to;
    const uint8_t *from;

    if (code < 0) {
        run_fail(r, RUN_BAD_ARGUMENT, reg[4] << 8 | (reg[5] & 255));
        return 0;
    }
    /* One unit pays for two elements, because each has 16 bytes at most. Units are so few that the
     * number of bytes does not overflow. */
    if (count == 0 || !run_take(r, (count - 1) / 2 + 1))
        return 0;
    count = window_index(count, RUN_COUNT_MAX);
    bytes = count << fold_shift((uint8_t)code);
    to = run_at(r, WINDOW_WRITE, reg[1], bytes);
    from = to ? run_at(r, WINDOW_READ, reg[2], bytes) : NULL;
    if (!from)
        return 0;
    if (!apart(to, from, bytes)) {
        run_fail(r, RUN_BAD_ARGUMENT, reg[2]);
        return 0;
    }
    count &= ~(window_wrong(&r->windows, WINDOW_WRITE, reg[1], bytes) |
               window_wrong(&r->windows, WINDOW_READ, reg[2], bytes));
    chunk = RUN_CHUNK >> fold_shift((uint8_t)code);
    for (uint64_t done = 0, begin; done < count; done += chunk) {
        uint64_t part = run_part(count, done, chunk, &begin);
        uint64_t at = begin << fold_shift((uint8_t)code);

        if (done > 0 && !run_in_time(r))
            break;
        fold((uint8_t)code, to + at, from + at, part);
    }
    run_fence();
    return 0;
}

/* Owns nothing: the helpers scatter and gather (vector.h). Thread: the thread that runs the
 * handler. */
#include "daemon/handlers/vector.h"

#include <string.h>

/* A shorter block counts as this many bytes between two looks at the clock, because it may be in a
 * page of its own: the blocks that RUN_SPAN units pay for count as RUN_CHUNK bytes. */
#define BLOCK_LEAST ((uint64_t)RUN_CHUNK / (RUN_SPAN / 2))

/* Which bytes of a row of blocks are copied. Offsets are from the address that the program has
 * given for the blocks: the argument `to` of scatter, or `from` of gather. */
struct walk {
    uint64_t first;  /* offset of the first copied byte */
    uint64_t left;   /* bytes of the first block from its first copied byte on */
    uint64_t into;   /* where the first copied byte is in its block */
    uint64_t blocks; /* how many blocks are touched */
    uint64_t reach;  /* one more than the offset of the furthest copied byte */
};

/* Copies the description of the blocks once, because the program's memory may change. */
static bool read_vector(struct run *r, uint64_t address, struct handler_vector *v)
{
    const uint8_t *at = run_at(r, WINDOW_READ, address, sizeof(*v));

    if (!at)
        return false;
    memcpy(v, at, sizeof(*v));
    if (v->block != 0)
        return true;
    run_fail(r, RUN_BAD_ARGUMENT, 0);
    return false;
}

/* Offset of byte `into` of block k. False: it has more than 64 bits. */
static bool offset_of(const struct handler_vector *v, uint64_t k, uint64_t into, uint64_t *offset)
{
    uint64_t far;

    return !__builtin_mul_overflow(k, v->stride, &far) &&
           !__builtin_add_overflow(far, v->start, &far) &&
           !__builtin_add_overflow(far, into, offset);
}

/* Plans the copy of n bytes, at least 1. Blocks may overlap, so the last block does not always end
 * furthest. False: an offset has more than 64 bits. */
static bool plan(const struct handler_vector *v, uint64_t n, struct walk *w)
{
    uint64_t last, first_block = v->skip / v->block, last_block, full;

    if (__builtin_add_overflow(v->skip, n - 1, &last))
        return false;
    last_block = last / v->block;
    w->into = v->skip % v->block;
    w->left = v->block - w->into;
    w->blocks = last_block - first_block + 1;
    if (!offset_of(v, first_block, w->into, &w->first) ||
        !offset_of(v, last_block, last % v->block, &w->reach))
        return false;
    if (last_block > first_block) {
        if (!offset_of(v, last_block - 1, v->block - 1, &full))
            return false;
        w->reach = full > w->reach ? full : w->reach;
    }
    return !__builtin_add_overflow(w->reach, 1, &w->reach);
}

/* Copies between the blocks, whose offsets are from `row`, and `flat`. Additions of `stride` may
 * wrap. */
static bool go_over(struct run *r, const struct handler_vector *v, const struct walk *w,
                    uint8_t *row, uint8_t *flat, uint64_t n, enum window_access to_row)
{
    uint64_t at = w->first, begin = w->first - w->into, looked = 0;
    uint64_t length = run_least(w->left, n);

    for (;;) {
        if (to_row == WINDOW_WRITE)
            memmove(row + at, flat, length);
        else
            memmove(flat, row + at, length);
        n -= length;
        if (n == 0)
            return true;
        flat += length;
        looked += length > BLOCK_LEAST ? length : BLOCK_LEAST;
        if (looked >= RUN_CHUNK) {
            looked = 0;
            if (!run_in_time(r))
                return false;
        }
        /* Offset and length are 0 where nothing is left, so that a processor that wrongly predicts
         * one more copy does no harm. */
        begin = (begin + v->stride) & window_mask(n);
        at = begin;
        length = run_least(v->block, n);
    }
}

static void move(struct run *r, uint64_t row, uint64_t flat, uint64_t n, uint64_t vector,
                 enum window_access to_row)
{
    enum window_access to_flat = to_row == WINDOW_WRITE ? WINDOW_READ : WINDOW_WRITE;
    struct handler_vector v;
    struct walk w;
    uint8_t *row_at, *flat_at;
    uint64_t wrong;

    if (!read_vector(r, vector, &v) || n == 0)
        return;
    if (n >> HANDLER_WINDOW_SHIFT != 0 || !plan(&v, n, &w) || w.blocks > UINT32_MAX) {
        run_fail(r, RUN_BAD_ARGUMENT, n);
        return;
    }
    if (!run_take(r, 2 * w.blocks > (n + 31) / 32 ? 2 * w.blocks : (n + 31) / 32))
        return;
    row_at = run_at(r, to_row, row, w.reach);
    flat_at = row_at ? run_at(r, to_flat, flat, n) : NULL;
    if (!flat_at)
        return;
    /* Where the processor wrongly predicts that both addresses are right, it only touches one byte,
     * the first that the windows give. */
    wrong = window_wrong(&r->windows, to_row, row, w.reach) |
            window_wrong(&r->windows, to_flat, flat, n);
    n = (n - 1) & ~wrong;
    w.first &= ~wrong;
    w.into &= ~wrong;
    go_over(r, &v, &w, row_at, flat_at, n + 1, to_row);
    run_fence();
}

uint64_t scatter(struct run *r, const uint64_t *reg)
{
    move(r, reg[1], reg[2], reg[3], reg[4], WINDOW_WRITE);
    return 0;
}

uint64_t gather(struct run *r, const uint64_t *reg)
{
    move(r, reg[2], reg[1], reg[3], reg[4], WINDOW_READ);
    return 0;
}

/* Owns nothing: the helpers scatter and gather (vector.h). Thread: the one that runs handlers. */
#include "daemon/handlers/vector.h"

#include <string.h>

/* Where a row of blocks is to be touched. */
struct walk {
    uint64_t first;  /* offset of the first byte, from the address that was given */
    uint64_t left;   /* bytes of the first block from there on */
    uint64_t into;   /* the first byte's offset in its block */
    uint64_t blocks; /* that are touched */
    uint64_t reach;  /* offset behind the furthest byte */
};

/* Copied once: the program's memory may change. */
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

/* Offset of the byte `into` of block k. False: past 64 bits. */
static bool offset_of(const struct handler_vector *v, uint64_t k, uint64_t into, uint64_t *offset)
{
    uint64_t far;

    return !__builtin_mul_overflow(k, v->stride, &far) &&
           !__builtin_add_overflow(far, v->start, &far) &&
           !__builtin_add_overflow(far, into, offset);
}

/* The walk over n bytes, at least 1. Blocks may overlap, so the end of the last one is not always
 * the furthest. False: an offset is past 64 bits. */
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

/* Copies between `row`, blocks from their given address on, and `flat`. `stride` may wrap. */
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
        looked += length;
        if (looked >= RUN_CHUNK) {
            looked = 0;
            if (!run_in_time(r))
                return false;
        }
        /* 0 where nothing is left, for a guess that there is more. */
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
    /* A wrong guess about these two reaches one byte, the first of what the windows give. */
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

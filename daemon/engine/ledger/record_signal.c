/*
 * Puts with signal at the target: the payload is placed as that of a put, or has arrived on its
 * own; then the word is changed by one atomic instruction, after which a reader of the word finds
 * the payload (op_signal.c is the origin's side). Thread: the progress thread.
 */
#include "daemon/engine/ledger/records.h"

#include <errno.h>
#include <string.h>
#include "daemon/engine/ops/signal.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/state/doubt.h"
#include "shm_ring/word.h"

/* Copies the block: 0 or -EPROTO. `left` bytes stand there. */
static int block_parse(struct arrival *a, uint64_t left)
{
    if (a->w.op.rid_len != sizeof(a->signal) || left < sizeof(a->signal))
        return -EPROTO;
    memcpy(&a->signal, a->id, sizeof(a->signal));
    return signal_code_valid(a->signal.code) ? 0 : -EPROTO;
}

/* A word across two cache lines would lock the bus of the whole node. */
static int word_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    const struct signal *s = &a->signal;
    uint8_t *base;
    uint64_t length;
    int status = region_to_write(e, session, s->slot, s->generation, &base, &length);

    if (status < 0)
        return status;
    if (!(s->offset <= length && sizeof(s->value) <= length - s->offset))
        return -ERANGE;
    a->word = base + s->offset;
    return word_aligned((uintptr_t)a->word, s->code) ? 0 : -EINVAL;
}

/* Setting a word twice does no harm, adding to it twice does. */
static int word_ready(struct engine *e, const struct arrival *a)
{
    if (word_op(a->signal.code) == WORD_ADD)
        doubt_begin(e, a->w.op.flow, a->w.op.sequence);
    return 0;
}

/* Neither SET nor ADD of an integer can fail. */
static int word_act(struct engine *e, struct arrival *a)
{
    return word_apply(a->word, a->signal.code, &a->signal.value, NULL);
}

static uint32_t word_changed(const struct arrival *a)
{
    return 1;
}

/* ---- a packed payload ------------------------------------------------------------------------ */

static int64_t packed_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    return block_parse(a, left) < 0 ? -EPROTO : arrival_put.parse(e, a, left);
}

static int packed_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    int status = arrival_put.admit(e, session, a);

    return status < 0 ? status : word_admit(e, session, a);
}

static int packed_act(struct engine *e, struct arrival *a)
{
    (void)arrival_put.act(e, a);
    return word_act(e, a);
}

const struct arrival_kind arrival_signal = {.op = SUBMIT_SIGNAL,
                                            .silent = true,
                                            .changes = true,
                                            .parse = packed_parse,
                                            .admit = packed_admit,
                                            .ready = word_ready,
                                            .act = packed_act,
                                            .changed = word_changed};

/* ---- a payload that travels on its own, or none ---------------------------------------------- */

static int64_t placed_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    return block_parse(a, left) < 0 ? -EPROTO : arrival_placed.parse(e, a, left);
}

const struct arrival_kind arrival_signal_placed = {.op = SUBMIT_SIGNAL,
                                                   .silent = true,
                                                   .changes = true,
                                                   .parse = placed_parse,
                                                   .admit = word_admit,
                                                   .ready = word_ready,
                                                   .act = word_act,
                                                   .changed = word_changed};

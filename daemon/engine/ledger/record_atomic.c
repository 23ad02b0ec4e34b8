/*
 * Atomics at their target (op_atomic.c is the origin's side). Room for the events and for the
 * verdict is found before the first word changes, because a record that has changed a word is never
 * taken again. Thread: the progress thread.
 */
#include "daemon/engine/ledger/records.h"

#include <string.h>
#include "daemon/engine/ledger/notes.h"
#include "daemon/engine/kinds/batch_format.h"
#include "daemon/engine/peer/region.h"
#include "daemon/engine/session/session.h"
#include "daemon/engine/state/doubt.h"
#include "shm_ring/word.h"

static uint8_t code_of(const struct arrival *a)
{
    return (uint8_t)a->w.op.atomic;
}

static bool fetches(const struct arrival *a)
{
    return a->w.op.atomic & WIRE_FETCH;
}

/* The buffer for fetched values until their RESULT is made; submissions use it, too. */
static uint8_t *values_of(struct engine *e)
{
    return e->next_record;
}

/* Whether the code is valid for such a record. */
static bool code_parse(const struct arrival *a)
{
    return (a->w.op.atomic & ~(WIRE_FETCH | UINT8_MAX)) == 0 && word_code_valid(code_of(a)) &&
           (fetches(a) || word_op(code_of(a)) != WORD_READ);
}

static unsigned rights_of(const struct arrival *a)
{
    if (word_op(code_of(a)) == WORD_READ)
        return ENGINE_REMOTE_READ;
    return ENGINE_REMOTE_WRITE | (fetches(a) ? ENGINE_REMOTE_READ : 0);
}

/* Whether the atomic changes words: a READ does not. */
static bool changes_words(const struct arrival *a)
{
    return word_op(code_of(a)) != WORD_READ;
}

/* Called before the first word changes: finds room for the verdict, and notes the doubt. Returns 0
 * or -ENOBUFS. */
static int atomic_ready(struct engine *e, const struct arrival *a)
{
    if (notes_room(e, e->inflows[a->w.op.flow].peer, WIRE_RESULT_BYTES_MAX) < 0)
        return -ENOBUFS;
    if (changes_words(a))
        doubt_begin(e, a->w.op.flow, a->w.op.sequence);
    return 0;
}

/* Posts the RESULT with `bytes` of values, or the FAIL of an operation that fetches nothing. */
static void atomic_verdict(struct engine *e, const struct arrival *a, int32_t status,
                           uint32_t bytes)
{
    const struct inflow *in = &e->inflows[a->w.op.flow];
    struct {
        struct wire_flow w;
        uint8_t values[8 * WIRE_RESULT_VALUES];
    } record;
    uint32_t padded = fetches(a) ? abi_pad8(bytes) : 0;

    record.w = (struct wire_flow){.head.kind = fetches(a) ? WIRE_RESULT : WIRE_FAIL,
                                  .flow = in->origin_flow,
                                  .sequence = a->w.op.sequence,
                                  .status = status,
                                  .done = a->done};
    memset(values_of(e) + bytes, 0, padded > bytes ? padded - bytes : 0);
    memcpy(record.values, values_of(e), padded);
    notes_append(e, in->peer, e->sessions[in->session].client, &record,
                 (uint32_t)sizeof(record.w) + padded);
}

/* ---- one operation, perhaps of several elements ---------------------------------------------- */

static int64_t atomic_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    uint32_t length = a->w.op.length, width;

    if (!code_parse(a) || length == 0)
        return -EPROTO;
    width = word_bytes(code_of(a));
    if ((length & (width - 1)) != 0 || (fetches(a) && length > SUBMIT_FETCH_MAX * width))
        return -EPROTO;
    return ((int64_t)((uint64_t)length << word_is_swap_if(code_of(a))) + 7) / 8 * 8 +
           (fetches(a) ? wire_fetch_pad(abi_pad8(length)) : 0);
}

static int atomic_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    const struct wire_put *w = &a->w.put;
    uint64_t length;
    int status = region_memory(e, session, w->slot, w->generation, rights_of(a), &a->base, &length);

    if (status < 0)
        return status;
    if (!(w->offset <= length && w->op.length <= length - w->offset))
        return -ERANGE;
    return word_aligned((uintptr_t)a->base + w->offset, code_of(a)) ? 0 : -EINVAL;
}

static int atomic_act(struct engine *e, struct arrival *a)
{
    const struct wire_put *w = &a->w.put;
    uint8_t code = code_of(a);
    uint32_t elements = w->op.length >> word_shift(code);

    a->done = word_apply_all(a->base + w->offset, code, elements, a->id + abi_pad8(w->op.rid_len),
                             fetches(a) ? values_of(e) : NULL);
    return a->done == elements ? 0 : -EBUSY;
}

static uint32_t atomic_changed(const struct arrival *a)
{
    return changes_words(a);
}

static void atomic_answer(struct engine *e, const struct arrival *a, int32_t status)
{
    if (fetches(a) || status < 0)
        atomic_verdict(e, a, status, a->done << word_shift(code_of(a)));
}

const struct arrival_kind arrival_atomic = {
    .op = SUBMIT_ATOMIC,
    .changes = true,
    .parse = atomic_parse,
    .admit = atomic_admit,
    .ready = atomic_ready,
    .act = atomic_act,
    .changed = atomic_changed,
    .answer = atomic_answer,
};

/* ---- a batch of atomics, of one element each ------------------------------------------------- */

/* The words of a batch are alike, so one pass over it finds all that admission needs. */
static int64_t atomics_parse(struct engine *e, struct arrival *a, uint64_t left)
{
    uint64_t width, bytes, rid, offset, furthest = 0, places = 0;
    uint32_t at = 0, length, others = 0;

    if (!code_parse(a) || word_is_swap_if(code_of(a)) || a->w.op.rid_len != 0 ||
        a->w.op.count == 0 || a->w.op.count > WIRE_RESULT_VALUES)
        return -EPROTO;
    width = word_bytes(code_of(a));
    bytes = a->w.op.count * (sizeof(struct wire_batch_put) + abi_pad8((uint32_t)width));
    if (left != bytes)
        return -EPROTO;
    static_assert(WIRE_RESULT_VALUES * (sizeof(struct wire_batch_put) + 8) <= BATCH_BYTES_MAX,
                  "the batch fits e->record");
    memcpy(e->record, a->id, bytes);
    a->block = e->record;
    while (at < bytes && others == 0) {
        at = batch_step(a->block, at, &rid, &offset, &length);
        others |= length ^ (uint32_t)width;
        places |= offset;
        furthest = offset > furthest ? offset : furthest;
    }
    a->places = places;
    a->block_end = furthest + width;
    return others == 0 ? (int64_t)bytes : -EPROTO;
}

static int atomics_admit(struct engine *e, uint32_t session, struct arrival *a)
{
    uint64_t room;
    int status = region_memory(e, session, a->w.batch.slot, a->w.batch.generation, rights_of(a),
                               &a->base, &room);

    if (status < 0)
        return status;
    if (a->block_end > room)
        return -ERANGE;
    return word_aligned((uintptr_t)a->base | a->places, code_of(a)) ? 0 : -EINVAL;
}

enum { WORDS_AHEAD = 16 }; /* 8 and 32 were no faster */

/* Begins to fetch the word of the operation at `at` into the cache. Returns where the next
 * operation begins. */
static uint32_t word_ahead(const struct arrival *a, uint32_t at)
{
    uint64_t rid, offset;
    uint32_t length, next = batch_step(a->block, at, &rid, &offset, &length);

    __builtin_prefetch(a->base + offset, 1);
    return next;
}

/* Words are anywhere in the region, and each locked instruction waits for its cache line. So lines
 * are fetched ahead, several at a time. */
static int atomics_act(struct engine *e, struct arrival *a)
{
    uint8_t code = code_of(a), *values = values_of(e);
    uint32_t at = 0, ahead = 0, length;
    uint64_t rid, offset;

    if (fetches(a))
        memset(values, 0, 8 * a->w.op.count);
    for (uint32_t i = 0; i < a->w.op.count && i < WORDS_AHEAD; i++)
        ahead = word_ahead(a, ahead);
    for (a->done = 0; a->done < a->w.op.count; a->done++) {
        const uint8_t *operand = a->block + at + sizeof(struct wire_batch_put);

        if (a->done + WORDS_AHEAD < a->w.op.count)
            ahead = word_ahead(a, ahead);
        at = batch_step(a->block, at, &rid, &offset, &length);
        if (word_apply(a->base + offset, code, operand,
                       fetches(a) ? values + UINT64_C(8) * a->done : NULL) < 0)
            return -EBUSY;
    }
    return 0;
}

static uint32_t atomics_changed(const struct arrival *a)
{
    return changes_words(a) ? a->done : 0;
}

static void atomics_answer(struct engine *e, const struct arrival *a, int32_t status)
{
    if (fetches(a) || status < 0)
        atomic_verdict(e, a, status, a->done * 8);
}

const struct arrival_kind arrival_atomics = {
    .op = SUBMIT_ATOMIC,
    .changes = true,
    .several = true,
    .parse = atomics_parse,
    .admit = atomics_admit,
    .ready = atomic_ready,
    .act = atomics_act,
    .changed = atomics_changed,
    .answer = atomics_answer,
};

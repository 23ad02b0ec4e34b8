/*
 * Put with signal: a put whose id is a block that names a word of the same region, and what becomes
 * of that word when the payload is placed. It is one operation: payload and signal succeed or fail
 * together, by every protocol of a put, and no remote event is posted. Thread: the progress thread.
 */
#include "daemon/engine/ops/op.h"

#include <string.h>
#include "daemon/engine/ops/signal.h"

/* An honest library has checked the code, and asks for no remote event. Only the target knows where
 * the region is, and so whether the word is aligned. */
static int signal_validate(struct engine *e, uint32_t client, const struct submit_record *r,
                           const struct remote *remote)
{
    struct signal s;
    struct submit_record word = {.length = sizeof(s.value)};
    int status;

    if (r->rid_len != sizeof(s) || r->flags & SUBMIT_NO_RCE)
        return -EPROTO;
    memcpy(&s, (const uint8_t *)(r + 1) + abi_pad8(r->lid_len), sizeof(s));
    if (!signal_code_valid(s.code))
        return -EPROTO;
    status = put_validate(e, client, r, remote);
    if (status < 0)
        return status;
    word.offset = s.offset;
    return op_check_remote(e, &word, remote, ENGINE_REMOTE_WRITE);
}

static int signal_record(struct engine *e, uint32_t flow, uint64_t slot, struct op *op)
{
    return put_record_as(e, flow, slot, op, WIRE_SIGNAL, WIRE_SIGNAL_PLACED, WIRE_SIGNAL_PLACED);
}

const struct op_kind op_signal = {
    .over_remote = true,
    .counter = OP_COUNT_PUT,
    .validate = signal_validate,
    .start = put_start,
    .record = signal_record,
    .on_fabric = put_on_fabric,
    .abandon = put_abandon,
};

/*
 * The fake daemon's active messages: a request becomes an event in the remote ring of its target, a
 * reply becomes an event in the reply_event ring of the context that the token names. Thread: the
 * daemon's.
 */
#include <errno.h>
#include <string.h>
#include "tests/clientlib/daemon/fake/daemon.h"
#include "proto/wire_abi.h"

enum {
    TOKEN = 100, /* a token is this plus the number of the requester's context */
    GENERATION = 9,
};

static bool has_handler(struct fake_context *context, unsigned index)
{
    return atomic_load(&context->session.shared->handlers[index / 64]) >> index % 64 & 1;
}

/* Places a Long's payload, and posts the block with the fields that a daemon fills in. Returns 0 or
 * the status. */
static int deliver(struct fake_daemon *daemon, struct fake_context *target, uint8_t event,
                   uint64_t from, const struct submit_record *record, uint32_t token)
{
    _Alignas(8) uint8_t bytes[UINT16_MAX];
    struct message *block = (struct message *)(void *)bytes;
    int rc = 0;

    memcpy(bytes, fake_record_rid(record), record->rid_len);
    if (record->rid_len != sizeof(*block) + 8u * block->arguments + abi_pad8(block->payload_len))
        return -EPROTO;
    if (!target)
        return -EHOSTDOWN;
    if (!has_handler(target, block->index))
        return -ENOSYS;
    if (record->kind == SUBMIT_LONG) {
        block->slot = (uint32_t)fake_remote_of(daemon, record)->region;
        block->generation = GENERATION;
        block->offset = record->offset;
        rc = fake_move_bytes(daemon, record);
    }
    block->token = token;
    if (rc == 0)
        rc = fake_session_post(&target->session, event, record->kind, from, 0,
                               record->kind == SUBMIT_LONG && record->length == 0 ? record->placed
                                                                                  : record->length,
                               0, bytes, record->rid_len);
    fake_wake_client(target);
    return rc;
}

void fake_carry_request(struct fake_daemon *daemon, struct fake_context *context,
                        const struct submit_record *record)
{
    uint64_t peer = fake_remote_of(daemon, record)->peer;
    bool one_way = record->flags & SUBMIT_NO_REPLY;
    uint32_t token = one_way ? WIRE_NONE : TOKEN + (uint32_t)(context - daemon->contexts);
    int status = fake_fail_together(context, record, 0);

    if (status == 0)
        status = deliver(daemon, fake_context_of(daemon, peer), EVENT_REQUEST, context->peer,
                         record, token);

    if (status < 0 && !one_way)
        fake_session_release_reply(&context->session);
    fake_end(daemon, context, record, peer, status, status == 0 ? record->length : 0);
}

void fake_carry_reply(struct fake_daemon *daemon, struct fake_context *context,
                      const struct submit_record *record)
{
    struct fake_context *requester = &daemon->contexts[record->rid - TOKEN];
    int status = 0;

    if (!(record->flags & SUBMIT_NO_RCE))
        status = deliver(daemon, requester, EVENT_REPLY, context->peer, record, WIRE_NONE);
    if (status < 0 || record->flags & SUBMIT_NO_RCE)
        fake_session_release_reply(&requester->session);
    fake_end(daemon, context, record, requester->peer, status, status == 0 ? record->length : 0);
}

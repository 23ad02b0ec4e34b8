/*
 * Owns the operations of the libfabric fabric, and their states between post and event.
 *
 *     FREE -> POSTED -> FREE                            the provider completes it: event
 *     FREE -> ENDED -> FREE                             injected: event from the ready list
 *             POSTED -> CANCELLED -> QUARANTINED -> spare
 *                                                       disconnect: event from the ready list, but
 *                                                       the provider may complete it later, so its
 *                                                       context must stay as it is until then
 *
 * Quarantined operations are replaced by others, so that a dead peer does not leave fewer
 * operations for other peers. Some providers never complete them; then they stay until the fabric
 * is closed.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "daemon/fabric/ofi/ofi_private.h"

static int add_block(struct ofi_operations *o, uint32_t count)
{
    struct ofi_operation_block *block =
        calloc(1, sizeof(*block) + (size_t)count * sizeof(block->operations[0]));

    if (!block)
        return -ENOMEM;
    block->count = count;
    block->next = o->blocks;
    o->blocks = block;
    for (uint32_t i = count; i-- > 0;)
        ofi_operation_release(o, &block->operations[i]);
    return 0;
}

int ofi_operations_open(struct ofi_operations *o, uint32_t count)
{
    *o = (struct ofi_operations){0};
    o->ready_tail = &o->ready_head;
    return add_block(o, count);
}

void ofi_operations_close(struct ofi_operations *o)
{
    while (o->blocks) {
        struct ofi_operation_block *block = o->blocks;

        o->blocks = block->next;
        free(block);
    }
}

struct ofi_operation *ofi_operations_find(struct ofi_operations *o, void *context)
{
    if (!context)
        return NULL;

    struct ofi_operation *operation = ofi_operation_of(context);

    for (struct ofi_operation_block *b = o->blocks; b; b = b->next)
        if (operation >= b->operations && operation < b->operations + b->count)
            return operation;
    return NULL;
}

static void replace(struct ofi_operations *o, uint32_t count)
{
    while (count > 0 && o->spare) {
        struct ofi_operation *operation = o->spare;

        o->spare = operation->next;
        ofi_operation_release(o, operation);
        count--;
    }
    if (count > 0)
        (void)add_block(o, count); /* without memory, continue with fewer operations */
}

void ofi_operations_cancel(struct ofi_operations *o, uint32_t peer)
{
    uint32_t cancelled = 0;

    for (struct ofi_operation_block *b = o->blocks; b; b = b->next) {
        for (uint32_t i = 0; i < b->count; i++) {
            struct ofi_operation *operation = &b->operations[i];

            if (operation->state == OFI_OPERATION_POSTED && operation->peer == peer) {
                ofi_operation_ready(o, operation, OFI_OPERATION_CANCELLED, -ECANCELED);
                cancelled++;
            }
        }
    }
    replace(o, cancelled);
}

bool ofi_operations_held(const struct ofi_operations *o, uint32_t peer)
{
    for (const struct ofi_operation_block *b = o->blocks; b; b = b->next)
        for (uint32_t i = 0; i < b->count; i++) {
            const struct ofi_operation *operation = &b->operations[i];

            if (operation->peer == peer && (operation->state == OFI_OPERATION_CANCELLED ||
                                            operation->state == OFI_OPERATION_QUARANTINED))
                return true;
        }
    return false;
}

int ofi_operations_deliver(struct ofi_operations *o, struct fabric_event *events, int room)
{
    int n = 0;

    while (n < room && o->ready_head) {
        struct ofi_operation *operation = o->ready_head;

        o->ready_head = operation->next;
        if (!o->ready_head)
            o->ready_tail = &o->ready_head;
        events[n++] = (struct fabric_event){
            .kind = operation->kind,
            .status = operation->status,
            .peer = operation->peer,
            .cookie = operation->cookie,
        };
        if (operation->state == OFI_OPERATION_CANCELLED)
            operation->state = OFI_OPERATION_QUARANTINED;
        else
            ofi_operation_release(o, operation);
    }
    return n;
}

void ofi_operation_late(struct ofi_operations *o, struct ofi_operation *operation)
{
    switch (operation->state) {
    case OFI_OPERATION_QUARANTINED:
        operation->state = OFI_OPERATION_FREE;
        operation->next = o->spare;
        o->spare = operation;
        break;
    case OFI_OPERATION_CANCELLED:
        /* The operation's event is not delivered yet; after it the operation is free. */
        operation->state = OFI_OPERATION_ENDED;
        break;
    default:
        break; /* the provider completes it a second time, and nothing waits for that */
    }
}

/*
 * Owns the items of the stream fabric: one for each operation that may be under way, allocated when
 * the fabric is opened, and more blocks of items for answers to peers, as they are needed.
 *
 * Thread: the progress thread.
 */
#include <errno.h>
#include <stdlib.h>
#include "daemon/fabric/stream/stream_private.h"

#define BLOCK 256u

struct stream_block {
    struct stream_block *next;
    struct stream_item items[];
};

static int add_block(struct stream_items *items, uint32_t count)
{
    struct stream_block *block =
        calloc(1, sizeof(*block) + (size_t)count * sizeof(block->items[0]));

    if (!block)
        return -ENOMEM;
    block->next = items->blocks;
    items->blocks = block;
    for (uint32_t i = count; i-- > 0;)
        stream_item_release(items, &block->items[i]);
    return 0;
}

int stream_items_open(struct stream_items *items, uint32_t count)
{
    *items = (struct stream_items){0};
    return add_block(items, count);
}

void stream_items_close(struct stream_items *items)
{
    while (items->blocks) {
        struct stream_block *block = items->blocks;

        items->blocks = block->next;
        free(block);
    }
}

struct stream_item *stream_item_take(struct stream_items *items)
{
    struct stream_item *item;

    if (!items->free && add_block(items, BLOCK) < 0)
        return NULL;
    item = items->free;
    items->free = item->next;
    return item;
}

void stream_item_release(struct stream_items *items, struct stream_item *item)
{
    item->next = items->free;
    items->free = item;
}

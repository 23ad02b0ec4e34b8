/* Owns the cutting of byte streams into frames (frame.h). Thread: the thread that owns the
 * parser. */
#include "daemon/control/nodes/frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_START = 4096 };

void frame_parser_init(struct frame_parser *p, size_t bound)
{
    *p = (struct frame_parser){.bound = bound};
}

void frame_parser_destroy(struct frame_parser *p)
{
    free(p->buffer);
    *p = (struct frame_parser){.bound = p->bound};
}

void frame_head_write(uint8_t head[FRAME_HEAD_BYTES], uint32_t size)
{
    for (unsigned i = 0; i < FRAME_HEAD_BYTES; i++)
        head[i] = (uint8_t)(size >> (8 * i));
}

uint32_t frame_head_read(const uint8_t head[FRAME_HEAD_BYTES])
{
    return (uint32_t)head[0] | (uint32_t)head[1] << 8 | (uint32_t)head[2] << 16 |
           (uint32_t)head[3] << 24;
}

static size_t announced(const struct frame_parser *p)
{
    return frame_head_read(p->buffer + p->taken);
}

static size_t pending(const struct frame_parser *p)
{
    return p->have - p->taken;
}

int frame_space(struct frame_parser *p, uint8_t **to, size_t *room)
{
    size_t want = CAPACITY_START;

    if (p->taken > 0) {
        memmove(p->buffer, p->buffer + p->taken, pending(p));
        p->have -= p->taken;
        p->taken = 0;
    }
    if (p->have >= FRAME_HEAD_BYTES && announced(p) <= p->bound &&
        FRAME_HEAD_BYTES + announced(p) > want)
        want = FRAME_HEAD_BYTES + announced(p);
    if (want <= p->have) /* complete frames wait for the caller */
        want = p->have + CAPACITY_START;
    if (want > p->capacity) {
        uint8_t *buffer = realloc(p->buffer, want);

        if (!buffer)
            return -ENOMEM;
        p->buffer = buffer;
        p->capacity = want;
    }
    *to = p->buffer + p->have;
    *room = p->capacity - p->have;
    return 0;
}

void frame_fed(struct frame_parser *p, size_t bytes)
{
    p->have += bytes;
}

int frame_next(struct frame_parser *p, const uint8_t **body, size_t *size)
{
    size_t length;

    if (pending(p) < FRAME_HEAD_BYTES)
        return 0;
    length = announced(p);
    if (length > p->bound)
        return -EMSGSIZE;
    if (pending(p) - FRAME_HEAD_BYTES < length)
        return 0;
    *body = p->buffer + p->taken + FRAME_HEAD_BYTES;
    *size = length;
    p->taken += FRAME_HEAD_BYTES + length;
    return 1;
}

bool frame_is_ready(const struct frame_parser *p)
{
    return pending(p) >= FRAME_HEAD_BYTES &&
           (announced(p) > p->bound || pending(p) - FRAME_HEAD_BYTES >= announced(p));
}

bool frame_is_partial(const struct frame_parser *p)
{
    return pending(p) > 0 && !frame_is_ready(p);
}

/* Owns the frames that this node sends to itself (own_frames.h). Thread: control. */
#include "daemon/control/nodes/own_frames.h"

#include <errno.h>
#include <stdlib.h>
#include "daemon/control/control.h"
#include "daemon/control/nodes/peers.h"

struct own_frame {
    struct own_frame *next;
    size_t size;
    uint8_t bytes[];
};

static void deliver(uv_async_t *due)
{
    struct control *control = due->data;
    struct own_frame *f = control->own_frames.first, *next;

    control->own_frames.first = NULL;
    control->own_frames.last = &control->own_frames.first;
    for (; f; f = next) {
        Pwc__PeerFrame *frame = pwc__peer_frame__unpack(NULL, f->size, f->bytes);

        next = f->next;
        if (frame)
            (void)control->own_frames.take(control, control->node, frame);
        pwc__peer_frame__free_unpacked(frame, NULL);
        free(f);
    }
}

void own_frames_open(struct control *control, int (*take)(struct control *control, uint32_t from,
                                                          const Pwc__PeerFrame *frame))
{
    control->own_frames = (struct own_frames){.take = take};
    control->own_frames.last = &control->own_frames.first;
    uv_async_init(&control->loop, &control->own_frames.due, deliver);
    control->own_frames.due.data = control;
}

void own_frames_close(struct control *control)
{
    struct own_frame *f;

    while ((f = control->own_frames.first) != NULL) {
        control->own_frames.first = f->next;
        free(f);
    }
}

int frame_send(struct control *control, uint32_t node, const Pwc__PeerFrame *frame)
{
    struct own_frame *f;
    size_t size;

    if (node != control->node)
        return peers_send(control, node, frame);
    size = pwc__peer_frame__get_packed_size(frame);
    f = malloc(sizeof(*f) + size);
    if (!f)
        return -ENOBUFS;
    f->next = NULL;
    f->size = pwc__peer_frame__pack(frame, f->bytes);
    *control->own_frames.last = f;
    control->own_frames.last = &f->next;
    uv_async_send(&control->own_frames.due);
    return 0;
}

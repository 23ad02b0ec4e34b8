/*
 * Frames that a node sends to itself: the same frames as to other nodes, but queued for the loop
 * instead of sent over a link. They are handled after their sender has returned, in the order of
 * sending.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_OWN_FRAMES_H
#define PWC_CONTROL_OWN_FRAMES_H

#include <stddef.h>
#include <uv.h>
#include "proto/control.pb-c.h"

struct control;
struct own_frame;

struct own_frames {
    struct own_frame *first, **last;
    uv_async_t due;
    int (*take)(struct control *control, uint32_t from, const Pwc__PeerFrame *frame);
};

void own_frames_open(struct control *control, int (*take)(struct control *control, uint32_t from,
                                                          const Pwc__PeerFrame *frame));
void own_frames_close(struct control *control);
/* Sends a frame to a node, which may be our own. -ENOBUFS: there is no room to keep the frame. */
int frame_send(struct control *control, uint32_t node, const Pwc__PeerFrame *frame);

#endif

/*
 * Frames on the control socket: a 32-bit little-endian length, then that many bytes. Descriptors
 * are sent together with a frame's bytes. The reader never reads past the end of a frame, so
 * descriptors that arrive with its bytes belong to that frame.
 *
 * Thread: one reader and one writer at a time, as daemon_link.c ensures.
 */
#ifndef PWC_CLIENTLIB_FRAMES_H
#define PWC_CLIENTLIB_FRAMES_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_SEND_MAX    65536u     /* towards the daemon */
#define FRAME_RECEIVE_MAX (1u << 20) /* towards us */
#define FRAME_FDS_MAX     4

struct frames {
    int fd;          /* a nonblocking stream socket; owned */
    uint8_t *buffer; /* length word and body of the frame that is being received */
    size_t capacity;
    size_t have; /* bytes of the frame that have arrived */
    int fds[FRAME_FDS_MAX];
    int fd_count;
};

void frames_init(struct frames *frames, int fd);
void frames_close(struct frames *frames);

/* Writes one whole frame. -ETIMEDOUT: not a byte was sent. -ESHUTDOWN: the other side hung up, or
 * the deadline passed within the frame: the stream cannot be used any more. */
int frames_send(struct frames *frames, const uint8_t *body, size_t length, int64_t deadline);

/*
 * Waits for one frame: 0 with *body and *length, valid until the next receive; its descriptors are
 * in frames->fds, and closed by the next receive unless they were taken (set to -1). -ETIMEDOUT:
 * the next call continues with the same frame. -ESHUTDOWN: the other side hung up. -EPROTO: a
 * length or a number of descriptors out of bounds.
 */
int frames_receive(struct frames *frames, const uint8_t **body, size_t *length, int64_t deadline);

#endif

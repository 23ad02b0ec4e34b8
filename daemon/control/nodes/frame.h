/*
 * Cuts a stream of bytes into frames: a frame is a 32-bit little-endian length, then that many
 * bytes.
 *
 * The parser owns a buffer that grows to the size of the frame whose length it has read, but not
 * beyond its bound, whatever length a peer sends. The caller reads into frame_space and takes
 * frames until no complete one is left.
 *
 * Pure except for memory. Thread: the thread that owns the parser.
 */
#ifndef PWC_CONTROL_FRAME_H
#define PWC_CONTROL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_HEAD_BYTES 4u

struct frame_parser {
    uint8_t *buffer;
    size_t capacity;
    size_t have;  /* bytes read */
    size_t taken; /* bytes of frames that were given to the caller */
    size_t bound; /* longest body */
};

void frame_parser_init(struct frame_parser *p, size_t bound);
void frame_parser_destroy(struct frame_parser *p);

/* Gives room to read into: *room bytes (at least 1) at *to. -ENOMEM. Bodies that frame_next has
 * given become invalid. */
int frame_space(struct frame_parser *p, uint8_t **to, size_t *room);
/* Notes that `bytes` bytes were read into that room. */
void frame_fed(struct frame_parser *p, size_t bytes);
/* 1 with the next body (valid until frame_space); 0: no frame is complete; -EMSGSIZE: a frame is
 * over the bound. */
int frame_next(struct frame_parser *p, const uint8_t **body, size_t *size);
/* Whether frame_next would return a frame or an error. */
bool frame_is_ready(const struct frame_parser *p);
/* Whether a frame has begun and is not complete. */
bool frame_is_partial(const struct frame_parser *p);

void frame_head_write(uint8_t head[FRAME_HEAD_BYTES], uint32_t size);
uint32_t frame_head_read(const uint8_t head[FRAME_HEAD_BYTES]);

#endif

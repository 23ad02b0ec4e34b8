/*
 * Sealed frames between two daemons, after the handshake: each frame has a counter and a MAC in
 * front of its body.
 *
 *     0x08 | counter, varint | 0x12 0x20 | MAC, 32 bytes | body
 *
 * Together this is a PeerFrame of control.proto whose fields 1 and 2 come first. The MAC is
 * HMAC-SHA-512-256 over the sender's role, the counter and the bytes of the body, so no part of a
 * frame is parsed before the frame is authenticated. Each direction counts from 1 without a gap: a
 * frame that is replayed, reflected or out of order, or that follows a lost one, is refused.
 *
 * Pure: no clock, socket or allocation. Thread: the thread that owns the struct (control).
 */
#ifndef PWC_PEERING_SEAL_H
#define PWC_PEERING_SEAL_H

#include <stddef.h>
#include <stdint.h>

#define SEAL_KEY_BYTES 32u
#define SEAL_MAC_BYTES 32u
#define SEAL_HEAD_MAX  (1u + 10u + 2u + SEAL_MAC_BYTES)

/* Both directions of one connection. */
struct seal {
    uint8_t key[SEAL_KEY_BYTES];
    uint8_t role; /* our role, enum handshake_role; the other side has the other role */
    uint64_t sent;
    uint64_t received;
};

/* Writes the head of the next frame with this body. Returns the number of bytes. */
size_t seal_close(struct seal *s, const uint8_t *body, size_t body_size,
                  uint8_t head[SEAL_HEAD_MAX]);
/* Checks a received frame. Returns the offset of its body, or -EBADMSG: it is not the other side's
 * next frame. */
int seal_open(struct seal *s, const uint8_t *frame, size_t size);

#endif

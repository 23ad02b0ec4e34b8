/* Seals and opens frames between daemons (seal.h). Thread: control. */
#include "daemon/peering/seal.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>
#include "daemon/peering/handshake.h"

static_assert(SEAL_KEY_BYTES == crypto_auth_hmacsha512256_KEYBYTES, "seal key");
static_assert(SEAL_MAC_BYTES == crypto_auth_hmacsha512256_BYTES, "seal MAC");

enum {
    TAG_COUNTER = 0x08, /* field 1, varint */
    TAG_MAC = 0x12,     /* field 2, bytes */
};

static void mac_of(const struct seal *s, uint8_t role, uint64_t counter, const uint8_t *body,
                   size_t size, uint8_t out[SEAL_MAC_BYTES])
{
    crypto_auth_hmacsha512256_state state;
    uint8_t prefix[1 + sizeof(counter)];

    prefix[0] = role;
    for (size_t i = 0; i < sizeof(counter); i++)
        prefix[1 + i] = (uint8_t)(counter >> (8 * i));
    crypto_auth_hmacsha512256_init(&state, s->key, sizeof(s->key));
    crypto_auth_hmacsha512256_update(&state, prefix, sizeof(prefix));
    crypto_auth_hmacsha512256_update(&state, body, size);
    crypto_auth_hmacsha512256_final(&state, out);
}

static size_t put_varint(uint8_t *to, uint64_t value)
{
    size_t n = 0;

    for (; value >= 0x80; value >>= 7)
        to[n++] = (uint8_t)(value | 0x80);
    to[n++] = (uint8_t)value;
    return n;
}

size_t seal_close(struct seal *s, const uint8_t *body, size_t body_size,
                  uint8_t head[SEAL_HEAD_MAX])
{
    uint64_t counter = ++s->sent;
    size_t n = 0;

    head[n++] = TAG_COUNTER;
    n += put_varint(head + n, counter);
    head[n++] = TAG_MAC;
    head[n++] = SEAL_MAC_BYTES;
    mac_of(s, s->role, counter, body, body_size, head + n);
    return n + SEAL_MAC_BYTES;
}

int seal_open(struct seal *s, const uint8_t *frame, size_t size)
{
    uint8_t expected[SEAL_HEAD_MAX], mac[SEAL_MAC_BYTES];
    uint8_t theirs = s->role == HANDSHAKE_INITIATOR ? HANDSHAKE_RESPONDER : HANDSHAKE_INITIATOR;
    uint64_t counter = s->received + 1;
    size_t n = 0;

    /* The next counter is known, so the bytes before the MAC can only have one value. */
    expected[n++] = TAG_COUNTER;
    n += put_varint(expected + n, counter);
    expected[n++] = TAG_MAC;
    expected[n++] = SEAL_MAC_BYTES;
    if (size < n + SEAL_MAC_BYTES || memcmp(frame, expected, n) != 0)
        return -EBADMSG;
    mac_of(s, theirs, counter, frame + n + SEAL_MAC_BYTES, size - n - SEAL_MAC_BYTES, mac);
    if (sodium_memcmp(mac, frame + n, sizeof(mac)) != 0)
        return -EBADMSG;
    s->received = counter;
    return (int)(n + SEAL_MAC_BYTES);
}

/* The fake daemon's vectors: blocks of short pieces. Thread: the daemon's. */
#include <errno.h>
#include <string.h>
#include "tests/clientlib/daemon/fake/daemon.h"

int fake_carry_vector(struct fake_daemon *daemon, const struct submit_record *record)
{
    const uint8_t *at = fake_record_payload(record), *end = at + record->length;
    struct submit_record region = *record;
    uint8_t *there;
    int status;

    if (!(record->flags & SUBMIT_INLINE))
        return record->length == 0 ? 0 : -EINVAL;
    region.offset = 0;
    there = fake_remote_memory(daemon, &region, &status);
    if (!there)
        return status;
    while (at < end) {
        struct vector_piece piece;
        uint64_t length;

        memcpy(&piece, at, sizeof(piece));
        length = piece.place & ((UINT64_C(1) << VECTOR_LENGTH_BITS) - 1);
        memcpy(there + (piece.place >> VECTOR_LENGTH_BITS), at + sizeof(piece), length);
        at += sizeof(piece) + abi_pad8((uint32_t)length);
    }
    return 0;
}

int fake_carry_strided(struct fake_daemon *daemon, const struct submit_record *record)
{
    const uint8_t *here =
        (const uint8_t *)daemon->segments[record->segment].base + record->local_offset;
    struct submit_record region = *record;
    struct submit_strided s;
    uint8_t *there;
    int status;

    daemon->strided++;
    memcpy(&s, fake_record_payload(record), sizeof(s));
    region.offset = 0;
    there = fake_remote_memory(daemon, &region, &status);
    if (!there)
        return status;
    for (uint32_t i = 0; i < s.count; i++)
        memcpy(there + s.offset + i * s.remote_stride, here + i * s.local_stride, s.element);
    return 0;
}

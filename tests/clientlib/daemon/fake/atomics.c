/* The fake daemon's atomics and signals. Thread: the daemon's. */
#include <errno.h>
#include <string.h>
#include "shm_ring/word.h"
#include "tests/clientlib/daemon/fake/daemon.h"

int fake_carry_atomic(struct fake_daemon *daemon, const struct submit_record *record,
                      uint64_t *bytes)
{
    uint32_t width = word_bytes(record->code);
    uint64_t reach = word_reach(record->code, record->length), values[SUBMIT_FETCH_MAX] = {0};
    bool fetch = record->flags & SUBMIT_FETCH;
    uint32_t count = (uint32_t)(reach / width), done;
    uint8_t *there;
    int status;

    there = fake_remote_memory(daemon, record, &status);
    if (!there)
        return status;
    if (!word_code_valid(record->code) || !word_aligned((uintptr_t)there, record->code) ||
        (fetch && count > SUBMIT_FETCH_MAX) || !(record->flags & SUBMIT_INLINE))
        return -EINVAL;
    done = word_apply_all(there, record->code, count, fake_record_payload(record),
                          fetch ? values : NULL);
    *bytes = done;
    if (done < count)
        return -EBUSY;
    *bytes = fetch && count == 1 ? values[0] : reach;
    if (fetch && count > 1)
        memcpy((uint8_t *)daemon->segments[record->segment].base + record->local_offset, values,
               reach);
    return 0;
}

int fake_carry_signal(struct fake_daemon *daemon, const struct submit_record *record)
{
    struct submit_record place = *record;
    struct signal s;
    uint8_t *word;
    int status;

    if (record->rid_len != sizeof(s))
        return -EINVAL;
    memcpy(&s, fake_record_rid(record), sizeof(s));
    place.offset = s.offset;
    word = fake_remote_memory(daemon, &place, &status);
    if (word)
        (void)word_apply(word, s.code, &s.value, NULL);
    return status;
}

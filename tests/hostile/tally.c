/* Counts mutations, sessions and reasons (tally.h). Thread: the tally's writer. */
#include "tests/hostile/tally.h"

#include <stdio.h>
#include <string.h>

const char *target_name(enum target target)
{
    static const char *const names[TARGETS] = {
        [TARGET_RECORD] = "fields of records",
        [TARGET_HEADER] = "words of headers",
        [TARGET_RACE] = "words while the daemon reads",
        [TARGET_PAIR] = "words while a neighbour reads",
        [TARGET_SOCKET] = "frames",
    };

    return names[target];
}

void tally_count(struct tally *t, enum target target, uint64_t more)
{
    uint64_t count = atomic_load_explicit(&t->mutations[target], memory_order_relaxed);

    atomic_store_explicit(&t->mutations[target], count + more, memory_order_relaxed);
}

uint64_t tally_sum(const struct tally *t)
{
    uint64_t sum = 0;

    for (int i = 0; i < TARGETS; i++)
        sum += atomic_load_explicit(&t->mutations[i], memory_order_relaxed);
    return sum;
}

void tally_reason(struct tally *t, const char *text)
{
    atomic_fetch_add(&t->quarantined, 1);
    for (uint32_t i = 0; i < TALLY_REASONS; i++) {
        if (t->reasons[i].count == 0)
            snprintf(t->reasons[i].text, sizeof(t->reasons[i].text), "%s", text);
        if (strncmp(t->reasons[i].text, text, TALLY_REASON_MAX - 1) == 0) {
            t->reasons[i].count++;
            return;
        }
    }
}

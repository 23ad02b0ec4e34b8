/* Owns the decision whether engines live (heartbeat.h). */
#include "daemon/control/watch/heartbeat.h"

void heartbeat_init(struct heartbeat *h, uint32_t engines)
{
    *h = (struct heartbeat){.engines = engines};
}

bool heartbeat_look(struct heartbeat *h, uint32_t engine, uint64_t rounds)
{
    struct heartbeat_engine *e = &h->engine[engine];

    if (rounds != e->rounds) {
        e->rounds = rounds;
        e->answered = true;
        e->silent = 0;
    } else if (!e->answered) {
        e->silent++;
    }
    return !e->answered;
}

bool heartbeat_tell(struct heartbeat *h)
{
    for (uint32_t i = 0; i < h->engines; i++)
        if (!h->engine[i].answered)
            return false;
    for (uint32_t i = 0; i < h->engines; i++)
        h->engine[i].answered = false;
    return true;
}

uint32_t heartbeat_missed(const struct heartbeat *h, uint32_t engine)
{
    uint32_t silent = h->engine[engine].silent;

    return silent > 0 ? silent - 1 : 0; /* it was not woken before the first */
}

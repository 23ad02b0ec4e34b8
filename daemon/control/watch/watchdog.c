/* Owns the decision whether engines live (watchdog.h). Thread: control. */
#include "daemon/control/watch/watchdog.h"

void watchdog_init(struct watchdog *h, uint32_t engines)
{
    *h = (struct watchdog){.engines = engines};
}

bool watchdog_look(struct watchdog *h, uint32_t engine, uint64_t rounds)
{
    struct watchdog_engine *e = &h->engine[engine];

    if (rounds != e->rounds) {
        e->rounds = rounds;
        e->answered = true;
        e->silent = 0;
    } else if (!e->answered) {
        e->silent++;
    }
    return !e->answered;
}

bool watchdog_feed(struct watchdog *h)
{
    for (uint32_t i = 0; i < h->engines; i++)
        if (!h->engine[i].answered)
            return false;
    for (uint32_t i = 0; i < h->engines; i++)
        h->engine[i].answered = false;
    return true;
}

uint32_t watchdog_missed(const struct watchdog *h, uint32_t engine)
{
    uint32_t silent = h->engine[engine].silent;

    return silent > 0 ? silent - 1 : 0; /* the engine was not woken before the first of these
                                         * looks */
}

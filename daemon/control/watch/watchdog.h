/*
 * Whether the engines live, told from how many rounds each progress thread has done: a decision
 * without a clock, a thread or a socket.
 *
 * It looks a few times in each interval of the watchdog. An engine that has gone round since the
 * manager was told last has answered, however busy it is. One that has not may sleep: it is woken,
 * and has gone round at the next look, unless it is stuck. When all have answered the manager is to
 * be told, and counting begins anew:
 *
 *     look                1        2        3        4
 *     busy engine     40211    88102   120773   171102      answers by itself
 *     idle engine         7 wake   8        8 wake   9      answers when it is woken
 *     told                         x                 x
 *     a stuck one     51377 wake 51377 wake 51377 wake      nobody is told any more
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_WATCHDOG_H
#define PWC_CONTROL_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/nodes/nodes.h"

/* So often in each interval: an idle engine is woken every half of it. */
#define WATCHDOG_LOOKS 4u

struct watchdog {
    uint32_t engines;
    struct watchdog_engine {
        uint64_t rounds; /* at the last look */
        bool answered;   /* has gone round since the manager was told */
        uint32_t silent; /* looks in a row at which it had not */
    } engine[NODES_ENGINES_MAX];
};

/* `engines` of them, up to NODES_ENGINES_MAX; none has answered. */
void watchdog_init(struct watchdog *h, uint32_t engines);
/* This engine has done so many rounds by now, from 1 on. True: it is to be woken. */
bool watchdog_look(struct watchdog *h, uint32_t engine, uint64_t rounds);
/* True: all have answered, the manager is to be told; and they are asked anew. */
bool watchdog_feed(struct watchdog *h);
/* Looks in a row at which it had not gone round, though it was woken before them. */
uint32_t watchdog_missed(const struct watchdog *h, uint32_t engine);

#endif

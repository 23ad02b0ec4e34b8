/*
 * Whether the engines live, judged by how many rounds each progress thread has done: a decision
 * without a clock, a thread or a socket.
 *
 * The engines are looked at a few times in each interval of the watchdog. An engine with a new
 * round since the watchdog was fed has answered, however busy it is. One without may sleep: it is
 * woken, and has done a round by the next look, unless it is stuck. When all have answered, the
 * watchdog is fed and the count restarts:
 *
 *     look                1        2        3        4
 *     busy engine     40211    88102   120773   171102      answers on its own
 *     idle engine         7 wake   8        8 wake   9      answers when it is woken
 *     fed                          x                 x
 *     a stuck one     51377 wake 51377 wake 51377 wake      the watchdog is not fed any more
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_WATCHDOG_H
#define PWC_CONTROL_WATCHDOG_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/control/nodes/nodes.h"

/* Looks in each interval: an idle engine is woken twice in it. */
#define WATCHDOG_LOOKS 4u

struct watchdog {
    uint32_t engines;
    struct watchdog_engine {
        uint64_t rounds; /* at the last look */
        bool answered;   /* has done a round since the watchdog was fed */
        uint32_t silent; /* looks in a row without a new round */
    } engine[NODES_ENGINES_MAX];
};

/* Makes a watchdog for up to NODES_ENGINES_MAX engines, none of which has answered yet. */
void watchdog_init(struct watchdog *h, uint32_t engines);
/* Looks at one engine, which has done this many rounds (1 or more). True: wake it. */
bool watchdog_look(struct watchdog *h, uint32_t engine, uint64_t rounds);
/* True: all have answered. Feed the watchdog; the count restarts. */
bool watchdog_feed(struct watchdog *h);
/* Looks in a row without a new round, though the engine was woken before each. */
uint32_t watchdog_missed(const struct watchdog *h, uint32_t engine);

#endif

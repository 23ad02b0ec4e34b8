/*
 * Decides whether the engines live, from the number of rounds that each progress thread has done.
 * Pure: no clock, thread or socket.
 *
 * The caller looks at each engine a few times in each interval of the watchdog. An engine with a
 * new round since the watchdog was fed has answered, however busy it is. An engine without a new
 * round may sleep: it is woken, and has done a round by the next look, unless it is stuck. When all
 * engines have answered, the watchdog is fed, and all have to answer again:
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

/* Looks in each interval. An idle engine is woken twice in an interval. */
#define WATCHDOG_LOOKS 4u

struct watchdog {
    uint32_t engines;
    struct watchdog_engine {
        uint64_t rounds; /* at the last look */
        bool answered;   /* the engine has done a round since the watchdog was fed */
        uint32_t silent; /* looks in a row without a new round */
    } engine[NODES_ENGINES_MAX];
};

/* Makes a watchdog for up to NODES_ENGINES_MAX engines, none of which has answered yet. */
void watchdog_init(struct watchdog *h, uint32_t engines);
/* Looks at one engine, which has done this many rounds (1 or more). True: wake it. */
bool watchdog_look(struct watchdog *h, uint32_t engine, uint64_t rounds);
/* True: all engines have answered, and the caller feeds the watchdog. All have to answer again. */
bool watchdog_feed(struct watchdog *h);
/* How many looks in a row saw no new round, although the engine was woken before each of them. */
uint32_t watchdog_missed(const struct watchdog *h, uint32_t engine);

#endif

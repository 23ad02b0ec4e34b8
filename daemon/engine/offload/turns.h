/*
 * Turns of handlers: which client's handlers run next, and how much of the time all have together.
 *
 *     time passes --> credit --> turns, by users and their clients --> handlers run, units are
 * taken (share)        |        ^                             | |        +-- the client waits
 * <--------+-- no turn left: the
 *                                    +-- the first that waits: GO               message is refused
 *
 * While no other client has work, handlers run as messages come. Where others have, a turn of
 * `handler_turn` units is paid for in advance, out of a credit in ns: it grows with the time that
 * passes, by `handler_share` where clients have work besides handlers, and up to what one step may
 * take. A client whose turn is used up gets another at once while none waits. Else its message is
 * refused (ledger/record_op.c), so that the ledger drains, and the client stands behind the others
 * of its user. Users take turns, so one with many clients has no more than one with one. Units
 * that a message takes beyond the turn come off the next ones; so a client may have to stand in
 * line several times before GO leaves.
 *
 * Work counts for HANDLERS_CONTEND_NS. Records of other clients in a ledger behind those that
 * handlers work on count as soon as they have arrived (ledger/ahead.h).
 *
 * All of it is private: after a restart each message that waits gets its GO. Thread: the progress
 * thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_TURNS_H
#define PWC_ENGINE_OFFLOAD_TURNS_H

#include "daemon/engine/state/state.h"

/* A unit, in ns. */
#define HANDLER_UNIT_NS 2u
/* Two clients have work at the same time where it is so long apart at most. */
#define HANDLERS_CONTEND_NS UINT64_C(10000000)
/* Units of a record that is refused, or dropped because one before it was. */
#define HANDLERS_DROP_UNITS 64u

/* Before the first step. */
void handlers_open(struct engine *e);

/* Messages to handlers of the client's have come. */
void handlers_note(struct engine *e, uint32_t client);
/* The client has other work. */
void handlers_note_work(struct engine *e, uint32_t client);
static inline void handlers_note_other(struct engine *e, uint32_t client)
{
    if (e->offloads.turns.handled.until[0] > e->now) /* other work counts only beside handlers */
        handlers_note_work(e, client);
}
/* Whether other clients have work, so that the client's handlers run in turns. */
bool handlers_in_turns(const struct engine *e, uint32_t client);

/* Whether the next handler of the client's may run now. */
bool handlers_may_run(struct engine *e, uint32_t client);
/* Handlers of the client's have taken so much. */
void handlers_charge(struct engine *e, uint32_t client, uint64_t units);
/* A message of the client's is refused: it comes again with the client's turn. */
void handlers_wait(struct engine *e, uint32_t client);
static inline bool handlers_wait_for_turn(const struct engine *e, uint32_t client)
{
    return e->offloads.turns.of[client].waits;
}

/* The second half of handlers_go_on. */
void handlers_give_turns(struct engine *e, uint64_t *deadline);
/* At the end of a step: turns go to those that wait. */
static inline void handlers_go_on(struct engine *e, uint64_t *deadline)
{
    if (e->offloads.turns.waiting.first != NONE)
        handlers_give_turns(e, deadline);
}

#endif

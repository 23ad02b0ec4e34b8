/*
 * Turns of handlers: which client's handlers run next, and how much of the time all have together.
 *
 *     time passes --> credit --> turns, by users and --> handlers run,
 *       (share)         |        their clients           units are taken
 *                       |              ^                      |
 *                       |              |                      | no turn left:
 *                       |              +-- the client waits <-+ the message is refused
 *                       |                          |
 *                       +--------------> the first that waits gets GO
 *
 * While no other client has work, handlers run as messages come. Where others have, a turn of
 * `handler_turn` units is paid for in advance, out of a credit in ns. The credit grows with the
 * time that passes, by `handler_share` of it where clients have work besides handlers, up to what
 * one step may take. A client whose turn is used up gets another at once if none waits. Else its
 * message is refused (ledger/record_op.c), so that the ledger drains, and the client stands in line
 * after the others of its user. Users take turns, so a user with many clients gets no more than a
 * user with one. Units that a message takes beyond the turn are taken off the next turns; so a
 * client may have to stand in line several times before GO leaves.
 *
 * A client counts as having work for HANDLERS_CONTEND_NS. Records of other clients that wait in a
 * ledger after those that handlers work on count as soon as they have arrived (ledger/ahead.h).
 *
 * All of this is private: after a restart each message that waits gets its GO. Thread: the progress
 * thread.
 */
#ifndef PWC_ENGINE_OFFLOAD_TURNS_H
#define PWC_ENGINE_OFFLOAD_TURNS_H

#include "daemon/engine/state/state.h"

/* The time of one unit, in ns. */
#define HANDLER_UNIT_NS 2u
/* How long a client counts as having work after its last work. */
#define HANDLERS_CONTEND_NS UINT64_C(10000000)
/* Units of a record that is refused, or dropped because one before it was refused. */
#define HANDLERS_DROP_UNITS 64u

/* Before the first step. */
void handlers_open(struct engine *e);

/* Notes that messages have come for handlers of the client's. */
void handlers_note(struct engine *e, uint32_t client);
/* Notes that the client has other work. */
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
/* Takes units that handlers of the client's have used off its turn. */
void handlers_charge(struct engine *e, uint32_t client, uint64_t units);
/* Puts the client in line, because one of its messages is refused. The message comes again when the
 * client has its turn. */
void handlers_wait(struct engine *e, uint32_t client);
static inline bool handlers_wait_for_turn(const struct engine *e, uint32_t client)
{
    return e->offloads.turns.of[client].waits;
}

/* The part of handlers_go_on where clients wait. */
void handlers_give_turns(struct engine *e, uint64_t *deadline);
/* At the end of a step: gives turns to the clients that wait. */
static inline void handlers_go_on(struct engine *e, uint64_t *deadline)
{
    if (e->offloads.turns.waiting.first != NONE)
        handlers_give_turns(e, deadline);
}

#endif

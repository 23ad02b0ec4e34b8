/*
 * Instances: how one begins, what is wrong with a call, how it ends, and the floor of a team.
 *
 * An instance begins with the submission of this engine's members or with the first letter from
 * another engine, whichever is first; the later one must name the same call. The instance is
 * over when its result is shown and its letters are acknowledged. The floor is the first one that
 * is not over.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_INSTANCE_H
#define PWC_ENGINE_INSTANCE_H

#include "daemon/engine/coll/schedule.h"
#include "daemon/engine/state/state.h"

/* Whether a call makes sense for this team: kind, root, length, row, and what its fold needs. Looks
 * at these fields of `call` alone. */
bool instance_valid(const struct engine *e, uint32_t team, const struct instance *call);
/* Whether there is a row for an instance of this sequence, begun or free: 0; -EAGAIN: not yet,
 * because the instance that used the row one lap before is not over; -ERANGE: out of any window. */
int instance_room(const struct engine *e, uint32_t team, const struct instance *call);
/* Whether members that keep the rules cannot submit this call now, because the call was submitted
 * before, or because an earlier call has not ended yet for them and still needs the row. A member
 * can make the others break the rules by its stores to the team area; so such a call breaks the
 * team, and ends no session. */
bool instance_out_of_turn(const struct engine *e, uint32_t team, const struct instance *call);
/* Why a team is broken whose members made a call that fits no other. */
struct team_reason instance_forged(const struct instance *call);
/* Within a transaction: the instance begins, in a row that is free. */
void instance_begin(struct engine *e, uint32_t team, const struct instance *call);
/* Whether a call differs from that of the instance in its row; then *out says how. */
bool instance_differs(const struct engine *e, uint32_t team, const struct instance *call,
                      struct team_reason *out);

/* Its members have called: it is under way. Within a transaction. */
void instance_called(struct engine *e, uint32_t team, struct instance *i);
/* Its end is shown to the members: it is no longer. Within a transaction. */
void instance_done(struct engine *e, uint32_t team, struct instance *i);

/* Looks whether the instance is over: then the floor moves, and participants that wait for it are
 * owed FLOOR. Transactions of its own. Whether the floor has moved. */
bool instance_over(struct engine *e, uint32_t team, uint64_t sequence);
/* instance_over for all instances that a process has left in the middle. */
void instances_settle(struct engine *e, uint32_t team);

/* The letters that an instance awaits at its round, `now`, and that are not whole: a bit for each
 * of now->from. */
uint32_t instance_missing(const struct engine *e, uint32_t team, const struct instance *instance,
                          const struct coll_round *now);
/* Notes what the instance waits for at this round, which is its own: bits of now->to (floors) or of
 * now->from (letters). Each participant concerned, and its peer, counts the instances that wait for
 * it. So no look at a peer walks through the tables. */
void instance_wait(struct engine *e, uint32_t team, struct instance *i,
                   const struct coll_round *now, enum instance_waits waits, uint32_t lacking);
/* The team is broken: none of its instances waits or is under way, and none begins to. */
void instances_wait_no_more(struct engine *e, uint32_t team);
/* After a restart nothing waits yet: what the process before has counted is dropped. */
void instances_inherit(struct engine *e, uint32_t team);

#endif

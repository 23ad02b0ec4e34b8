/*
 * Instances: how one begins, what is wrong with a call, how it ends, and the floor of a team.
 *
 * An instance begins with the submission of this engine's members or with the first letter from
 * another engine, whichever is first; the later one must name the same call. The instance is over
 * when its result is shown and its letters are acknowledged. The floor is the first instance that
 * is not over.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_INSTANCE_H
#define PWC_ENGINE_INSTANCE_H

#include "daemon/engine/coll/schedule.h"
#include "daemon/engine/state/state.h"

/* Whether a call makes sense for this team: kind, root, length, row, and what its fold needs. Looks
 * only at these fields of `call`. */
bool instance_valid(const struct engine *e, uint32_t team, const struct instance *call);
/* Returns 0 if there is a row for the instance of this sequence, begun or free. -EAGAIN: not yet,
 * because an earlier instance that needs the row is not over; -ERANGE: out of any window. */
int instance_room(const struct engine *e, uint32_t team, const struct instance *call);
/* Whether members that keep the rules cannot submit this call now, because the call was submitted
 * before, or because an earlier call has not ended yet for them and still needs the row. A member
 * can make the others break the rules by its stores to the team area; so such a call breaks the
 * team, and ends no session. */
bool instance_out_of_turn(const struct engine *e, uint32_t team, const struct instance *call);
/* Returns the reason with which a team breaks after a call that breaks the rules. */
struct team_reason instance_forged(const struct instance *call);
/* Within a transaction: begins the instance, in a row that is free. */
void instance_begin(struct engine *e, uint32_t team, const struct instance *call);
/* Whether a call differs from that of the instance in its row; then *out says how. */
bool instance_differs(const struct engine *e, uint32_t team, const struct instance *call,
                      struct team_reason *out);

/* Within a transaction: the members here have called, so the instance is under way. */
void instance_called(struct engine *e, uint32_t team, struct instance *i);
/* Within a transaction: the end is shown to the members here, so the instance is no longer under
 * way. */
void instance_done(struct engine *e, uint32_t team, struct instance *i);

/* If the instance is over, moves the floor, and owes FLOOR to participants that wait for it; in
 * transactions of its own. Returns whether the floor has moved. */
bool instance_over(struct engine *e, uint32_t team, uint64_t sequence);
/* A participant waits for our floor: if instances have ended since ACKs were last hastened, owes
 * FLOOR to the participants that owe ACKs. */
void instances_hasten(struct engine *e, uint32_t team);
/* After a restart: moves the floor past the instances that are over, and owes FLOOR. */
void instances_settle(struct engine *e, uint32_t team);

/* The letters that an instance awaits in its round, `now`, and that have not arrived as a whole: a
 * bit for each of now->from. */
uint32_t instance_missing(const struct engine *e, uint32_t team, const struct instance *instance,
                          const struct coll_round *now);
/* Notes what the instance waits for in its round, `now`: bits of now->to (floors) or of now->from
 * (letters). Each participant concerned, and its peer, counts the instances that wait for it, so
 * that no look at a peer walks through the tables. */
void instance_wait(struct engine *e, uint32_t team, struct instance *i,
                   const struct coll_round *now, enum instance_waits waits, uint32_t lacking);
/* The team is broken: none of its instances waits or is under way, and none begins to. */
void instances_wait_no_more(struct engine *e, uint32_t team);
/* After a restart: drops what the earlier process has counted, because nothing waits yet. */
void instances_inherit(struct engine *e, uint32_t team);

#endif

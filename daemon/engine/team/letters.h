/*
 * Letters on their way out: listed in turns, staged, acknowledged, sent again.
 *
 * Letters wait for a peer beside notes (ledger/notes.h), in a queue of their own. A letter stands
 * in its team's memory until it is acknowledged, so it takes no room that others might lack, and it
 * needs no order. While the link is up, letters that wait are on the lists of turns: those of a
 * team in the turn of the client of its lowest member here, after that client's notes.
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_LETTERS_H
#define PWC_ENGINE_LETTERS_H

#include "daemon/engine/state/state.h"

/* Puts a letter on the list of its turn, so that it leaves when it can. Called after the commit
 * that wrote the letter, or within the transaction of letter_owe. */
void letter_list(struct engine *e, struct letter *letter);
/* Within a transaction: writes a letter of a round, which exists from the commit on. */
void letter_write(struct engine *e, struct letter *letter, const struct letter *like);
/* Within a transaction: a FLOOR or a BREAK (NEWS_FLOOR, NEWS_BREAK) is to be sent to the
 * participant. */
void letter_owe(struct engine *e, uint32_t team, uint32_t participant, enum letter_news news);

/* Stages letters of this turn until its bytes are used up. 0, or -ENOSPC: the ledger is full. */
int letters_stage(struct engine *e, struct turn *turn, int *work);
/* Within a transaction: the record of a letter, at `slot` of `sent`, is acknowledged. Returns the
 * letter's team and instance, where no other letter of that instance is under way; else team
 * NONE. */
struct team_call letter_acknowledged(struct engine *e, uint64_t slot);
/* Within a transaction: the letter is to be staged again. */
void letter_rewind(struct engine *e, uint64_t slot);

/* The link is up, and the turns are empty: lists the letters that wait. */
void letters_resume(struct engine *e, uint32_t peer);
/* The link is down: letters that wait are on no turn's list until letters_resume. */
void letters_stop(struct engine *e, uint32_t peer);
/* Drops all letters of this team to this participant, also those in the ledger, whose marks go too;
 * in transactions of its own. */
void letters_drop(struct engine *e, uint32_t team, uint32_t participant);
/* The team has ended: takes its letters that have not left off their peers' counts. */
void letters_forget(struct engine *e, uint32_t team);
/* After a restart: counts the letters that wait. */
void letters_inherit(struct engine *e);

#endif

/*
 * Letters that arrive: they are checked, and kept until their round; the floors and breaks that
 * they report are noted.
 *
 * A letter that makes no sense breaks the link (-EPROTO); a letter of another call than ours breaks
 * the team. Hooks of records.c: results as those of record_kind.take. Thread: the progress thread.
 */
#ifndef PWC_ENGINE_ARRIVALS_H
#define PWC_ENGINE_ARRIVALS_H

#include "daemon/engine/ledger/ledger.h"

int take_coll(struct engine *e, uint32_t peer, const struct ledger_record *record);
int take_floor(struct engine *e, uint32_t peer, const struct ledger_record *record);
int take_break(struct engine *e, uint32_t peer, const struct ledger_record *record);
/* After the commit of each of these three. */
int letter_after(struct engine *e, uint32_t peer);

#endif

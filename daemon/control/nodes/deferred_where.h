/*
 * Questions "where is this rank?" that come too early. A home that was started anew knows the ranks
 * of other nodes only when these nodes have announced them again. Until then "it has not attached"
 * is no answer: the question waits, and is asked once more.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_DEFERRED_WHERE_H
#define PWC_CONTROL_DEFERRED_WHERE_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

struct deferred_where;

/* Asks once more for `from`. */
typedef void (*deferred_where_ask)(struct control *control, uint32_t from,
                                   const Pwc__WhereIs *question);

void deferred_where_open(struct control *control);
void deferred_where_close(struct control *control);
/* True: the question waits, `ask` follows soon, and it is not answered now. */
bool deferred_where_add(struct control *control, uint32_t from, const Pwc__WhereIs *question,
                        deferred_where_ask ask);

#endif

/*
 * Questions where a rank is that come too early: a home that was started anew knows the ranks of
 * other nodes when these have come back to it. Until then "it has not attached" is no answer.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_DEFERRED_WHERE_H
#define PWC_CONTROL_DEFERRED_WHERE_H

#include "daemon/control/control.h"
#include "proto/control.pb-c.h"

struct deferred_where;

void deferred_where_open(struct control *control);
void deferred_where_close(struct control *control);
/* Whether it was put aside, to be asked again (directory_client_frame) soon: then it is not
 * answered now. */
bool deferred_where_add(struct control *control, uint32_t from, const Pwc__WhereIs *question);

#endif

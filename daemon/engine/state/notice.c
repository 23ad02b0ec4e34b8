/* Notices: what the engine reports to its caller later (notice.h). Thread: the progress thread. */
#include "daemon/engine/state/notice.h"

void notice_push(struct engine *e, const struct engine_notice *notice)
{
    if (e->notice_tail - e->notice_head == e->notices_max)
        return;
    e->notices[e->notice_tail++ % e->notices_max] = *notice;
}

int engine_notice(struct engine *e, struct engine_notice *out)
{
    if (e->notice_head == e->notice_tail)
        return 0;
    *out = e->notices[e->notice_head++ % e->notices_max];
    /* An empty ring starts at its beginning again, so that few pages of a ring sized for the worst
     * case are touched. */
    if (e->notice_head == e->notice_tail)
        e->notice_head = e->notice_tail = 0;
    return 1;
}

bool engine_notice_pending(const struct engine *e)
{
    return e->notice_head != e->notice_tail;
}

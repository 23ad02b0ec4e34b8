/* Owns the list of questions that wait (deferred_where.h). */
#include "daemon/control/nodes/deferred_where.h"

#include <stdio.h>
#include <stdlib.h>
#include "daemon/control/threads/clock.h"

enum {
    SETTLED_MS = 1000, /* after its start, a home may not know all ranks for so long */
    AGAIN_MS = 5,
    QUESTIONS_MAX = 1024,
};

struct deferred_where {
    struct deferred_where *next;
    uint32_t from, uid, rank;
    uint64_t cookie;
    deferred_where_ask ask;
    char job[ENGINE_JOB_MAX];
};

static void ask_again(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct deferred_where *q = control->deferred;

    control->deferred = NULL;
    control->deferred_count = 0;
    while (q) {
        struct deferred_where *next = q->next;
        Pwc__WhereIs is = PWC__WHERE_IS__INIT;

        is.cookie = q->cookie;
        is.uid = q->uid;
        is.job = q->job;
        is.rank = q->rank;
        q->ask(control, q->from, &is);
        free(q);
        q = next;
    }
}

void deferred_where_open(struct control *control)
{
    uv_timer_init(&control->loop, &control->deferred_timer);
    control->deferred_timer.data = control;
}

void deferred_where_close(struct control *control)
{
    while (control->deferred) {
        struct deferred_where *q = control->deferred;

        control->deferred = q->next;
        free(q);
    }
}

bool deferred_where_add(struct control *control, uint32_t from, const Pwc__WhereIs *question,
                        deferred_where_ask ask)
{
    struct deferred_where *q;

    if (!control->inherited || control->deferred_count == QUESTIONS_MAX ||
        clock_ns() - control->served_ns > SETTLED_MS * UINT64_C(1000000))
        return false;
    q = malloc(sizeof(*q));
    if (!q)
        return false;
    *q = (struct deferred_where){.next = control->deferred,
                                 .from = from,
                                 .uid = question->uid,
                                 .rank = question->rank,
                                 .cookie = question->cookie,
                                 .ask = ask};
    snprintf(q->job, sizeof(q->job), "%s", question->job);
    control->deferred = q;
    control->deferred_count++;
    if (!uv_is_active((uv_handle_t *)&control->deferred_timer))
        uv_timer_start(&control->deferred_timer, ask_again, AGAIN_MS, 0);
    return true;
}

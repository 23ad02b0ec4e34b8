/* Owns the list of questions that wait (questions.h). */
#include "daemon/control/nodes/questions.h"

#include <stdio.h>
#include <stdlib.h>
#include "daemon/control/threads/clock.h"
#include "daemon/control/nodes/jobs.h"

enum {
    SETTLED_MS = 1000, /* so long after its start a home may not know everybody */
    AGAIN_MS = 5,
    QUESTIONS_MAX = 1024,
};

struct question {
    struct question *next;
    uint32_t from, uid, rank;
    uint64_t cookie;
    char job[ENGINE_JOB_MAX];
};

static void ask_again(uv_timer_t *timer)
{
    struct control *control = timer->data;
    struct question *q = control->questions;

    control->questions = NULL;
    control->question_count = 0;
    while (q) {
        struct question *next = q->next;
        Pwc__PeerFrame frame = PWC__PEER_FRAME__INIT;
        Pwc__WhereIs is = PWC__WHERE_IS__INIT;

        is.cookie = q->cookie;
        is.uid = q->uid;
        is.job = q->job;
        is.rank = q->rank;
        frame.body_case = PWC__PEER_FRAME__BODY_WHERE_IS;
        frame.where_is = &is;
        (void)jobs_frame(control, q->from, &frame);
        free(q);
        q = next;
    }
}

void questions_open(struct control *control)
{
    uv_timer_init(&control->loop, &control->ask_again);
    control->ask_again.data = control;
}

void questions_close(struct control *control)
{
    while (control->questions) {
        struct question *q = control->questions;

        control->questions = q->next;
        free(q);
    }
}

bool questions_postpone(struct control *control, uint32_t from, const Pwc__WhereIs *question)
{
    struct question *q;

    if (!control->inherited || control->question_count == QUESTIONS_MAX ||
        clock_ns() - control->served_ns > SETTLED_MS * UINT64_C(1000000))
        return false;
    q = malloc(sizeof(*q));
    if (!q)
        return false;
    *q = (struct question){.next = control->questions,
                           .from = from,
                           .uid = question->uid,
                           .rank = question->rank,
                           .cookie = question->cookie};
    snprintf(q->job, sizeof(q->job), "%s", question->job);
    control->questions = q;
    control->question_count++;
    if (!uv_is_active((uv_handle_t *)&control->ask_again))
        uv_timer_start(&control->ask_again, ask_again, AGAIN_MS, 0);
    return true;
}

/* Owns the doctor's findings that stand on the screen (hints.h). */
#include "tools/pwcctl/top/hints.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwcctl/top/model.h"

#define APART 0.9 /* seconds between two looks that are compared */
/* A rank may compute for some seconds while others wait for it, without a fault. */
#define STILL 10.0

typedef struct doctor_finding judge(const struct doctor_facts *facts);

static judge *const judges[TOP_HINTS_MAX] = {
    doctor_judge_links,      doctor_judge_events, doctor_judge_barriers, doctor_judge_operations,
    doctor_judge_neighbours, doctor_judge_ranks,  doctor_judge_waits};

static void forget_queues(struct top_hints *h)
{
    for (size_t i = 0; i < h->daemons; i++)
        json_decref(h->queues[i]);
    free(h->queues);
    h->queues = NULL;
    h->daemons = 0;
}

void top_hints_free(struct top_hints *h)
{
    forget_queues(h);
    *h = (struct top_hints){.count = 0};
}

static void keep_queues(struct top_hints *h, const struct top_look *looks, size_t count, double at)
{
    forget_queues(h);
    h->queues = calloc(count, sizeof(json_t *));
    h->daemons = h->queues != NULL ? count : 0;
    for (size_t i = 0; i < h->daemons; i++)
        h->queues[i] = json_incref(looks[i].queues);
    h->at = at;
}

/* Notes since when a context has taken nothing: if it is the same context as before, since then;
 * another context, since the earlier look. */
static void note_since(struct doctor_full *known, const struct doctor_full *now, double *since,
                       double earlier)
{
    bool same = known->count > 0 && known->rank == now->rank && strcmp(known->job, now->job) == 0;
    if (!same)
        *since = earlier;
    *known = *now;
}

/* Notes the job that stood still between the look at the time `earlier` and the present one. */
static void note_still(struct top_hints *h, const struct doctor_still *still, double earlier)
{
    bool same = h->still.count > 0 && strcmp(h->still.job, still->job) == 0;
    if (!same)
        h->still_since = earlier;
    h->still = *still;
}

static void take_stalls(struct top_hints *h, struct doctor_stalls *s, const struct top_look *looks,
                        size_t count, double at)
{
    bool compares = h->daemons == count && at - h->at >= APART;
    struct doctor_answers *all = calloc(count, sizeof(*all));
    json_t **later = calloc(count, sizeof(json_t *));
    for (size_t i = 0; all != NULL && later != NULL && i < count; i++) {
        all[i] = (struct doctor_answers){.queues = compares ? h->queues[i] : looks[i].queues,
                                         .ops = looks[i].ops,
                                         .jobs = looks[i].jobs,
                                         .nodes = looks[i].nodes,
                                         .clients = looks[i].clients};
        later[i] = compares ? looks[i].queues : NULL;
    }
    if (all != NULL && later != NULL)
        doctor_take_stalls(s, all, later, count);
    if (compares) {
        note_since(&h->events, &s->events, &h->events_since, h->at);
        note_since(&h->records, &s->records, &h->records_since, h->at);
        doctor_take_still(&s->still, all, later, count);
        note_still(h, &s->still, h->at);
    } else { /* too soon after the earlier look to compare */
        s->events = h->events;
        s->records = h->records;
        s->still = h->still;
    }
    s->still.quiet_ns = (uint64_t)((at - h->still_since) * 1e9);
    if (at - h->still_since < STILL)
        s->still.count = 0;
    s->events.quiet_ns = (uint64_t)((at - h->events_since) * 1e9);
    s->records.quiet_ns = (uint64_t)((at - h->records_since) * 1e9);
    if (compares || h->daemons != count)
        keep_queues(h, looks, count, at);
    free(all);
    free(later);
}

void top_hints_take(struct top_hints *h, const struct top_look *looks, size_t count, double at)
{
    struct doctor_facts *facts = calloc(1, sizeof(*facts));
    h->count = 0;
    if (facts == NULL)
        return;
    take_stalls(h, &facts->stalls, looks, count, at);
    for (size_t i = 0; i < TOP_HINTS_MAX; i++) {
        struct doctor_finding f = judges[i](facts);
        if (f.level == DOCTOR_WARN || f.level == DOCTOR_WRONG)
            snprintf(h->lines[h->count++], DOCTOR_TEXT_MAX, "%s", f.found);
    }
    free(facts);
}

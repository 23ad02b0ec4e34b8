/*
 * Hints for the screen: the doctor's findings about the programs of a look. The doctor looks twice,
 * a second apart, at contexts that take nothing; top looks again and again, so it knows since when
 * a context takes nothing.
 *
 * Pure.
 */
#ifndef PWCCTL_TOP_HINTS_H
#define PWCCTL_TOP_HINTS_H

#include "tools/pwcctl/doctor/held.h"

enum { TOP_HINTS_MAX = 7 };

struct top_look;

struct top_hints {
    json_t **queues; /* the queues of an earlier look, one for each of `daemons` */
    size_t daemons;
    double at;                          /* time of that look, in seconds */
    struct doctor_full events, records; /* found when two looks were last compared */
    /* When the context in `events`, or in `records`, was first seen full. */
    double events_since, records_since;
    struct doctor_still still;                  /* found when two looks were last compared */
    double still_since;                         /* when the job in `still` began to stand still */
    char lines[TOP_HINTS_MAX][DOCTOR_TEXT_MAX]; /* the hints to be shown */
    size_t count;
};

/* Takes the looks at all daemons. Without memory there are no hints. */
void top_hints_take(struct top_hints *hints, const struct top_look *looks, size_t count, double at);
void top_hints_free(struct top_hints *hints);

#endif

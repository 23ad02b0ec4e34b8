/* Lists the ranks of a job (job_view.h). Thread: control. */
#include "daemon/control/nodes/job_view.h"

#include <stdio.h>
#include <string.h>
#include "daemon/peering/names.h"

#define MORE_MAX 24u /* bytes of " and N more" */

/* Appends ranks `from` to `to` as "3" or "3-5". Where there is no room, appends nothing and returns
 * false. */
static bool append(char list[JOB_VIEW_RANKS_MAX], uint32_t from, uint32_t to)
{
    size_t used = strlen(list);
    char range[32];
    int length = from == to
                     ? snprintf(range, sizeof(range), "%s%u", used > 0 ? ", " : "", from)
                     : snprintf(range, sizeof(range), "%s%u-%u", used > 0 ? ", " : "", from, to);

    if (used + (size_t)length + MORE_MAX >= JOB_VIEW_RANKS_MAX)
        return false;
    memcpy(list + used, range, (size_t)length + 1);
    return true;
}

/* Lists the ranks for which `belongs` is true: "1, 4-7 and 12 more". Returns their number. */
static uint32_t list_ranks(const struct directory_job *job, const struct directory_gather *gather,
                           bool (*belongs)(const struct directory_job *job,
                                           const struct directory_gather *gather, uint32_t rank),
                           char list[JOB_VIEW_RANKS_MAX])
{
    uint32_t listed = 0, count = 0;
    bool full = false;

    list[0] = '\0';
    for (uint32_t rank = 0; rank < job->size; rank++) {
        uint32_t from = rank;

        if (!belongs(job, gather, rank))
            continue;
        while (rank + 1 < job->size && belongs(job, gather, rank + 1))
            rank++;
        count += rank - from + 1;
        full = full || !append(list, from, rank);
        listed += full ? 0 : rank - from + 1;
    }
    if (count > listed)
        snprintf(list + strlen(list), MORE_MAX, " and %u more", count - listed);
    return count;
}

static bool has_left(const struct directory_job *job, const struct directory_gather *gather,
                     uint32_t rank)
{
    return job->places[rank] == DIRECTORY_LEFT;
}

static bool is_missing(const struct directory_job *job, const struct directory_gather *gather,
                       uint32_t rank)
{
    return gather->parts[rank] == NULL;
}

struct view_job job_view(const struct directory_job *job, char gone[JOB_VIEW_RANKS_MAX])
{
    struct view_job view = {.job = job->name,
                            .uid = job->uid,
                            .size = job->kind == DIRECTORY_FIXED ? job->size : DIRECTORY_OPEN,
                            .live = job->live,
                            .left = job->left,
                            .names = names_count(job)};

    if (job->left > 0 && list_ranks(job, NULL, has_left, gone) > 0)
        view.gone = gone;
    return view;
}

struct view_exchange job_view_exchange(const struct directory_job *job,
                                       const struct directory_gather *gather, uint64_t now_ns,
                                       char missing[JOB_VIEW_RANKS_MAX])
{
    (void)list_ranks(job, gather, is_missing, missing);
    return (struct view_exchange){.job = job->name,
                                  .kind = gather->length == 0 ? "barrier" : "exchange",
                                  .uid = job->uid,
                                  .exchange = gather->sequence,
                                  .size = job->size,
                                  .have = gather->have,
                                  .missing = missing,
                                  .age_ns = gather->since_ns > 0 ? now_ns - gather->since_ns : 0};
}

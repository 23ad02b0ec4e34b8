/*
 * Makes rows of views (views/rows.h) from jobs and their exchanges, in the directory that a job's
 * home node keeps.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_JOB_VIEW_H
#define PWC_CONTROL_JOB_VIEW_H

#include "daemon/peering/directory.h"
#include "views/rows.h"

#define JOB_VIEW_RANKS_MAX 128u /* bytes of a list of ranks */

/* The row of a job; the list of ranks that have left is written to `gone`. */
struct view_job job_view(const struct directory_job *job, char gone[JOB_VIEW_RANKS_MAX]);

/* The row of an exchange that is open; the list of ranks that are missing is written to
 * `missing`. */
struct view_exchange job_view_exchange(const struct directory_job *job,
                                       const struct directory_gather *gather, uint64_t now_ns,
                                       char missing[JOB_VIEW_RANKS_MAX]);

#endif

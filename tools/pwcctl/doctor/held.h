/* Finds in the documents of all daemons what programs wait for. Pure. */
#ifndef PWCCTL_DOCTOR_HELD_H
#define PWCCTL_DOCTOR_HELD_H

#include <jansson.h>
#include "tools/pwcctl/doctor/doctor.h"

#define DOCTOR_LONG_NS INT64_C(1000000000) /* the doctor names a wait of this length or longer */

/* The documents of one daemon; NULL where it did not answer. */
struct doctor_answers {
    json_t *queues, *ops, *jobs, *nodes, *clients;
};

/* Notes a daemon's answer to the question for a view: `status` 0 and a document, or a negative
 * errno and why. A finding that nothing is wrong needs all rows of all daemons. */
void doctor_take_answer(struct doctor_stalls *s, enum doctor_view view, const char *socket,
                        int status, const json_t *document, const char *why);
/* Finds the row of a client, by its number and engine, which a row of another document has too.
 * NULL: it has gone. */
const json_t *doctor_client_of(const struct doctor_answers *a, const json_t *row);
/* Finds the row of the context that `row` is about: an operation that the context has submitted, or
 * the context's row in another look. NULL: it has gone. */
const json_t *doctor_context_of(const struct doctor_answers *a, const json_t *row);
/* The rank of the context that has submitted an operation; -1: it has gone. */
int64_t doctor_origin(const struct doctor_answers *a, const json_t *op);
/* Notes the job of the full context. */
void doctor_note_job(struct doctor_full *full, const json_t *client);
/* Returns whether a context of this document, "queues", may count as one that takes nothing. */
bool doctor_is_suspect(const json_t *queues);
/* Collects what programs wait for from the daemons' answers. `later` has each daemon's queues of a
 * later look; NULL: there is none, and then no context counts as one that takes nothing. */
void doctor_take_stalls(struct doctor_stalls *s, const struct doctor_answers *all,
                        json_t *const *later, size_t count);
/* Returns whether a context of this document, "queues", waits for events, a flush or room. */
bool doctor_has_waiter(const json_t *queues);
/* Finds a job that stands still, by comparing with `later`. A job with a context that only one look
 * shows does not stand still. */
void doctor_take_still(struct doctor_still *still, const struct doctor_answers *all,
                       json_t *const *later, size_t count);
/* Adds what the context holds up: operations of the same job of the same user, towards its rank.
 * One daemon serves many jobs, and all have a rank 0. */
void doctor_take_held(struct doctor_full *full, const struct doctor_answers *all, size_t count);

#endif

/* Finds whose operations a context holds up (held.h). Thread: the only one. */
#include "tools/pwcctl/doctor/held.h"
#include <stdio.h>
#include <string.h>

static json_int_t number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

/* Returns the row of an array that has the same engine as `like`, and the same number under `key`.
 */
static const json_t *find(const json_t *document, const char *rows, const char *key,
                          const json_t *like)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, rows), i, row)
    {
        if (number(row, key) == number(like, key) &&
            number(row, "engine") == number(like, "engine"))
            return row;
    }
    return NULL;
}

const json_t *doctor_client_of(const struct doctor_answers *a, const json_t *row)
{
    return find(a->clients, "clients", "client", row);
}

const json_t *doctor_context_of(const struct doctor_answers *a, const json_t *row)
{
    return find(a->queues, "queues", "session", row);
}

int64_t doctor_origin(const struct doctor_answers *a, const json_t *op)
{
    const json_t *context = doctor_context_of(a, op);
    return context != NULL ? number(context, "rank") : -1;
}

static const char *job_of(const json_t *client)
{
    const char *job = json_string_value(json_object_get(client, "job"));
    return job != NULL ? job : "";
}

void doctor_note_job(struct doctor_full *full, const json_t *client)
{
    full->known = client != NULL;
    full->uid = (uid_t)number(client, "uid");
    snprintf(full->job, sizeof(full->job), "%s", job_of(client));
}

static bool is_of_job(const struct doctor_full *full, const json_t *client)
{
    return full->known && client != NULL && (uid_t)number(client, "uid") == full->uid &&
           strcmp(job_of(client), full->job) == 0;
}

void doctor_take_held(struct doctor_full *full, const struct doctor_answers *all, size_t count)
{
    for (size_t d = 0; d < count; d++) {
        size_t i;
        json_t *row;
        json_array_foreach(json_object_get(all[d].ops, "ops"), i, row)
        {
            json_int_t age = number(row, "age_ns");
            if (number(row, "rank") != full->rank || age < DOCTOR_LONG_NS ||
                !is_of_job(full, doctor_client_of(&all[d], row)))
                continue;
            full->held++;
            if ((uint64_t)age <= full->held_ns)
                continue;
            full->held_ns = (uint64_t)age;
            full->held_of = doctor_origin(&all[d], row);
        }
    }
}

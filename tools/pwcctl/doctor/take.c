/* Takes what programs wait for from the documents of all daemons (held.h). Pure. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "tools/pwcctl/doctor/held.h"

#define FULL_PART 4 /* of a ring: with less than a quarter left it counts as full */

static json_int_t number(const json_t *row, const char *key)
{
    return json_integer_value(json_object_get(row, key));
}

static void copy(char *to, size_t size, const json_t *row, const char *key)
{
    const char *text = json_string_value(json_object_get(row, key));
    snprintf(to, size, "%s", text != NULL ? text : "");
}

/* ---- answers -----------------------------------------------------------------------------------
 */

/* Whether rows are missing that would matter. Operations come oldest first: those that are missing
 * are younger than the last one. */
static bool lacks_rows(enum doctor_view view, const json_t *document)
{
    const json_t *ops = json_object_get(document, "ops");
    if (!json_is_true(json_object_get(document, "truncated")))
        return false;
    return view != DOCTOR_OPS || json_array_size(ops) == 0 ||
           number(json_array_get(ops, json_array_size(ops) - 1), "age_ns") >= DOCTOR_LONG_NS;
}

void doctor_take_answer(struct doctor_stalls *s, enum doctor_view view, const char *socket,
                        int status, const json_t *document, const char *why)
{
    struct doctor_unheard *u = &s->unheard[view];
    if (u->status < 0 || (status == 0 && (*u->socket != '\0' || !lacks_rows(view, document))))
        return;
    u->status = status;
    snprintf(u->socket, sizeof(u->socket), "%s", socket);
    if (status < 0)
        snprintf(u->why, sizeof(u->why), "%s", why);
    else
        snprintf(u->why, sizeof(u->why), "%s: not all rows fit into the answer", socket);
}

/* ---- operations --------------------------------------------------------------------------------
 */

/* Returns the reason why there is no link with a node; NULL: there is one, or the node is ours. */
static const char *down(const json_t *nodes, json_int_t node)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(nodes, "nodes"), i, row)
    {
        if (number(row, "node") == node)
            return json_string_value(json_object_get(row, "reason"));
    }
    return NULL;
}

static void take_operations(struct doctor_stalls *s, const struct doctor_answers *a)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(a->ops, "ops"), i, row)
    {
        json_int_t age = number(row, "age_ns");
        const char *reason = down(a->nodes, number(row, "node"));
        struct doctor_operation *o = reason != NULL ? &s->cut : &s->operation;
        if (age < DOCTOR_LONG_NS)
            continue;
        o->count++;
        if ((uint64_t)age <= o->age_ns)
            continue;
        o->age_ns = (uint64_t)age;
        copy(o->kind, sizeof(o->kind), row, "kind");
        o->origin = doctor_origin(a, row);
        o->target = (unsigned)number(row, "rank");
        o->node = (unsigned)number(row, "node");
        snprintf(o->link, sizeof(o->link), "%s", reason != NULL ? reason : "");
    }
}

/* ---- events and records that are not taken -------------------------------------------------- */

static bool is_full(const json_t *row, const char *used, const char *size)
{
    json_int_t room = number(row, size);
    return room > 0 && number(row, used) >= room - room / FULL_PART;
}

static bool events_stand(const json_t *row)
{
    return number(row, "spill_bytes") > 0 || is_full(row, "remote_used", "remote_size");
}

static bool records_stand(const json_t *row)
{
    return is_full(row, "pair_used", "pair_size");
}

bool doctor_is_suspect(const json_t *queues)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(queues, "queues"), i, row)
    {
        if (events_stand(row) || records_stand(row))
            return true;
    }
    return false;
}

/* Compares two looks at the same context, a second apart. */
static void take_context(struct doctor_stalls *s, const struct doctor_answers *a,
                         const json_t *before, const json_t *now)
{
    if (events_stand(before) && events_stand(now) &&
        number(before, "delivered") == number(now, "delivered") &&
        number(before, "remote_used") == number(now, "remote_used") && s->events.count++ == 0) {
        s->events.rank = (unsigned)number(now, "rank");
        s->events.used = (uint64_t)number(now, "remote_used");
        s->events.size = (uint64_t)number(now, "remote_size");
        doctor_note_job(&s->events, doctor_client_of(a, now));
        s->events.spilled = (uint64_t)number(now, "spill_bytes");
    }
    if (records_stand(before) && records_stand(now) &&
        number(before, "pair_used") == number(now, "pair_used") && s->records.count++ == 0) {
        s->records.rank = (unsigned)number(now, "rank");
        s->records.writer = (unsigned)number(now, "pair_rank");
        s->records.used = (uint64_t)number(now, "pair_used");
        s->records.size = (uint64_t)number(now, "pair_size");
    }
}

static void take_queues(struct doctor_stalls *s, const struct doctor_answers *a,
                        const json_t *later)
{
    struct doctor_answers now = {.queues = (json_t *)later};
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(a->queues, "queues"), i, row)
    {
        const json_t *same = doctor_context_of(&now, row);
        if (same != NULL)
            take_context(s, a, row, same);
    }
}

/* ---- jobs --------------------------------------------------------------------------------------
 */

static void take_jobs(struct doctor_stalls *s, const json_t *jobs)
{
    struct doctor_barrier *b = &s->barrier;
    struct doctor_gone *g = &s->gone;
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(jobs, "exchanges"), i, row)
    {
        json_int_t age = number(row, "age_ns");
        if (age < DOCTOR_LONG_NS)
            continue;
        b->count++;
        if ((uint64_t)age <= b->age_ns)
            continue;
        b->age_ns = (uint64_t)age;
        b->have = (unsigned)number(row, "have");
        b->size = (unsigned)number(row, "size");
        copy(b->kind, sizeof(b->kind), row, "kind");
        copy(b->job, sizeof(b->job), row, "job");
        copy(b->missing, sizeof(b->missing), row, "missing");
    }
    json_array_foreach(json_object_get(jobs, "jobs"), i, row)
    {
        if (number(row, "left") == 0 || number(row, "live") == 0 || g->count++ > 0)
            continue;
        g->left = (unsigned)number(row, "left");
        g->live = (unsigned)number(row, "live");
        copy(g->job, sizeof(g->job), row, "job");
        copy(g->ranks, sizeof(g->ranks), row, "gone");
    }
}

/* ---- all of it ---------------------------------------------------------------------------------
 */

void doctor_take_stalls(struct doctor_stalls *s, const struct doctor_answers *all,
                        json_t *const *later, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        take_operations(s, &all[i]);
        take_jobs(s, all[i].jobs);
        take_queues(s, &all[i], later[i]);
    }
    if (s->events.count > 0)
        doctor_take_held(&s->events, all, count);
}

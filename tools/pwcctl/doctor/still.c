/* Finds a job in which nothing has happened between two looks while a rank waits for events
 * (held.h). Thread: the only one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/pwcctl/doctor/held.h"

enum { KEY_MAX = 160 };

/* How a rank waits. A job is {"job": name, "size": ranks, "moves": bool, "ranks": {rank: how}},
 * from the documents of all daemons. */
enum how {
    IN_NO_CALL, /* none of the rank's contexts waits in a call */
    FOR_OTHERS, /* one waits in a barrier or an exchange */
    FOR_EVENTS, /* one waits for an event, a flush or room */
};

static enum how how_of(const json_t *queue)
{
    const char *waits = json_string_value(json_object_get(queue, "waits"));
    if (waits == NULL || strcmp(waits, "-") == 0)
        return IN_NO_CALL;
    return strcmp(waits, "barrier") == 0 || strcmp(waits, "exchange") == 0 ? FOR_OTHERS
                                                                           : FOR_EVENTS;
}

bool doctor_has_waiter(const json_t *queues)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(queues, "queues"), i, row)
    {
        if (how_of(row) == FOR_EVENTS)
            return true;
    }
    return false;
}

/* Whether a context has done something between two looks that another context may have waited for.
 */
static bool moved(const json_t *before, const json_t *now)
{
    static const char *const counts[] = {"submitted",       "ended",          "delivered",
                                         "direct_put_ops",  "direct_get_ops", "direct_am_ops",
                                         "notices_matched", "handler_units"};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        if (json_integer_value(json_object_get(before, counts[i])) !=
            json_integer_value(json_object_get(now, counts[i])))
            return true;
    }
    return false;
}

/* Returns the entry of the client's job, made where there is none yet. NULL: no memory. */
static json_t *job_of(json_t *jobs, const json_t *client)
{
    char key[KEY_MAX];
    const char *job = json_string_value(json_object_get(client, "job"));
    snprintf(key, sizeof(key), "%lld %s",
             (long long)json_integer_value(json_object_get(client, "uid")), job != NULL ? job : "");
    if (json_object_get(jobs, key) == NULL)
        json_object_set_new(jobs, key,
                            json_pack("{s:s, s:I, s:b, s:{}}", "job", job != NULL ? job : "",
                                      "size", json_integer_value(json_object_get(client, "size")),
                                      "moves", 0, "ranks"));
    return json_object_get(jobs, key);
}

static void take_context(json_t *jobs, const json_t *client, const json_t *before,
                         const json_t *now)
{
    json_t *job = job_of(jobs, client), *ranks = json_object_get(job, "ranks");
    enum how how = now != NULL && how_of(before) == how_of(now) ? how_of(now) : IN_NO_CALL;
    char rank[KEY_MAX];
    snprintf(rank, sizeof(rank), "%lld",
             (long long)json_integer_value(json_object_get(before, "rank")));
    if (now == NULL || how_of(before) != how_of(now) || moved(before, now))
        json_object_set_new(job, "moves", json_true());
    if ((json_int_t)how >= json_integer_value(json_object_get(ranks, rank)))
        json_object_set_new(ranks, rank, json_integer(how));
}

/* ---- one job -----------------------------------------------------------------------------------
 */

static int by_number(const void *a, const void *b)
{
    const unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;
    return (x > y) - (x < y);
}

/* Writes the ranks that wait in the way `how`, as "0-1, 3"; "..." stands for ranks without room.
 * Returns how many ranks these are. */
static unsigned list(json_t *ranks, enum how how, char *text, size_t size)
{
    unsigned *numbers = calloc(json_object_size(ranks) + 1, sizeof(*numbers)), count = 0;
    size_t used = 0;
    const char *key;
    json_t *value;
    text[0] = '\0';
    if (numbers == NULL)
        return 0;
    json_object_foreach(ranks, key, value)
    {
        if (json_integer_value(value) == how)
            numbers[count++] = (unsigned)strtoul(key, NULL, 10);
    }
    qsort(numbers, count, sizeof(*numbers), by_number);
    for (unsigned first = 0, last; first < count; first = last + 1) {
        char run[32];
        for (last = first; last + 1 < count && numbers[last + 1] == numbers[last] + 1;)
            last++;
        snprintf(run, sizeof(run), "%s%u%s", used > 0 ? ", " : "", numbers[first],
                 last > first ? "-" : "");
        if (last > first)
            snprintf(run + strlen(run), sizeof(run) - strlen(run), "%u", numbers[last]);
        if (used + strlen(run) + sizeof(", ...") > size) {
            snprintf(text + used, size - used, ", ...");
            break;
        }
        used += (size_t)snprintf(text + used, size - used, "%s", run);
    }
    free(numbers);
    return count;
}

void doctor_take_still(struct doctor_still *still, const struct doctor_answers *all,
                       json_t *const *later, size_t count)
{
    json_t *jobs = json_object(), *job, *row;
    const char *key;
    size_t i;
    for (size_t d = 0; d < count; d++) {
        const struct doctor_answers now = {.queues = later[d]};
        json_array_foreach(json_object_get(all[d].queues, "queues"), i, row)
        {
            const json_t *client = doctor_client_of(&all[d], row);
            if (client != NULL && jobs != NULL)
                take_context(jobs, client, row, doctor_context_of(&now, row));
        }
    }
    json_object_foreach(jobs, key, job)
    {
        json_t *ranks = json_object_get(job, "ranks");
        json_int_t size = json_integer_value(json_object_get(job, "size"));
        json_int_t seen = (json_int_t)json_object_size(ranks);
        struct doctor_still s = {.unseen = size > seen ? (unsigned)(size - seen) : 0};
        if (json_is_true(json_object_get(job, "moves")))
            continue;
        snprintf(s.job, sizeof(s.job), "%s", json_string_value(json_object_get(job, "job")));
        s.waiting = list(ranks, FOR_EVENTS, s.events, sizeof(s.events));
        (void)list(ranks, IN_NO_CALL, s.elsewhere, sizeof(s.elsewhere));
        if (s.waiting == 0)
            continue;
        if (still->count++ > 0)
            continue; /* the first one is named */
        s.count = 1;
        *still = s;
    }
    json_decref(jobs);
}

/* Owns nothing: notes answers in memory that outlives the process, and finds them (team_answers.h).
 * Thread: control. */
#include "daemon/control/teams/team_answers.h"

#include <string.h>
#include "daemon/control/teams/answer_word.h"
#include "proto/session_abi.h"

/* The session with which this client makes the call over the world that `key` names. */
static struct client_session *caller(const struct client *c, const struct teams_key *key)
{
    struct client_session *s = c->sessions;

    while (s && (s->context != key->context || s->handle == CLIENT_NONE || s->closing))
        s = s->next;
    return s;
}

static _Atomic uint64_t *of_session(const struct client_session *s)
{
    struct session_shared *shared = s->mapping.base;

    return &shared->world_answer;
}

/* The team that is the parent; NULL: the parent is the world, or no team of this job. */
static const struct team *parent_of(const struct control *control, const struct teams_key *key)
{
    const struct team *t = key->parent == 0 ? NULL : team_find(control, key->parent);

    return t && t->uid == key->id.uid && strcmp(t->job, key->id.job) == 0 ? t : NULL;
}

/* The word for the answer to this client, which is one member of the parent; NULL: the client is no
 * member. */
static _Atomic uint64_t *place_of(const struct control *control, const struct teams_key *key,
                                  const struct client *c)
{
    const struct team *parent = parent_of(control, key);

    if (key->parent == 0) {
        const struct client_session *s = caller(c, key);

        return s ? of_session(s) : NULL;
    }
    for (uint32_t i = 0; parent && i < parent->part_count; i++)
        for (uint32_t k = 0; k < parent->parts[i].count; k++) {
            const struct team_member *m = &parent->parts[i].members[k];

            if (m->session && m->session->client == c)
                return m->answer;
        }
    return NULL;
}

void team_answers_note(const struct control *control, const struct teams_key *key,
                       const struct client *c, int status)
{
    _Atomic uint64_t *place = place_of(control, key, c);

    if (place && answer_load(place).calls <= key->call)
        answer_store(place, (struct teams_answer){.calls = key->call + 1, .status = status});
}

bool team_answers_find(const struct control *control, const struct teams_key *key,
                       const struct client *c, int *status)
{
    const struct teams_answer last = answer_load(place_of(control, key, c));

    *status = last.status;
    return last.calls == key->call + 1;
}

bool team_answers_refused(const struct control *control, const struct teams_key *key,
                          const struct client *c)
{
    int status;

    return team_answers_find(control, key, c, &status) && status < 0;
}

static bool any_of_world(const struct control *control, const struct teams_key *key, int *status)
{
    for (const struct client *c = control->clients; c; c = c->next) {
        const struct client_session *s =
            c->state == CLIENT_SERVED && c->uid == key->id.uid && strcmp(c->job, key->id.job) == 0
                ? caller(c, key)
                : NULL;

        if (s && teams_answer_ends(answer_load(of_session(s)), key->call, status))
            return true;
    }
    return false;
}

/* Whether a team that this call has made is started, and still has members. */
static bool is_made(const struct control *control, const struct teams_key *key)
{
    for (const struct team *t = control->node_teams; t; t = t->next)
        for (uint32_t i = 0; t->phase == TEAM_STARTED && team_is_of(t, key) && i < t->part_count;
             i++)
            for (uint32_t k = 0; k < t->parts[i].count; k++)
                if (t->parts[i].members[k].session)
                    return true;
    return false;
}

bool team_answers_any(const struct control *control, const struct teams_key *key, int *status)
{
    const struct team *parent = parent_of(control, key);

    *status = 0;
    if (is_made(control, key))
        return true;
    if (key->parent == 0)
        return any_of_world(control, key, status);
    for (uint32_t i = 0; parent && i < parent->part_count; i++)
        for (uint32_t k = 0; k < parent->parts[i].count; k++) {
            const struct team_member *m = &parent->parts[i].members[k];

            if (teams_answer_ends(answer_load(m->answer), key->call, status))
                return true; /* also if the member has left since then */
        }
    return false;
}

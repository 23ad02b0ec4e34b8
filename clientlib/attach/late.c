/* Answers that come too late (late.h). Thread: any, with the link's lock. */
#include "clientlib/attach/late.h"

#include <stdlib.h>

struct late {
    struct late *next;
    uint32_t id;
    uint32_t session; /* of the context that the remote, offload or place belongs to; else 0 */
};

/* Whether the answer to this request will bring one of the things that late.h lists. `session` is
 * set to the session of the context that the thing belongs to, or to 0. */
static bool asks_for_a_thing(const Pwc__ClientRequest *request, uint32_t *session)
{
    *session = 0;
    switch (request->body_case) {
    case PWC__CLIENT_REQUEST__BODY_BIND:
        *session = request->bind->session;
        return true;
    case PWC__CLIENT_REQUEST__BODY_OFFLOAD_CREATE:
        *session = request->offload_create->session;
        return true;
    case PWC__CLIENT_REQUEST__BODY_TEAM_JOIN:
        *session = request->team_join->session;
        return true;
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN:
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN:
    case PWC__CLIENT_REQUEST__BODY_REGION_OPEN:
    case PWC__CLIENT_REQUEST__BODY_PROGRAM_LOAD:
        return true;
    default:
        return false;
    }
}

void late_note(struct late **list, const Pwc__ClientRequest *request)
{
    struct late *late;
    uint32_t session;

    if (!asks_for_a_thing(request, &session))
        return;
    late = malloc(sizeof(*late));
    if (!late)
        return;
    *late = (struct late){.next = *list, .id = request->id, .session = session};
    *list = late;
}

/* Makes the request that ends the thing. False: the answer brings nothing: an error, for
 * example. */
static bool end_of(const Pwc__ClientReply *reply, uint32_t session, struct late_end *end)
{
    pwc__client_request__init(&end->request);
    switch (reply->body_case) {
    case PWC__CLIENT_REPLY__BODY_CONTEXT_OPENED:
        pwc__context_close__init(&end->what.context);
        end->what.context.session = reply->context_opened->session;
        end->request.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE;
        end->request.context_close = &end->what.context;
        return true;
    case PWC__CLIENT_REPLY__BODY_SEGMENT_OPENED:
        pwc__segment_close__init(&end->what.segment);
        end->what.segment.segment = reply->segment_opened->segment;
        end->request.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE;
        end->request.segment_close = &end->what.segment;
        return true;
    case PWC__CLIENT_REPLY__BODY_REGION_OPENED:
        if (!reply->region_opened->key)
            return false;
        pwc__region_close__init(&end->what.region);
        end->what.region.slot = reply->region_opened->key->slot;
        end->what.region.generation = reply->region_opened->key->generation;
        end->request.body_case = PWC__CLIENT_REQUEST__BODY_REGION_CLOSE;
        end->request.region_close = &end->what.region;
        return true;
    case PWC__CLIENT_REPLY__BODY_BOUND:
        pwc__unbind__init(&end->what.remote);
        end->what.remote.session = session;
        end->what.remote.remote = reply->bound->remote;
        if (reply->bound->pair && reply->bound->pair->fresh)
            end->what.remote.pair = reply->bound->pair->number;
        end->request.body_case = PWC__CLIENT_REQUEST__BODY_UNBIND;
        end->request.unbind = &end->what.remote;
        return true;
    case PWC__CLIENT_REPLY__BODY_PROGRAM_LOADED:
        pwc__program_unload__init(&end->what.program);
        end->what.program.program = reply->program_loaded->program;
        end->request.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_UNLOAD;
        end->request.program_unload = &end->what.program;
        return true;
    case PWC__CLIENT_REPLY__BODY_OFFLOAD_CREATED:
        pwc__offload_destroy__init(&end->what.offload);
        end->what.offload.session = session;
        end->what.offload.offload = reply->offload_created->offload;
        end->request.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_DESTROY;
        end->request.offload_destroy = &end->what.offload;
        return true;
    case PWC__CLIENT_REPLY__BODY_TEAM_FORMED:
        if (reply->team_formed->number == 0)
            return false;
        pwc__team_leave__init(&end->what.team);
        end->what.team.session = session;
        end->what.team.number = reply->team_formed->number;
        end->what.team.broken = true; /* the others would wait for this member */
        end->request.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE;
        end->request.team_leave = &end->what.team;
        return true;
    default:
        return false;
    }
}

bool late_answer(struct late **list, const Pwc__ClientReply *reply, struct late_end *end)
{
    struct late **at = list, *late;
    bool brings;

    while (*at && (*at)->id != reply->id)
        at = &(*at)->next;
    late = *at;
    if (!late)
        return false;
    *at = late->next;
    brings = end_of(reply, late->session, end);
    free(late);
    return brings;
}

void late_destroy(struct late **list)
{
    while (*list) {
        struct late *late = *list;

        *list = late->next;
        free(late);
    }
}

/* Builds requests and reads answers; owns nothing (ask.h). Thread: one at a time for each socket.
 */
#include "tests/lib/raw/ask.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void keep(struct answer *out, const Pwc__ClientReply *reply)
{
    switch (reply->body_case) {
    case PWC__CLIENT_REPLY__BODY_ERROR:
        out->status = reply->error->status;
        snprintf(out->text, sizeof(out->text), "%s", reply->error->text);
        break;
    case PWC__CLIENT_REPLY__BODY_CONTEXT_OPENED: {
        const Pwc__Rings *rings = reply->context_opened->rings;

        out->handle = reply->context_opened->session;
        memcpy(out->sizes,
               (uint32_t[5]){rings->submit, rings->local, rings->remote, rings->reply_submit,
                             rings->reply_event},
               sizeof(out->sizes));
        break;
    }
    case PWC__CLIENT_REPLY__BODY_SEGMENT_OPENED:
        out->handle = reply->segment_opened->segment;
        out->length = reply->segment_opened->length;
        break;
    case PWC__CLIENT_REPLY__BODY_REGION_OPENED: {
        const Pwc__Key *key = reply->region_opened->key;

        out->handle = out->key.slot = key->slot;
        out->key.node = key->node;
        out->key.generation = key->generation;
        if (key->secret.len == sizeof(out->key.secret))
            memcpy(out->key.secret, key->secret.data, sizeof(out->key.secret));
        break;
    }
    case PWC__CLIENT_REPLY__BODY_OFFLOAD_CREATED:
        out->handle = reply->offload_created->offload;
        break;
    case PWC__CLIENT_REPLY__BODY_PROGRAM_LOADED:
        out->handle = reply->program_loaded->program;
        break;
    case PWC__CLIENT_REPLY__BODY_BOUND:
        out->handle = reply->bound->remote;
        out->length = reply->bound->length;
        out->pair =
            reply->bound->pair && reply->bound->pair->fresh ? reply->bound->pair->number : 0;
        break;
    default:
        break;
    }
}

int ask_nothing(int s, struct answer *out)
{
    Pwc__ClientReply *reply;

    *out = (struct answer){.status = -ECONNRESET};
    reply = raw_reply(s, out->fds, &out->fd_count);
    if (!reply)
        return out->status;
    out->status = 0;
    keep(out, reply);
    pwc__client_reply__free_unpacked(reply, NULL);
    return out->status;
}

int ask(int s, Pwc__ClientRequest *request, struct answer *out)
{
    if (raw_request(s, 9, request))
        return ask_nothing(s, out);
    *out = (struct answer){.status = -ECONNRESET};
    return out->status;
}

void answer_close(struct answer *answer)
{
    for (int i = 0; i < answer->fd_count; i++)
        close(answer->fds[i]);
    answer->fd_count = 0;
}

static int open_context(int s, uint32_t bytes, bool direct, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__ContextOpen open = PWC__CONTEXT_OPEN__INIT;
    Pwc__Rings rings = PWC__RINGS__INIT;

    rings.submit = rings.local = rings.remote = rings.reply_submit = bytes;
    rings.reply_event = 8 * bytes; /* as large as events of the longest active messages need */
    open.rings = &rings;
    open.direct = direct;
    r.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN;
    r.context_open = &open;
    return ask(s, &r, out);
}

int ask_context(int s, uint32_t bytes, struct answer *out)
{
    return open_context(s, bytes, false, out);
}

int ask_direct_context(int s, uint32_t bytes, struct answer *out)
{
    return open_context(s, bytes, true, out);
}

int ask_unbind(int s, uint32_t session, uint32_t remote)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__Unbind unbind = PWC__UNBIND__INIT;
    struct answer answer;

    unbind.session = session;
    unbind.remote = remote;
    r.body_case = PWC__CLIENT_REQUEST__BODY_UNBIND;
    r.unbind = &unbind;
    return ask(s, &r, &answer);
}

int ask_context_close(int s, uint32_t session)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__ContextClose close_it = PWC__CONTEXT_CLOSE__INIT;
    struct answer answer;

    close_it.session = session;
    r.body_case = PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE;
    r.context_close = &close_it;
    return ask(s, &r, &answer);
}

int ask_segment(int s, uint64_t length, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__SegmentOpen open = PWC__SEGMENT_OPEN__INIT;

    open.length = length;
    r.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN;
    r.segment_open = &open;
    return ask(s, &r, out);
}

int ask_segment_close(int s, uint32_t segment)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__SegmentClose close_it = PWC__SEGMENT_CLOSE__INIT;
    struct answer answer;

    close_it.segment = segment;
    r.body_case = PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE;
    r.segment_close = &close_it;
    return ask(s, &r, &answer);
}

int ask_region(int s, uint32_t segment, uint64_t offset, uint64_t length, uint32_t rights,
               struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__RegionOpen open = PWC__REGION_OPEN__INIT;

    open.segment = segment;
    open.offset = offset;
    open.length = length;
    open.rights = rights;
    r.body_case = PWC__CLIENT_REQUEST__BODY_REGION_OPEN;
    r.region_open = &open;
    return ask(s, &r, out);
}

int ask_bind(int s, uint32_t session, uint64_t peer, const struct answer *key, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__Bind bind = PWC__BIND__INIT;
    Pwc__Key packed = PWC__KEY__INIT;

    bind.session = session;
    bind.peer = peer;
    if (key) {
        packed.node = key->key.node;
        packed.slot = key->key.slot;
        packed.generation = key->key.generation;
        packed.secret.data = (uint8_t *)(uintptr_t)key->key.secret;
        packed.secret.len = sizeof(key->key.secret);
        bind.key = &packed;
    }
    r.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
    r.bind = &bind;
    return ask(s, &r, out);
}

/* Owns the images of programs until the engine has copied them (request_program.h). Thread:
 * control. */
#include "daemon/control/requests/request_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/clients/admission.h"
#include "daemon/control/clients/client_calls.h"
#include "daemon/control/clients/client_stream.h"
#include "daemon/control/clients/client_table.h"
#include "daemon/control/clients/reply.h"
#include "daemon/control/threads/worker.h"
#include "daemon/handlers/image.h"
#include "proto/handler_abi.h"
#include "shm_ring/fault.h"

/* A program that is being loaded: the call, and the checked copy of its image. */
struct loading {
    struct call call;
    uint32_t request;
    uint32_t bytes;
    uint64_t image[];
};

/* ---- checks --------------------------------------------------------------------------------- */

/* Whether the configuration lets the client's user load programs. If not, the client gets an
 * error. */
static bool may_load(struct client *c, uint32_t request)
{
    enum config_handlers policy = (enum config_handlers)c->control->config->handlers;

    if (policy == CONFIG_HANDLERS_ON ||
        (policy == CONFIG_HANDLERS_OWN && c->uid == c->control->admission.own))
        return true;
    reply_error(c, request, -EPERM,
                policy == CONFIG_HANDLERS_OFF
                    ? "handlers are switched off here (handlers = off); user %u asks"
                    : "handlers of the daemon's own user alone are run here (handlers = own), and "
                      "not of user %u: handlers = on admits all",
                (unsigned)c->uid);
    return false;
}

/* Checks an image. If it is wrong, the client gets an error that says what is wrong. */
static bool image_is_good(struct client *c, uint32_t request, const void *image, size_t bytes)
{
    struct image_error error;
    int rc = image_check(image, bytes, &error);

    if (rc == 0)
        return true;
    if (error.place == HANDLER_NONE)
        reply_error(c, request, rc, "the program: %s (%lld)", error.reason, (long long)error.value);
    else if (error.function[0] != 0)
        reply_error(c, request, rc, "function %s, instruction %u: %s (%lld)", error.function,
                    error.place, error.reason, (long long)error.value);
    else
        reply_error(c, request, rc, "instruction %u: %s (%lld)", error.place, error.reason,
                    (long long)error.value);
    return false;
}

/* Makes a copy of the image, which nobody else can write to, and checks it. NULL: the client has
 * got an error. */
static struct loading *checked_copy(struct client *c, uint32_t request,
                                    const ProtobufCBinaryData *image)
{
    struct loading *l;

    if (!may_load(c, request))
        return NULL;
    l = malloc(sizeof(*l) + image->len);
    if (!l) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return NULL;
    }
    l->request = request;
    l->bytes = (uint32_t)image->len;
    if (image->len > 0)
        memcpy(l->image, image->data, image->len);
    if (image_is_good(c, request, l->image, image->len))
        return l;
    free(l);
    return NULL;
}

void request_program_check(struct client *c, uint32_t request, const Pwc__ProgramCheck *check)
{
    struct loading *l;

    if (c->state == CLIENT_STRANGER && !client_may_look(c, request))
        return;
    if (c->state == CLIENT_LOOKING)
        client_await_question(c);
    l = checked_copy(c, request, &check->image);
    if (l)
        reply_done(c, request);
    free(l);
}

/* ---- loading --------------------------------------------------------------------------------- */

static void give_back(struct client *c, uint32_t room)
{
    quota_give(c, QUOTA_PROGRAMS, 1);
    quota_give(c, QUOTA_PROGRAM_BYTES, room);
}

static void loaded(struct call *call)
{
    struct client *c = call->owner;
    struct loading *l = (struct loading *)call;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__ProgramLoaded program = PWC__PROGRAM_LOADED__INIT;

    if (call->result < 0)
        give_back(c, engine_program_room(l->bytes));
    if (c->state == CLIENT_SERVED && call->result < 0) {
        reply_error(c, l->request, call->result,
                    "a program of %u bytes: this daemon has no room for another one", l->bytes);
    } else if (c->state == CLIENT_SERVED) {
        program.program = (uint32_t)call->result;
        reply.id = l->request;
        reply.body_case = PWC__CLIENT_REPLY__BODY_PROGRAM_LOADED;
        reply.program_loaded = &program;
        client_reply(c, &reply, NULL, 0);
    }
    free(l);
}

void request_program_load(struct client *c, uint32_t request, const Pwc__ProgramLoad *load)
{
    struct loading *l = checked_copy(c, request, &load->image);
    uint32_t room = l ? engine_program_room(l->bytes) : 0;
    char why[REQUEST_WHY_MAX];
    int rc;

    if (!l)
        return;
    rc = quota_take(c, QUOTA_PROGRAMS, 1, why, sizeof(why));
    if (rc == 0) {
        rc = quota_take(c, QUOTA_PROGRAM_BYTES, room, why, sizeof(why));
        if (rc < 0)
            quota_give(c, QUOTA_PROGRAMS, 1);
    }
    if (rc < 0) {
        reply_error(c, request, rc, "a program: %s", why);
        free(l);
        return;
    }
    FAULT(PROGRAM_TAKEN);
    client_call_in(c, &l->call, CALL_PROGRAM_LOAD, loaded);
    l->call.program = (struct call_program){
        .client = c->number, .image = (const void *)l->image, .bytes = l->bytes};
    call_post(c->worker->progress, &l->call);
}

static void unloaded(struct call *call)
{
    struct client *c = call->owner;
    uint32_t request = (uint32_t)call->cookie;

    if (call->result > 0)
        give_back(c, (uint32_t)call->result);
    if (c->state != CLIENT_SERVED)
        return;
    if (call->result == -EBUSY)
        reply_error(c, request, -EBUSY, "program %u: an offload runs it: destroy that first",
                    call->program.program);
    else if (call->result < 0)
        reply_error(c, request, call->result, "program %u is not yours, or not loaded",
                    call->program.program);
    else
        reply_done(c, request);
}

void request_program_unload(struct client *c, uint32_t request, const Pwc__ProgramUnload *unload)
{
    struct call *call = client_call(c, CALL_PROGRAM_UNLOAD, unloaded);

    if (!call) {
        reply_error(c, request, -ENOMEM, "this daemon is out of memory");
        return;
    }
    call->cookie = request;
    call->program = (struct call_program){.client = c->number, .program = unload->program};
    call_post(c->worker->progress, call);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Whether `c` may see the programs of the worker's client with this number. */
static bool sees(const struct client *c, const struct worker *w, uint32_t number)
{
    const struct client *owner = worker_client(w, number);

    return c->sees_all || (owner && owner->uid == c->uid);
}

/* Sends the image of a program that this client may see. Returns 0, -ENOENT or -ENOMEM. */
static int send_image(struct client *c, uint32_t request, const Pwc__ProgramRead *read)
{
    const struct control *control = c->control;
    const struct worker *w =
        read->engine < control->worker_count ? &control->workers[read->engine] : NULL;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__ProgramImage image = PWC__PROGRAM_IMAGE__INIT;
    struct image_error error;
    uint32_t owner;
    void *copy;
    int rc;

    if (!w || !w->progress)
        return -ENOENT;
    copy = malloc(HANDLER_IMAGE_MAX);
    if (!copy)
        return -ENOMEM;
    rc = engine_view_image(progress_engine(w->progress), read->program, copy, HANDLER_IMAGE_MAX,
                           &owner);
    if (rc > 0 && sees(c, w, owner) && image_check(copy, (size_t)rc, &error) == 0) {
        image.image.data = copy;
        image.image.len = (size_t)rc;
        reply.id = request;
        reply.body_case = PWC__CLIENT_REPLY__BODY_PROGRAM_IMAGE;
        reply.program_image = &image;
        client_reply(c, &reply, NULL, 0);
        rc = 0;
    } else {
        rc = -ENOENT;
    }
    free(copy);
    return rc;
}

void request_program_read(struct client *c, uint32_t request, const Pwc__ProgramRead *read)
{
    int rc;

    if (c->state == CLIENT_STRANGER && !client_may_look(c, request))
        return;
    if (c->state == CLIENT_LOOKING)
        client_await_question(c);
    rc = send_image(c, request, read);
    if (rc < 0)
        reply_error(c, request, rc,
                    "program %u of engine %u: there is none that is shown to you: see \"pwcctl "
                    "programs\"",
                    read->program, read->engine);
}

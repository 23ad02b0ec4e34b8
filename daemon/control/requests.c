/* Owns the way from a client's frame to the request that it makes, and the plain replies. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "client.h"

void reply_done(struct client *c, uint32_t request)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Done done = PWC__DONE__INIT;

    reply.id = request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_DONE;
    reply.done = &done;
    client_reply(c, &reply, NULL, 0);
}

void reply_error(struct client *c, uint32_t request, int status, const char *format, ...)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Error error = PWC__ERROR__INIT;
    va_list arguments;
    char text[512];

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_clean(text);
    error.status = status;
    error.text = text;
    reply.id = request;
    reply.body_case = PWC__CLIENT_REPLY__BODY_ERROR;
    reply.error = &error;
    client_reply(c, &reply, NULL, 0);
}

/* What only a rank of a job may ask for. */
static void handle_served(struct client *c, const Pwc__ClientRequest *r)
{
    if (c->state != CLIENT_SERVED) {
        reply_error(c, r->id, -EPERM, "a request before Welcome: say Hello and wait for it");
        return;
    }
    switch (r->body_case) {
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_OPEN:
        request_context_open(c, r->id, r->context_open);
        break;
    case PWC__CLIENT_REQUEST__BODY_CONTEXT_CLOSE:
        request_context_close(c, r->id, r->context_close);
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_OPEN:
        request_segment_open(c, r->id, r->segment_open);
        break;
    case PWC__CLIENT_REQUEST__BODY_SEGMENT_CLOSE:
        request_segment_close(c, r->id, r->segment_close);
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_OPEN:
        request_region_open(c, r->id, r->region_open);
        break;
    case PWC__CLIENT_REQUEST__BODY_REGION_CLOSE:
        request_region_close(c, r->id, r->region_close);
        break;
    case PWC__CLIENT_REQUEST__BODY_BIND:
        request_bind(c, r->id, r->bind);
        break;
    case PWC__CLIENT_REQUEST__BODY_UNBIND:
        request_unbind(c, r->id, r->unbind);
        break;
    case PWC__CLIENT_REQUEST__BODY_EXCHANGE:
        request_exchange(c, r->id, r->exchange);
        break;
    default:
        reply_error(c, r->id, -ENOSYS,
                    "request %u has a kind that this daemon does not know: update pwcd", r->id);
        break;
    }
}

/* Where an unpacked frame stands; tells a frame that is none from want of memory. */
static void *take(void *refused, size_t size)
{
    void *memory = malloc(size);

    if (!memory)
        *(bool *)refused = true;
    return memory;
}

static void give(void *refused, void *memory)
{
    free(memory);
}

void request_handle(struct client *c, const uint8_t *body, size_t size)
{
    bool refused = false;
    ProtobufCAllocator memory = {.alloc = take, .free = give, .allocator_data = &refused};
    Pwc__ClientRequest *r = pwc__client_request__unpack(&memory, size, body);

    if (!r && refused) {
        log_line(&c->control->log, LOG_LEVEL_ERROR,
                 "out of memory: a request of pid %d cannot be read, it is hung up on",
                 (int)c->pid);
        client_end(c, NULL);
        return;
    }
    if (!r || r->id == 0) {
        if (r)
            pwc__client_request__free_unpacked(r, &memory);
        client_end(c, r ? "a request with id 0" : "a frame that is no request");
        return;
    }
    if (r->body_case == PWC__CLIENT_REQUEST__BODY_INSPECT)
        request_inspect(c, r->id, r->inspect);
    else if (r->body_case == PWC__CLIENT_REQUEST__BODY_HELLO)
        request_hello(c, r->id, r->hello);
    else
        handle_served(c, r);
    pwc__client_request__free_unpacked(r, &memory);
}

/* Owns the plain replies (reply.h). Thread: control. */
#include "daemon/control/clients/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include "daemon/control/clients/client_stream.h"

void reply_done(struct client *c, uint32_t request)
{
    reply_done_by(c, request, 0);
}

void reply_done_by(struct client *c, uint32_t request, pid_t pid)
{
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    Pwc__Done done = PWC__DONE__INIT;

    done.pid = (uint32_t)pid;
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

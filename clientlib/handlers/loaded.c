/* Owns the programs that clients have loaded (loaded.h). Thread: any. */
#include "clientlib/handlers/loaded.h"

#include <errno.h>
#include <stdlib.h>
#include "clientlib/attach/client.h"
#include "proto/handler_abi.h"

/* ---- loading --------------------------------------------------------------------------------- */

static int accept_loaded(void *context, const Pwc__ClientReply *reply, int *fds, int fd_count)
{
    pwc_program *program = context;

    (void)fds;
    program->number = reply->program_loaded->program;
    return fd_count == 0 ? 1 : -EPROTO;
}

int pwc_private_program_load(pwc_client *client, const void *image, size_t size, pwc_program **out)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramLoad load = PWC__PROGRAM_LOAD__INIT;
    pwc_program *program;
    int rc = client_may_ask(client);

    if (rc < 0)
        return rc;
    program = malloc(sizeof(*program));
    if (!program)
        return -ENOMEM;
    *program = (pwc_program){.client = client};
    load.image.data = (uint8_t *)(uintptr_t)image;
    load.image.len = size;
    request.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_LOAD;
    request.program_load = &load;
    rc = daemon_call(&client->link, &request, PWC__CLIENT_REPLY__BODY_PROGRAM_LOADED, accept_loaded,
                     program);
    if (rc < 0) {
        free(program);
        return rc;
    }
    pthread_mutex_lock(&client->lock);
    program->next = client->programs;
    client->programs = program;
    pthread_mutex_unlock(&client->lock);
    *out = program;
    return 0;
}

int pwc_private_refuse(pwc_client *client, int error, const char *text)
{
    return client_is_forked(client) ? -EOWNERDEAD : daemon_link_refuse(&client->link, error, text);
}

static void unlink_program(struct pwc_program *program)
{
    struct pwc_client *client = program->client;
    struct pwc_program **at;

    pthread_mutex_lock(&client->lock);
    for (at = &client->programs; *at != program; at = &(*at)->next)
        continue;
    *at = program->next;
    pthread_mutex_unlock(&client->lock);
}

int pwc_program_unload(pwc_program *program)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramUnload unload = PWC__PROGRAM_UNLOAD__INIT;
    int rc = client_may_ask(program->client);

    if (rc < 0)
        return rc;
    unload.program = program->number;
    request.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_UNLOAD;
    request.program_unload = &unload;
    rc = daemon_end(&program->client->link, &request);
    if (rc != -EBUSY) {
        unlink_program(program);
        free(program);
    }
    return rc;
}

void loaded_free(struct pwc_client *client)
{
    while (client->offloads) {
        struct pwc_offload *offload = client->offloads;

        client->offloads = offload->next;
        free(offload);
    }
    while (client->programs) {
        struct pwc_program *program = client->programs;

        client->programs = program->next;
        free(program);
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

int pwc_handler_limits(const pwc_client *client, struct pwc_handler_limits *out)
{
    *out = (struct pwc_handler_limits){.hpus = 1,
                                       .instructions = HANDLER_INSTRUCTIONS_MAX,
                                       .constants = HANDLER_CONSTANTS_MAX,
                                       .depth = HANDLER_FRAMES,
                                       .stack = HANDLER_FRAME_BYTES,
                                       .counters = HANDLER_COUNTERS,
                                       .packet = client->packed_max / 64 * 64,
                                       .state = HANDLER_STATE_MAX};
    return 0;
}

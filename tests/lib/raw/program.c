/* Builds images and requests; owns nothing (program.h). Thread: one at a time for each socket. */
#include "tests/lib/raw/program.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void raw_image(struct raw_image *to, const struct handler_instruction *code, uint32_t count,
               uint32_t constants)
{
    const struct handler_function function = {0, "payload"};
    uint8_t *bytes = (uint8_t *)to->words;

    memset(to, 0, sizeof(*to));
    to->head = (struct handler_image){.magic = HANDLER_IMAGE_MAGIC,
                                      .instructions = count,
                                      .constants = constants,
                                      .entry = {HANDLER_NONE, 0, HANDLER_NONE},
                                      .functions = 1};
    memcpy(bytes + sizeof(to->head) + sizeof(*code), code, count * sizeof(*code));
    memcpy(bytes + image_functions_at(count, constants), &function, sizeof(function));
    to->size = image_bytes(count, constants, 1);
}

void raw_image_plain(struct raw_image *to, uint32_t constants)
{
    static const struct handler_instruction code[] = {{.opcode = CODE_ALU64 | CODE_MOV},
                                                      {.opcode = CODE_DO_EXIT}};

    raw_image(to, code, 2, constants);
}

int ask_program_load(int s, const void *image, size_t size, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramLoad load = PWC__PROGRAM_LOAD__INIT;

    load.image.data = (uint8_t *)(uintptr_t)image;
    load.image.len = size;
    r.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_LOAD;
    r.program_load = &load;
    return ask(s, &r, out);
}

int ask_program_check(int s, const void *image, size_t size, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramCheck check = PWC__PROGRAM_CHECK__INIT;

    check.image.data = (uint8_t *)(uintptr_t)image;
    check.image.len = size;
    r.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_CHECK;
    r.program_check = &check;
    return ask(s, &r, out);
}

int ask_program_unload(int s, uint32_t program, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramUnload unload = PWC__PROGRAM_UNLOAD__INIT;

    unload.program = program;
    r.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_UNLOAD;
    r.program_unload = &unload;
    return ask(s, &r, out);
}

int ask_offload(int s, uint32_t session, uint32_t program, uint32_t index, struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadCreate create = PWC__OFFLOAD_CREATE__INIT;

    create.session = session;
    create.program = program;
    create.index = index;
    r.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_CREATE;
    r.offload_create = &create;
    return ask(s, &r, out);
}

int ask_offload_destroy(int s, uint32_t session, uint32_t offload)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__OffloadDestroy destroy = PWC__OFFLOAD_DESTROY__INIT;
    struct answer a;

    destroy.session = session;
    destroy.offload = offload;
    r.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_DESTROY;
    r.offload_destroy = &destroy;
    return ask(s, &r, &a);
}

int ask_program_read(int s, uint32_t engine, uint32_t program, struct raw_image *to,
                     struct answer *out)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__ProgramRead read = PWC__PROGRAM_READ__INIT;
    Pwc__ClientReply *reply;
    int fds[3], count, rc = -EPROTO;

    read.engine = engine;
    read.program = program;
    r.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_READ;
    r.program_read = &read;
    reply = raw_request(s, 9, &r) ? raw_reply(s, fds, &count) : NULL;
    if (!reply)
        return -ECONNRESET;
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_PROGRAM_IMAGE &&
        reply->program_image->image.len <= sizeof(to->words)) {
        rc = (int)reply->program_image->image.len;
        memcpy(to->words, reply->program_image->image.data, (size_t)rc);
        to->size = (size_t)rc;
    } else if (reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR) {
        rc = reply->error->status;
        if (out)
            snprintf(out->text, sizeof(out->text), "%s", reply->error->text);
    }
    pwc__client_reply__free_unpacked(reply, NULL);
    return rc;
}

/*
 * The table of programs, for the parts of the engine that run them; engine.h has the calls that
 * load and unload. Inside the engine a program is named by its entry's number, outside by a handle.
 *
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_PROGRAM_H
#define PWC_ENGINE_PROGRAM_H

#include <stdbool.h>
#include "daemon/engine/state/state.h"
#include "proto/handler_abi.h"

/* The entry of a handle; NONE: this client has no such program. */
uint32_t program_of_handle(const struct engine *e, uint32_t client, uint32_t handle);
/* The image of a loaded program, which the check has let pass. The image stays at its place while
 * an offload holds the program; after a restart this call finds it again. */
const struct handler_image *program_image(const struct engine *e, uint32_t program);

/* Within a transaction: an offload begins, or ends, to run the program. A program that is held
 * cannot be unloaded. */
void program_hold(struct engine *e, uint32_t program);
void program_release(struct engine *e, uint32_t program);

/* Removes the programs of a client that is on its way out, except for those that are held. False:
 * some are left. */
bool programs_leave(struct engine *e, uint32_t client);
/* After a restart: takes the memory of images off the heap again. */
void programs_inherit(struct engine *e);

#endif

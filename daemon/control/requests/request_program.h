/*
 * Programs of handlers: loading, unloading, checking, and reading them. An image comes in one
 * frame; it is copied out of that once, and the copy is checked here, on the control thread (40 us
 * for the longest program), before the engine keeps a copy of its own.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_PROGRAM_H
#define PWC_CONTROL_REQUEST_PROGRAM_H

#include <stdint.h>
#include "daemon/control/clients/client.h"

void request_program_load(struct client *c, uint32_t request, const Pwc__ProgramLoad *load);
void request_program_unload(struct client *c, uint32_t request, const Pwc__ProgramUnload *unload);
/* These two are for connections without Hello, too. */
void request_program_check(struct client *c, uint32_t request, const Pwc__ProgramCheck *check);
void request_program_read(struct client *c, uint32_t request, const Pwc__ProgramRead *read);

#endif

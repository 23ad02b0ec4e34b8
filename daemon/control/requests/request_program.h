/*
 * Loads, unloads, checks and reads programs of handlers. An image arrives in one frame and is
 * copied once; the copy is checked here, on the control thread (40 us for the longest program),
 * before the engine makes a copy of its own.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_REQUEST_PROGRAM_H
#define PWC_CONTROL_REQUEST_PROGRAM_H

#include <stdint.h>
#include "daemon/control/clients/client.h"

void request_program_load(struct client *c, uint32_t request, const Pwc__ProgramLoad *load);
void request_program_unload(struct client *c, uint32_t request, const Pwc__ProgramUnload *unload);
/* Connections without Hello may make these two requests, too. */
void request_program_check(struct client *c, uint32_t request, const Pwc__ProgramCheck *check);
void request_program_read(struct client *c, uint32_t request, const Pwc__ProgramRead *read);

#endif

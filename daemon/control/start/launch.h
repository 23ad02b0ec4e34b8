/*
 * A job's own daemons (pwcd --job): which node this is, where the others are, and where our ranks
 * find us. From PMIx if the launcher has it, else from Slurm's environment.
 *
 * Thread: main, at start.
 */
#ifndef PWC_CONTROL_LAUNCH_H
#define PWC_CONTROL_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/control/start/config.h"

/* The default control port: below the range from which systems choose ports. */
#define LAUNCH_PORT_FIRST 16384u
#define LAUNCH_PORT_COUNT 16384u

/*
 * Sets the keys socket, node, nodes and address, as the environment would: flags go before. Not
 * where nodes are given already. 0; 1: another task of this node is its daemon, this one has
 * nothing to do; or -EINVAL, -ENOENT, -ENOMEM, ..., with the reason in `why`. `alone`: the others
 * are not waited for, and nodes that are known by PMIx alone stay unset.
 */
int launch_configure(struct config *config, bool alone, char *why, size_t why_size);

/* The control port for the job with this number (SLURM_JOB_ID). -EINVAL: it is no number. */
int launch_port(const char *id, uint32_t *out);

/* Reserves a free control port and returns the socket that holds it, or a negative errno. Until the
 * socket is closed the system gives the port to nobody else, but we can listen at it with
 * SO_REUSEADDR. */
int launch_hold_port(uint16_t *port);

#endif

/*
 * Configures the daemons that belong to one job (pwcd --job): which node this is, where the other
 * nodes are, and where our ranks find our socket. PMIx says so if the launcher has it, else Slurm's
 * environment.
 *
 * Thread: main, at start.
 */
#ifndef PWC_CONTROL_LAUNCH_H
#define PWC_CONTROL_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/control/start/config.h"

/* The range of the default control port: below the range from which systems choose ports. */
#define LAUNCH_PORT_FIRST 16384u
#define LAUNCH_PORT_COUNT 16384u

/*
 * Sets the keys socket, node, nodes and address, with the environment as their source, so flags
 * override them. Where nodes are configured already, only the socket is set. Returns 0; 1: another
 * task of this node is its daemon, and this process has nothing to do; or -EINVAL, -ENOENT, -ENOMEM
 * and others, with the reason in `why`. `alone`: do not wait for the other daemons; nodes that only
 * PMIx knows stay unset.
 */
int launch_configure(struct config *config, bool alone, char *why, size_t why_size);

/* The control port for the job with this number (SLURM_JOB_ID). -EINVAL: `id` is no number. */
int launch_port(const char *id, uint32_t *out);

/* Reserves a free control port and returns the socket that holds it, or a negative errno. Until the
 * socket is closed the system gives the port to nobody else, but we can listen at it with
 * SO_REUSEADDR. */
int launch_hold_port(uint16_t *port);

#endif

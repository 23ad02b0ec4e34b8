/*
 * A job's own daemons (pwcd --job): who we are, where the others are and where our ranks find us.
 * By PMIx where the launcher has it, else by what Slurm says in the environment.
 *
 * Thread: main, at start.
 */
#ifndef PWC_CONTROL_LAUNCH_H
#define PWC_CONTROL_LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "daemon/control/start/config.h"

/* The control port where nothing tells another: below those that systems give out by themselves. */
#define LAUNCH_PORT_FIRST 16384u
#define LAUNCH_PORT_COUNT 16384u

/*
 * Sets the keys socket, node, nodes and address, as the environment would: flags go before. Not
 * where nodes are given already. 0; 1: another task of this node is its daemon, this one has
 * nothing to do; or -EINVAL, -ENOENT, -ENOMEM, ..., with the reason in `why`. `alone`: the others
 * are not waited for, and nodes that are known by PMIx alone stay unset.
 */
int launch_configure(struct config *config, bool alone, char *why, size_t why_size);

/* The control port of the daemons of the job with this number (SLURM_JOB_ID). -EINVAL: none. */
int launch_port(const char *id, uint32_t *out);

/*
 * A control port that is free, and stays so until the socket, which is returned, is closed: others
 * are given another, and whoever sets SO_REUSEADDR can listen at it, as we do. Or a negative errno.
 */
int launch_hold_port(uint16_t *port);

#endif

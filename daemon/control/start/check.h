/*
 * What of the configuration can be wrong with this machine, found without serving.
 *
 * Thread: main, before anything is opened.
 */
#ifndef PWC_CONTROL_CHECK_H
#define PWC_CONTROL_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include "daemon/control/start/config.h"
#include "daemon/control/nodes/nodes.h"

/* Opens the fabric as configured, and closes it. With the reason in `why`. */
int check_fabric(const struct config *config, char *why, size_t why_size);
/* Whether the control port of `node` is at an address of this machine: -EADDRNOTAVAIL. */
int check_entry(const struct node_list *list, uint32_t node, char *why, size_t why_size);

/* Prints the providers that would do, the one that is taken first; what is wrong goes to stderr. */
int check_providers(const struct config *config, FILE *to);

#endif

/*
 * Checks of the configuration against this machine, without serving.
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

/* Opens the fabric as configured, and closes it. On an error `why` has the reason. */
int check_fabric(const struct config *config, char *why, size_t why_size);
/* Checks that the control port of `node` is at an address of this machine. -EADDRNOTAVAIL: it is
 * not. */
int check_entry(const struct node_list *list, uint32_t node, char *why, size_t why_size);

/* Prints the usable providers, beginning with the one that would be chosen. Errors go to stderr. */
int check_providers(const struct config *config, FILE *to);

#endif

/*
 * The memory of the directory's table (directory.h), which outlives the process: so a home that is
 * started anew knows which ranks have left, which it has to hear of, and the last result of each
 * job's exchanges, and published names.
 *
 * Private to the daemons that follow one another. Thread: control.
 */
#ifndef PWC_CONTROL_DIRECTORY_TABLE_H
#define PWC_CONTROL_DIRECTORY_TABLE_H

#include "daemon/control/survive/store.h"
#include "daemon/peering/directory.h"
#include "shm_ring/mapping.h"

/* Maps the table of an earlier process of this node, for a list of as many nodes, or else a new
 * one. */
int directory_table_open(struct mapping *m, struct store *store, uint32_t node,
                         uint32_t node_count);
struct directory_table *directory_table_of(const struct mapping *m);
/* Gives the pages of a job's places, of its last result and of its published names back. */
void directory_table_empty(struct directory_table *table, uint32_t job, uint32_t ranks);

#endif

/*
 * The memory of the directory's table (directory.h), which outlives the process. So a home that is
 * started anew knows which ranks have left, which ranks must be announced again, the last result of
 * each job's exchanges, and published names.
 *
 * Only the processes of this daemon, one after the other, read the table. Thread: control.
 */
#ifndef PWC_CONTROL_DIRECTORY_TABLE_H
#define PWC_CONTROL_DIRECTORY_TABLE_H

#include "daemon/control/survive/store.h"
#include "daemon/peering/directory.h"
#include "shm_ring/mapping.h"

/* Maps the table of an earlier process of this node, if its list had the same number of nodes, or
 * else a new table. */
int directory_table_open(struct mapping *m, struct store *store, uint32_t node,
                         uint32_t node_count);
struct directory_table *directory_table_of(const struct mapping *m);
/* Gives back the pages of a job's places, of its last result and of its published names. */
void directory_table_empty(struct directory_table *table, uint32_t job, uint32_t ranks);

#endif

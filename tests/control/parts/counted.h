/* Memory for a directory (daemon/peering/directory.h), of which a test counts the pieces, and which
 * the test may refuse. */
#ifndef PWC_TESTS_CONTROL_COUNTED_H
#define PWC_TESTS_CONTROL_COUNTED_H

#include "daemon/peering/directory.h"

struct counted {
    int taken;        /* pieces that were not given back */
    int refuse_after; /* so many more pieces are given, and then none; -1: all */
    size_t bytes;     /* of all pieces that were taken */
};

/* Memory whose pieces `counted` counts. */
struct directory_memory counted_memory(struct counted *counted);
/* Such memory with a table that outlives a directory. counted_unmap frees the table. */
struct directory_memory counted_map(struct counted *counted);
void counted_unmap(const struct directory_memory *memory);

#endif

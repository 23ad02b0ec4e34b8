/* Owns the memory of the directory's table (directory_table.h). Thread: control. */
#include "daemon/control/nodes/directory_table.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x3354524944435750) /* "PWCDIRT3" */

enum { HEAD_BYTES = 4096 };

/* The beginning of the memory; the table follows. */
struct head {
    uint64_t magic;
    uint32_t node, node_count;
};

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) & ~(page - 1);
}

struct directory_table *directory_table_of(const struct mapping *m)
{
    return (void *)((uint8_t *)m->base + HEAD_BYTES);
}

int directory_table_open(struct mapping *m, struct store *store, uint32_t node, uint32_t node_count)
{
    const struct head ours = {.magic = MAGIC, .node = node, .node_count = node_count};
    size_t bytes = whole_pages(HEAD_BYTES + sizeof(struct directory_table));
    int descriptor = store_take(store, "directory"), rc;

    *m = (struct mapping){.fd = -1};
    if (descriptor >= 0) {
        if (mapping_inherit(m, descriptor, bytes) == 0 && memcmp(m->base, &ours, sizeof(ours)) == 0)
            return 0;
        store_remove(store, "directory");
        if (m->fd < 0)
            close(descriptor);
        mapping_destroy(m);
        *m = (struct mapping){.fd = -1};
    }
    rc = mapping_create_own(m, "pwcd-directory", bytes);
    if (rc < 0)
        return rc;
    memcpy(m->base, &ours, sizeof(ours));
    store_add(store, m->fd, "directory");
    return 0;
}

static void zero(void *at, size_t bytes)
{
    if (madvise(at, whole_pages(bytes), MADV_REMOVE) != 0)
        memset(at, 0, bytes);
}

void directory_table_empty(struct directory_table *table, uint32_t job, uint32_t ranks)
{
    zero(table->places[job], ranks * sizeof(table->places[job][0]));
    zero(table->bytes[job], sizeof(table->bytes[job]));
    zero(table->published[job], sizeof(table->published[job]));
}

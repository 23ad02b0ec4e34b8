/* The memory that counted.h describes. */
#include "tests/control/parts/counted.h"

#include <CUnit/CUnit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *take(void *context, size_t size)
{
    struct counted *counted = context;

    if (counted->refuse_after == 0)
        return NULL;
    if (counted->refuse_after > 0)
        counted->refuse_after--;
    counted->taken++;
    counted->bytes += size;
    return calloc(1, size);
}

static void give(void *context, void *memory)
{
    struct counted *counted = context;

    counted->taken--;
    free(memory);
}

static void empty(struct directory_table *table, uint32_t job, uint32_t ranks)
{
    memset(table->places[job], 0, ranks * sizeof(table->places[0][0]));
}

struct directory_memory counted_memory(struct counted *counted)
{
    return (struct directory_memory){.context = counted, .take = take, .give = give};
}

struct directory_memory counted_map(struct counted *counted)
{
    struct directory_memory memory = counted_memory(counted);

    memory.empty = empty;
    memory.table = mmap(NULL, sizeof(*memory.table), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL(memory.table, MAP_FAILED);
    return memory;
}

void counted_unmap(const struct directory_memory *memory)
{
    munmap(memory->table, sizeof(*memory->table));
}

/* Owns the memory of requests under way (journal.h). */
#include "daemon/control/survive/journal.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fits(const struct journal_header *h, uint32_t entries)
{
    return h->magic == JOURNAL_MAGIC && h->version == JOURNAL_VERSION &&
           h->header_bytes == sizeof(*h) && h->entry_bytes == sizeof(struct journal_entry) &&
           h->entries == entries;
}

static int map(struct journal *j, int descriptor)
{
    void *base = mmap(NULL, j->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    if (base == MAP_FAILED)
        return -errno;
    j->header = base;
    j->entries = (struct journal_entry *)(j->header + 1);
    j->descriptor = descriptor;
    return 0;
}

static int create(struct journal *j, uint32_t entries)
{
    int descriptor = memfd_create("pwcd-journal", MFD_CLOEXEC);
    int rc = 0;

    if (descriptor < 0)
        return -errno;
    if (fchmod(descriptor, 0) != 0 || ftruncate(descriptor, (off_t)j->bytes) != 0)
        rc = -errno;
    if (rc == 0)
        rc = map(j, descriptor);
    if (rc < 0) {
        close(descriptor);
        return rc;
    }
    *j->header = (struct journal_header){.magic = JOURNAL_MAGIC,
                                         .version = JOURNAL_VERSION,
                                         .header_bytes = sizeof(struct journal_header),
                                         .entry_bytes = sizeof(struct journal_entry),
                                         .entries = entries};
    return 1;
}

int journal_open(struct journal *j, struct store *store, uint32_t entries)
{
    int descriptor = store_take(store, "journal");
    struct stat st;
    int rc;

    *j = (struct journal){.descriptor = -1,
                          .bytes = sizeof(struct journal_header) +
                                   (size_t)entries * sizeof(struct journal_entry)};
    if (descriptor >= 0 && fstat(descriptor, &st) == 0 && (uint64_t)st.st_size == j->bytes &&
        map(j, descriptor) == 0) {
        if (fits(j->header, entries))
            return 0;
        munmap(j->header, j->bytes);
    }
    if (descriptor >= 0) {
        store_remove(store, "journal");
        close(descriptor);
    }
    rc = create(j, entries);
    if (rc == 1)
        store_add(store, j->descriptor, "journal");
    return rc;
}

void journal_close(struct journal *j)
{
    if (j->header)
        munmap(j->header, j->bytes);
    if (j->descriptor >= 0)
        close(j->descriptor);
    *j = (struct journal){.descriptor = -1};
}

void journal_clear(struct journal *j)
{
    for (uint32_t i = 0; i < j->header->entries; i++)
        j->entries[i].state = JOURNAL_FREE;
}

uint32_t journal_take(struct journal *j)
{
    for (uint32_t i = 0; i < j->header->entries; i++)
        if (j->entries[i].state == JOURNAL_FREE) {
            j->entries[i] = (struct journal_entry){.state = JOURNAL_GUEST};
            return i;
        }
    return JOURNAL_NONE;
}

void journal_give(struct journal *j, uint32_t slot)
{
    if (slot != JOURNAL_NONE)
        j->entries[slot].state = JOURNAL_FREE;
}

bool journal_full(const struct journal_entry *e)
{
    return e->count == JOURNAL_REQUESTS_MAX;
}

/* The reader is the same machine later: the compiler's order is enough. */
static void order(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

void journal_begin(struct journal_entry *e, uint32_t request)
{
    uint32_t at = 0;

    while (at < JOURNAL_REQUESTS_MAX && e->requests[at] != 0)
        at++;
    if (at == JOURNAL_REQUESTS_MAX)
        return;
    e->taking = request;
    order();
    e->requests[at] = request;
    e->count++;
    order();
}

void journal_taken(struct journal_entry *e)
{
    order();
    e->taking = 0;
}

void journal_done(struct journal_entry *e, uint32_t request)
{
    for (uint32_t i = 0; i < JOURNAL_REQUESTS_MAX; i++)
        if (e->requests[i] == request) {
            e->requests[i] = 0;
            e->count--;
            return;
        }
}

/* Owns the memory of requests under way (inflight.h). Thread: control. */
#include "daemon/control/survive/inflight.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fits(const struct inflight_header *h, uint32_t entries)
{
    return h->magic == INFLIGHT_MAGIC && h->version == INFLIGHT_VERSION &&
           h->header_bytes == sizeof(*h) && h->entry_bytes == sizeof(struct inflight_entry) &&
           h->entries == entries;
}

static int map(struct inflight *j, int descriptor)
{
    void *base = mmap(NULL, j->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);

    if (base == MAP_FAILED)
        return -errno;
    j->header = base;
    j->entries = (struct inflight_entry *)(j->header + 1);
    j->descriptor = descriptor;
    return 0;
}

static int create(struct inflight *j, uint32_t entries)
{
    int descriptor = memfd_create("pwcd-inflight", MFD_CLOEXEC);
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
    *j->header = (struct inflight_header){.magic = INFLIGHT_MAGIC,
                                          .version = INFLIGHT_VERSION,
                                          .header_bytes = sizeof(struct inflight_header),
                                          .entry_bytes = sizeof(struct inflight_entry),
                                          .entries = entries};
    return 1;
}

int inflight_open(struct inflight *j, struct store *store, uint32_t entries)
{
    int descriptor = store_take(store, "inflight");
    struct stat st;
    int rc;

    *j = (struct inflight){.descriptor = -1,
                           .bytes = sizeof(struct inflight_header) +
                                    (size_t)entries * sizeof(struct inflight_entry)};
    if (descriptor >= 0 && fstat(descriptor, &st) == 0 && (uint64_t)st.st_size == j->bytes &&
        map(j, descriptor) == 0) {
        if (fits(j->header, entries))
            return 0;
        munmap(j->header, j->bytes);
    }
    if (descriptor >= 0) {
        store_remove(store, "inflight");
        close(descriptor);
    }
    rc = create(j, entries);
    if (rc == 1)
        store_add(store, j->descriptor, "inflight");
    return rc;
}

void inflight_close(struct inflight *j)
{
    if (j->header)
        munmap(j->header, j->bytes);
    if (j->descriptor >= 0)
        close(j->descriptor);
    *j = (struct inflight){.descriptor = -1};
}

void inflight_clear(struct inflight *j)
{
    for (uint32_t i = 0; i < j->header->entries; i++)
        j->entries[i].state = INFLIGHT_FREE;
}

uint32_t inflight_take(struct inflight *j)
{
    for (uint32_t i = 0; i < j->header->entries; i++)
        if (j->entries[i].state == INFLIGHT_FREE) {
            j->entries[i] = (struct inflight_entry){.state = INFLIGHT_GUEST};
            return i;
        }
    return INFLIGHT_NONE;
}

void inflight_give(struct inflight *j, uint32_t slot)
{
    if (slot != INFLIGHT_NONE)
        j->entries[slot].state = INFLIGHT_FREE;
}

bool inflight_full(const struct inflight_entry *e)
{
    return e->count == INFLIGHT_REQUESTS_MAX;
}

/* Keeps the compiler from reordering stores. This is enough, because the next process reads them
 * after this one has ended. */
static void order(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

void inflight_begin(struct inflight_entry *e, uint32_t request)
{
    uint32_t at = 0;

    while (at < INFLIGHT_REQUESTS_MAX && e->requests[at] != 0)
        at++;
    if (at == INFLIGHT_REQUESTS_MAX)
        return;
    e->taking = request;
    order();
    e->requests[at] = request;
    e->count++;
    order();
}

void inflight_taken(struct inflight_entry *e)
{
    order();
    e->taking = 0;
}

void inflight_done(struct inflight_entry *e, uint32_t request)
{
    for (uint32_t i = 0; i < INFLIGHT_REQUESTS_MAX; i++)
        if (e->requests[i] == request) {
            e->requests[i] = 0;
            e->count--;
            return;
        }
}

/* Owns the memory of what clients are in their jobs (membership.h). Thread: control. */
#include "daemon/control/survive/membership.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x31524d454d435750) /* "PWCMEMR1" */

enum { HEAD_BYTES = 64, PAGE = 4096, NAMES_BYTES = 5 * PAGE };

static_assert(sizeof(struct membership_name) * MEMBERSHIP_NAMES_MAX <= NAMES_BYTES,
              "the names of a client have pages of their own");

/* The beginning of the memory. The members follow, and then, in pages of their own, their names. */
struct head {
    uint64_t magic;
    uint32_t connections;
};

static size_t names_at(uint32_t connections)
{
    size_t bytes = HEAD_BYTES + (size_t)connections * sizeof(struct membership);

    return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}

static size_t bytes_of(uint32_t connections)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t bytes = names_at(connections) + (size_t)connections * NAMES_BYTES;

    return (bytes + page - 1) & ~(page - 1);
}

static bool fits(const struct memberships *m, uint32_t connections)
{
    const struct head *h = m->mapping.base;

    return h->magic == MAGIC && h->connections == connections;
}

static void use(struct memberships *m, uint32_t connections)
{
    uint8_t *base = m->mapping.base;

    m->members = (struct membership *)(base + HEAD_BYTES);
    m->names = (struct membership_name *)(base + names_at(connections));
    m->connections = connections;
}

int memberships_open(struct memberships *m, struct store *store, uint32_t connections,
                     bool inherited)
{
    int descriptor = store_take(store, "members"), rc;
    size_t bytes = bytes_of(connections);

    *m = (struct memberships){.mapping = {.fd = -1}};
    if (descriptor >= 0) {
        if (inherited && mapping_inherit(&m->mapping, descriptor, bytes) == 0 &&
            fits(m, connections)) {
            use(m, connections);
            return 0;
        }
        store_remove(store, "members");
        if (m->mapping.fd < 0)
            close(descriptor);
        mapping_destroy(&m->mapping);
        *m = (struct memberships){.mapping = {.fd = -1}};
    }
    rc = mapping_create_own(&m->mapping, "pwcd-members", bytes);
    if (rc < 0)
        return rc;
    *(struct head *)m->mapping.base = (struct head){.magic = MAGIC, .connections = connections};
    use(m, connections);
    store_add(store, m->mapping.fd, "members");
    return 0;
}

void memberships_close(struct memberships *m)
{
    if (m->mapping.base)
        mapping_destroy(&m->mapping);
    m->mapping.base = NULL;
}

/* Keeps the compiler from reordering stores. This is enough, because the next process reads them
 * after this one has ended. */
static void order(void)
{
    atomic_signal_fence(memory_order_seq_cst);
}

static struct membership_name *names_of(const struct memberships *m, uint32_t connection)
{
    return (struct membership_name *)((uint8_t *)m->names + (size_t)connection * NAMES_BYTES);
}

struct membership *membership_of(const struct memberships *m, uint32_t connection)
{
    return &m->members[connection];
}

void membership_begin(struct memberships *m, uint32_t connection, uint64_t instance)
{
    m->members[connection] = (struct membership){.instance = instance};
}

void membership_end(struct memberships *m, uint32_t connection)
{
    struct membership *of = membership_of(m, connection);
    bool named = false;

    for (uint32_t i = 0; i < MEMBERSHIP_NAMES_MAX; i++)
        named = named || of->named[i] != 0;
    *of = (struct membership){0};
    order();
    if (named) /* if this fails, the pages stay, and are used again later */
        (void)madvise(names_of(m, connection), NAMES_BYTES, MADV_REMOVE);
}

const struct membership_name *membership_name(const struct memberships *m, uint32_t connection,
                                              uint32_t index)
{
    return m->members[connection].named[index] ? &names_of(m, connection)[index] : NULL;
}

int membership_find(const struct memberships *m, uint32_t connection, const char *name)
{
    for (uint32_t i = 0; i < MEMBERSHIP_NAMES_MAX; i++) {
        const struct membership_name *n = membership_name(m, connection, i);

        if (n && strcmp(n->name, name) == 0)
            return (int)i;
    }
    return -ENOENT;
}

int membership_put(struct memberships *m, uint32_t connection, const char *name,
                   const uint8_t *data, uint32_t length)
{
    struct membership *of = membership_of(m, connection);
    int at = membership_find(m, connection, name);
    struct membership_name *n;

    for (uint32_t i = 0; i < MEMBERSHIP_NAMES_MAX && at < 0; i++)
        if (of->named[i] == 0)
            at = (int)i;
    if (at < 0)
        return -EDQUOT;
    of->named[at] = 0;
    order();
    n = &names_of(m, connection)[at];
    memset(n->name, 0, sizeof(n->name));
    memcpy(n->name, name, strlen(name));
    n->length = length;
    if (length > 0)
        memcpy(n->data, data, length);
    order();
    of->named[at] = 1;
    return at;
}

void membership_drop(struct memberships *m, uint32_t connection, uint32_t index)
{
    m->members[connection].named[index] = 0;
}

/*
 * The table of clients' mappings: a fault in memory of a client is reported for this client alone,
 * also where another client has its handle by now.
 *
 * Thread: one.
 */
#include <sys/mman.h>
#include <unistd.h>
#include "daemon/control/threads/host_table.h"
#include "proto/session_abi.h"
#include "shm_ring/sigbus.h"
#include "tests/suite.h"

#define CLIENT 1u
#define HANDLE 2u

enum { BYTES = 4096 };

/* Memory that a client shares with the daemon. */
struct shared {
    volatile uint8_t *base;
    int fd, range;
};

static struct shared shared_new(void)
{
    struct shared m = {.fd = memfd_create("host-table", MFD_CLOEXEC)};

    CU_ASSERT_EQUAL_FATAL(ftruncate(m.fd, BYTES), 0);
    m.base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m.fd, 0);
    CU_ASSERT_PTR_NOT_EQUAL_FATAL((void *)m.base, MAP_FAILED);
    m.range = sigbus_add((void *)m.base, BYTES);
    CU_ASSERT_FATAL(m.range >= 0);
    return m;
}

static void shared_free(struct shared *m)
{
    sigbus_remove(m->range);
    munmap((void *)m->base, BYTES);
    close(m->fd);
}

/* The client cuts its memory short, and the daemon reads it. */
static void fault(const struct shared *m)
{
    CU_ASSERT_EQUAL_FATAL(ftruncate(m->fd, 0), 0);
    CU_ASSERT_EQUAL(m->base[0], 0);
}

static void faults(void)
{
    static const struct {
        bool session;  /* the memory is a session; else a segment */
        bool replaced; /* the fault comes when another client has the handle */
        bool reported;
    } rows[] = {
        {true, false, true}, {false, false, true}, {true, true, false}, {false, true, false}};
    const struct engine_config config = {
        .sessions_max = HANDLE + 1, .segments_max = HANDLE + 1, .clients_max = CLIENT + 1};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct shared m = shared_new();
        struct engine_host host;
        struct host_table table;

        CU_ASSERT_EQUAL_FATAL(host_table_open(&table, &config), 0);
        host_table_host(&table, &host);
        if (rows[i].session)
            host_table_add_session(
                &table, HANDLE,
                &(struct host_session){
                    .shared = (void *)m.base, .client = CLIENT, .wake = -1, .range = m.range});
        else
            host_table_add_segment(&table, HANDLE,
                                   &(struct host_segment){.base = (const void *)m.base,
                                                          .client = CLIENT,
                                                          .range = m.range});
        if (rows[i].replaced)
            host_table_drop_client(&table, CLIENT);
        fault(&m);
        (void)host.any_faulted(host.context);
        CU_ASSERT_EQUAL(host.faulted(host.context, CLIENT), rows[i].reported);
        CU_ASSERT_FALSE(host.faulted(host.context, CLIENT)); /* each fault counts once */
        host_table_close(&table);
        shared_free(&m);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"faults", faults}, CU_TEST_INFO_NULL};

    return sigbus_install() < 0 ? 1 : suite_run("host table", tests);
}

/*
 * Opening the libfabric fabric: which settings it accepts, and the errors for others. Also rails,
 * message endpoints, dropped memory, leftover files and signal handlers.
 */
#include <CUnit/CUnit.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/fabric/end.h"
#include "daemon/fabric/ofi/ofi_private.h"
#include "tests/count.h"
#include "tests/suite.h"

static void refused(void)
{
    static const struct {
        struct ofi_config config;
        int status;
        const char *named; /* a part of the error message */
    } rows[] = {
        {{.provider = "no-such-provider"}, -ENODEV, "no-such-provider"},
        {{.bind = "no-such-interface"}, -ENODEV, "no-such-interface"},
        {{.bind = "127.0.0.1.5"}, -ENODEV, "127.0.0.1.5"},
        {{.provider = "shm", .name = "a/b"}, -EINVAL, "a/b"},
        {{.rails = 3}, -EINVAL, "rails 3"},
        {{.rails = 8}, -EINVAL, "rails 8"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char message[256] = "";
        struct ofi_config config = rows[i].config;
        struct fabric *fabric;

        config.message = message;
        config.message_size = sizeof(message);
        CU_ASSERT_EQUAL(ofi_open(&config, &fabric), rows[i].status);
        CU_ASSERT_PTR_NOT_NULL(strstr(message, rows[i].named));
        config.message = NULL;
        CU_ASSERT_EQUAL(ofi_open(&config, &fabric), rows[i].status);
    }
}

/* When no provider is named, one that reaches other machines is found. */
static void by_default(void)
{
    struct ofi_config config = {0};
    struct fabric *fabric;
    struct fabric_address address;

    CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &fabric), 0);
    CU_ASSERT_STRING_NOT_EQUAL(ofi_provider_name(fabric), "shm");
    CU_ASSERT_TRUE(fabric->traits.message_max >= (4u << 20));
    CU_ASSERT_EQUAL(fabric_address_of(fabric, &address), 0);
    CU_ASSERT_TRUE(address.size > 0 && address.size <= FABRIC_ADDRESS_MAX);
    fabric_close(fabric);
}

static void by_interface(void)
{
    struct ofi_config config = {.bind = "lo"};
    struct fabric *fabric;

    CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &fabric), 0);
    fabric_close(fabric);
}

/* A peer with another number of rails is refused, with an error of its own. */
static void rails(void)
{
    static const char *const providers[] = {"tcp;ofi_rxm", "shm"};
    static const uint32_t numbers[] = {1, 2, 4};
    struct fabric *fabrics[3];
    struct fabric_address addresses[3], broken;

    for (int p = 0; p < 2; p++) {
        uint32_t opened = 0;

        for (; opened < 3; opened++) {
            struct ofi_config config = {.provider = providers[p], .rails = numbers[opened]};

            if (ofi_open(&config, &fabrics[opened]))
                break;
            CU_ASSERT_EQUAL(fabrics[opened]->traits.rails, numbers[opened]);
            CU_ASSERT_TRUE(opened == 0 || fabrics[opened]->traits.ordered_write_max == 0);
            CU_ASSERT_EQUAL(fabric_address_of(fabrics[opened], &addresses[opened]), 0);
        }
        CU_ASSERT_TRUE(opened == 0 || opened == 3);
        for (uint32_t a = 0; a < opened; a++)
            for (uint32_t b = 0; b < opened; b++)
                CU_ASSERT_EQUAL(fabric_connect(fabrics[a], 1, &addresses[b]), a == b ? 0 : -EPROTO);
        for (uint32_t a = 0; a < opened; a++) {
            broken = addresses[a];
            broken.size--;
            CU_ASSERT_EQUAL(fabric_connect(fabrics[a], 1, &broken), -EINVAL);
            broken = addresses[a];
            memset(broken.bytes + broken.size - broken.size / numbers[a], 0xff,
                   broken.size / numbers[a]);
            CU_ASSERT_EQUAL(fabric_connect(fabrics[a], 1, &broken), -EINVAL);
            fabric_close(fabrics[a]);
        }
    }
}

/* Polls both until the first one reports its peer lost, for 5 s at most. */
static bool is_broken(struct fabric *one, struct fabric *other)
{
    struct fabric_event events[8];

    for (int64_t until = milliseconds() + 5000; milliseconds() < until;) {
        (void)fabric_poll(other, events, 8);
        for (int i = 0, n = fabric_poll(one, events, 8); i < n; i++)
            if (events[i].kind == FABRIC_BROKEN)
                return true;
    }
    return false;
}

/*
 * Message endpoints, which a provider without reliable datagrams uses when it is named without a
 * layer. An address ends with a token; a process that does not know our token gets no connection.
 */
static void messages(void)
{
    enum { TOKEN = 16, SOCKET = 16 };
    struct ofi_config config = {.provider = "tcp"}, rails = {.provider = "tcp", .rails = 2};
    struct fabric *ours, *theirs, *none;
    struct fabric_address us, them, wrong;

    CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &ours), 0);
    CU_ASSERT_EQUAL(fabric_address_of(ours, &us), 0);
    if (us.size != SOCKET + TOKEN) { /* from libfabric 1.18 on tcp has reliable datagrams */
        fabric_close(ours);
        return;
    }
    CU_ASSERT_EQUAL(ofi_open(&rails, &none), -EOPNOTSUPP);
    CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &theirs), 0);
    CU_ASSERT_EQUAL(fabric_address_of(theirs, &them), 0);
    CU_ASSERT_EQUAL(fabric_connect(ours, 1, &us), -EINVAL); /* not to ourselves */
    wrong = them;
    wrong.size--;
    CU_ASSERT_EQUAL(fabric_connect(ours, 1, &wrong), -EINVAL);
    wrong.size += 2;
    CU_ASSERT_EQUAL(fabric_connect(ours, 1, &wrong), -EINVAL);
    wrong = them;
    wrong.bytes[0] ^= 0xff; /* no such family */
    CU_ASSERT_EQUAL(fabric_connect(ours, 1, &wrong), -EINVAL);
    wrong = them;
    /* A token greater than ours makes us the side that connects. */
    memset(wrong.bytes + SOCKET, 0xff, TOKEN);
    CU_ASSERT_EQUAL(fabric_connect(ours, 1, &wrong), 0);
    CU_ASSERT_TRUE(is_broken(ours, theirs));
    fabric_close(theirs);
    fabric_close(ours);
}

int __real_epoll_ctl(int set, int how, int descriptor, struct epoll_event *event);
int __wrap_epoll_ctl(int set, int how, int descriptor, struct epoll_event *event);

static uint32_t adds_left =
    UINT32_MAX; /* so many descriptors enter a set of ours; then one fails */

int __wrap_epoll_ctl(int set, int how, int descriptor, struct epoll_event *event)
{
    if (how != EPOLL_CTL_ADD || adds_left-- > 0)
        return __real_epoll_ctl(set, how, descriptor, event);
    errno = ENOSPC; /* the user has no watches left */
    return -1;
}

static int arm(struct fabric *fabric)
{
    struct fabric_event events[8];
    int descriptor, rc = -EAGAIN;

    for (int64_t until = milliseconds() + 5000; rc == -EAGAIN && milliseconds() < until;) {
        (void)fabric_poll(fabric, events, 8);
        rc = fabric_arm(fabric, &descriptor);
    }
    return rc;
}

/* The system refuses one of the two descriptors on which message endpoints sleep: the caller can
 * sleep as soon as the system takes both. */
static void refused_sleep(void)
{
    struct ofi_config config = {.provider = "tcp"};
    struct fabric *fabric;

    CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &fabric), 0);
    for (uint32_t i = 0; ((struct ofi *)fabric)->messages && i < 2; i++) {
        adds_left = i;
        CU_ASSERT_EQUAL(arm(fabric), -ENOSPC);
        adds_left = UINT32_MAX;
        CU_ASSERT_EQUAL(arm(fabric), 0);
        CU_ASSERT_EQUAL(fabric_poll(fabric, &(struct fabric_event){0}, 1), 0);
    }
    fabric_close(fabric);
}

/* ---- an end of memory, and what had arrived there
 * ------------------------------------------------ */

static struct fabric_memory added(struct fabric *fabric, void *base, uint64_t length)
{
    struct fabric_event event = {0};

    CU_ASSERT_EQUAL_FATAL(
        fabric_mem_add(fabric, base, length, FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE, 0), 0);
    for (int64_t until = milliseconds() + 5000; milliseconds() < until && !event.kind;)
        (void)fabric_poll(fabric, &event, 1);
    CU_ASSERT_EQUAL_FATAL(event.kind, FABRIC_ADDED);
    return event.memory;
}

/* Memory is dropped while more arrivals (FABRIC_ARRIVED) wait than one poll returns: all arrivals
 * come before the event of the drop. */
static void dropped_behind_arrivals(void)
{
    enum { COUNT = 200, ROOM = 64 };
    static uint8_t source[64], target[64];
    struct ofi_config config = {.provider = "tcp;ofi_rxm"};
    struct fabric_address us, them;
    struct fabric_event events[ROOM];
    struct fabric *ours, *theirs;
    struct fabric_memory from, to;
    int posted = 0, arrived = 0, descriptor;
    bool dropped = false;

    if (ofi_open(&config, &ours) != 0) {
        printf("left out: libfabric has no %s here ", config.provider);
        return;
    }
    CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &theirs), 0);
    CU_ASSERT_EQUAL_FATAL(fabric_address_of(ours, &us), 0);
    CU_ASSERT_EQUAL_FATAL(fabric_address_of(theirs, &them), 0);
    to = added(ours, target, sizeof(target));
    from = added(theirs, source, sizeof(source));
    CU_ASSERT_EQUAL_FATAL(fabric_connect(ours, 1, &them), 0);
    CU_ASSERT_EQUAL_FATAL(fabric_connect(theirs, 1, &us), 0);
    /* Polls with room for one event fill the provider's queue. */
    for (int64_t until = milliseconds() + 5000; arrived < 10 && milliseconds() < until;) {
        struct fabric_write w = {.peer = 1,
                                 .memory = from.index,
                                 .source = source,
                                 .length = 8,
                                 .remote_address = to.address,
                                 .remote_key = to.key,
                                 .announce = true,
                                 .record = true};

        while (posted < COUNT && fabric_post_write(theirs, &w) == 0)
            posted++;
        (void)fabric_poll(theirs, events, ROOM);
        if (posted == COUNT || arrived == 0)
            for (int i = 0, n = fabric_poll(ours, events, 1); i < n; i++)
                arrived += events[i].kind == FABRIC_ARRIVED;
    }
    CU_ASSERT_EQUAL(posted, COUNT);
    CU_ASSERT_EQUAL(fabric_mem_drop(ours, to.index, 0), 0);
    for (int64_t until = milliseconds() + 1000; milliseconds() < until;)
        if (fabric_arm(ours, &descriptor) == -EAGAIN)
            break; /* the result is there */
    for (int64_t until = milliseconds() + 10000; !dropped && milliseconds() < until;)
        for (int i = 0, n = fabric_poll(ours, events, ROOM); i < n; i++) {
            CU_ASSERT_FALSE(dropped && events[i].kind == FABRIC_ARRIVED);
            arrived += events[i].kind == FABRIC_ARRIVED;
            dropped |= events[i].kind == FABRIC_DROPPED;
        }
    for (int i = 0; i < 100; i++)
        CU_ASSERT_EQUAL(fabric_poll(ours, events, ROOM), 0);
    printf("%d of %d had come ", arrived, COUNT);
    fabric_close(theirs);
    fabric_close(ours);
}

/* One of two peers polls no more, and reads of its memory take all operations that they get: a
 * write to the other one is accepted. */
static void silent_peer(void)
{
    enum { MOST = 64, SILENT = 0, OTHER = 1, OURS = 2 };
    static uint8_t memory[3][64];
    struct ofi_config config = {.provider = "tcp;ofi_rxm", .operations_max = MOST};
    struct fabric_address addresses[3];
    struct fabric_memory memories[3];
    struct fabric *fabrics[3];
    struct fabric_event events[8];
    uint32_t reads = 0, ended = 0;
    int rc = -EAGAIN;

    for (int i = 0; i < 3; i++) {
        CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &fabrics[i]), 0);
        CU_ASSERT_EQUAL_FATAL(fabric_address_of(fabrics[i], &addresses[i]), 0);
        memories[i] = added(fabrics[i], memory[i], sizeof(memory[i]));
    }
    for (uint32_t i = 0; i < OURS; i++) {
        struct fabric_read r = {.peer = i,
                                .memory = memories[OURS].index,
                                .destination = memory[OURS],
                                .length = 8,
                                .remote_address = memories[i].address,
                                .remote_key = memories[i].key};

        CU_ASSERT_EQUAL(fabric_connect(fabrics[i], 0, &addresses[OURS]), 0);
        CU_ASSERT_EQUAL(fabric_connect(fabrics[OURS], i, &addresses[i]), 0);
        rc = -EAGAIN;
        for (int64_t until = milliseconds() + 5000; ended <= i && milliseconds() < until;) {
            if (rc == -EAGAIN)
                rc = fabric_post_read(fabrics[OURS], &r);
            (void)fabric_poll(fabrics[i], events, 8);
            ended += fabric_poll(fabrics[OURS], events, 8) == 1;
        }
        CU_ASSERT_EQUAL_FATAL(ended, i + 1);
    }
    for (rc = 0; rc == 0;) {
        struct fabric_read r = {.peer = SILENT,
                                .memory = memories[OURS].index,
                                .destination = memory[OURS],
                                .length = 8,
                                .remote_address = memories[SILENT].address,
                                .remote_key = memories[SILENT].key};

        rc = fabric_post_read(fabrics[OURS], &r);
        reads += rc == 0;
    }
    CU_ASSERT_EQUAL(rc, -EAGAIN);
    CU_ASSERT_EQUAL(reads, MOST / 4);
    for (uint32_t announce = 0; announce < 2; announce++) {
        struct fabric_write w = {.peer = OTHER,
                                 .memory = memories[OURS].index,
                                 .source = memory[OURS],
                                 .length = 8,
                                 .remote_address = memories[OTHER].address,
                                 .remote_key = memories[OTHER].key,
                                 .announce = announce};

        CU_ASSERT_EQUAL(fabric_post_write(fabrics[OURS], &w), 0);
    }
    for (int i = 0; i < 3; i++)
        fabric_close(fabrics[i]);
}

/* A completion queue in place of the provider's: gives the entries of a row, one in each read. */
struct scripted {
    struct fi_ops_cq ops;
    struct ofi *ofi;
    uint32_t memory;
    /* A: an arrival; E: an error of the provider's own; D: the queue is empty, and right after that
     * the memory is dropped. From the row's end on the queue is empty. */
    const char *entries;
};

static struct scripted scripted;

/* Drops the memory, and waits until its registration is closed. */
static void drop_scripted(void)
{
    struct ofi_registrar *r = &scripted.ofi->registrar;
    uint32_t before = ofi_registrar_results(r);

    CU_ASSERT_EQUAL(fabric_mem_drop(&scripted.ofi->fabric, scripted.memory, 0), 0);
    for (int64_t until = milliseconds() + 5000;
         ofi_registrar_results(r) == before && milliseconds() < until;)
        (void)sched_yield();
}

static ssize_t scripted_read(struct fid_cq *queue, void *buffer, size_t count)
{
    if (*scripted.entries == '\0')
        return -FI_EAGAIN;
    if (*scripted.entries == 'E')
        return -FI_EAVAIL;
    if (count == 0)
        return 0;
    if (*scripted.entries++ == 'D') {
        drop_scripted();
        return -FI_EAGAIN;
    }
    *(struct fi_cq_data_entry *)buffer = (struct fi_cq_data_entry){.flags = FI_REMOTE_CQ_DATA};
    return 1;
}

static ssize_t scripted_readerr(struct fid_cq *queue, struct fi_cq_err_entry *entry, uint64_t flags)
{
    scripted.entries++;
    entry->flags = FI_RECV;
    entry->err = FI_ECANCELED;
    return 1;
}

/* Polls the scripted queue until the memory is dropped. Counts the arrivals before that. */
static uint32_t arrivals_before_drop(const char *entries)
{
    struct fi_ops_cq *ops = scripted.ofi->queue->ops;
    struct fabric_event events[8];
    uint32_t arrived = 0;
    bool dropped = false;

    scripted.entries = entries;
    if (entries[0] != 'D')
        drop_scripted();
    scripted.ofi->queue->ops = &scripted.ops;
    for (uint32_t polls = 0; !dropped && polls < 1000; polls++)
        for (int i = 0, n = fabric_poll(&scripted.ofi->fabric, events, 8); i < n; i++) {
            arrived += !dropped && events[i].kind == FABRIC_ARRIVED;
            dropped |= events[i].kind == FABRIC_DROPPED;
        }
    scripted.ofi->queue->ops = ops;
    CU_ASSERT_TRUE(dropped);
    return arrived;
}

/* A read of the provider's queue gets fewer entries than it had room for, and arrivals follow all
 * the same: the event of a drop comes when the queue is empty, or when so many entries were taken
 * as a full queue holds. */
static void dropped_behind_short_reads(void)
{
    enum { OPERATIONS = 16, ENDLESS = 200 };
    static uint8_t target[64];
    static char endless[ENDLESS + 1];
    struct ofi_config config = {.operations_max = OPERATIONS};
    struct {
        const char *entries;
        uint32_t arrived;
    } rows[] = {{"", 0},      {"AAA", 3}, {"AEA", 2}, {"EA", 1},
                {"EEEEA", 1}, {"DA", 1},  {"DEA", 1}, {endless, 2 * OPERATIONS}};
    struct fabric *fabric;

    memset(endless, 'A', ENDLESS);
    CU_ASSERT_EQUAL_FATAL(ofi_open(&config, &fabric), 0);
    scripted.ofi = (struct ofi *)fabric;
    scripted.ops = *scripted.ofi->queue->ops;
    scripted.ops.read = scripted_read;
    scripted.ops.readerr = scripted_readerr;
    for (size_t i = 0; i < COUNT(rows); i++) {
        scripted.memory = added(fabric, target, sizeof(target)).index;
        CU_ASSERT_EQUAL(arrivals_before_drop(rows[i].entries), rows[i].arrived);
    }
    fabric_close(fabric);
}

static int count_files(const char *stem)
{
    DIR *folder = opendir("/dev/shm");
    int n = 0;

    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        n += strncmp(entry->d_name, stem, strlen(stem)) == 0;
    closedir(folder);
    return n;
}

static int make_file(const char *name)
{
    int fd = shm_open(name, O_CREAT | O_RDWR, 0600);

    if (fd >= 0)
        close(fd);
    return fd;
}

/* Files that an earlier process left under our name are removed, other files stay, and the fabric
 * leaves none itself. Without a name, the file has the name by which pwcrun finds it. */
static void leftovers(void)
{
    char name[64], left[96], other[96], stem[80];
    struct ofi_config config = {.provider = "shm", .name = name};
    struct fabric *fabric;

    (void)snprintf(name, sizeof(name), "test.%d", (int)getpid());
    (void)snprintf(stem, sizeof(stem), "pwcd-%s.", name);
    (void)snprintf(left, sizeof(left), "%s0badcafe", stem);
    (void)snprintf(other, sizeof(other), "pwcd-%s2.0badcafe", name);
    CU_ASSERT_TRUE(make_file(left) >= 0);
    CU_ASSERT_TRUE(make_file(other) >= 0);

    int rc = ofi_open(&config, &fabric);

    if (rc == 0) {
        CU_ASSERT_EQUAL(count_files(left), 0);
        CU_ASSERT_EQUAL(count_files(stem), 1);
        CU_ASSERT_EQUAL(count_files(other), 1);
        fabric_close(fabric);
        CU_ASSERT_EQUAL(count_files(stem), 0);
    }
    CU_ASSERT_TRUE(rc == 0 || rc == -ENODEV);
    config.name = NULL;
    (void)snprintf(stem, sizeof(stem), "pwcd-%d.%d.", (int)getpid(), (int)getpgrp());
    if (rc == 0 && ofi_open(&config, &fabric) == 0) {
        CU_ASSERT_EQUAL(count_files(stem), 1);
        fabric_close(fabric);
        CU_ASSERT_EQUAL(count_files(stem), 0);
    }
    (void)shm_unlink(left);
    (void)shm_unlink(other);
}

static void on_signal(int number)
{
    (void)number;
}

/* Guards that what the user says to libfabric by the environment stands. */
static void prepared(void)
{
    static const char *const variables[][2] = {{"FI_OFI_RXM_BUFFER_SIZE", "512"},
                                               {"FI_OFI_RXM_RX_SIZE", "64"},
                                               {"FI_OFI_RXM_MSG_RX_SIZE", "128"}};

    for (size_t i = 0; i < COUNT(variables); i++) {
        const char *name = variables[i][0];

        CU_ASSERT_EQUAL(setenv(name, "4096", 1), 0);
        ofi_prepare();
        CU_ASSERT_STRING_EQUAL(getenv(name), "4096");
        CU_ASSERT_EQUAL(unsetenv(name), 0);
        ofi_prepare();
        CU_ASSERT_STRING_EQUAL(getenv(name), variables[i][1]);
    }
}

/* Providers install signal handlers; ours must stay in place. */
static void signals(void)
{
    static const int numbers[] = {SIGBUS, SIGSEGV, SIGTERM, SIGINT};
    static const char *const providers[] = {NULL, "shm"};
    struct sigaction ours = {.sa_handler = on_signal}, before[4], after;

    for (int i = 0; i < 4; i++)
        CU_ASSERT_EQUAL(sigaction(numbers[i], &ours, &before[i]), 0);
    for (int p = 0; p < 2; p++) {
        struct ofi_config config = {.provider = providers[p]};
        struct fabric *fabric;

        if (ofi_open(&config, &fabric))
            continue;
        for (int i = 0; i < 4; i++) {
            CU_ASSERT_EQUAL(sigaction(numbers[i], NULL, &after), 0);
            CU_ASSERT_PTR_EQUAL((void *)after.sa_handler, (void *)on_signal);
        }
        fabric_close(fabric);
    }
    for (int i = 0; i < 4; i++)
        (void)sigaction(numbers[i], &before[i], NULL);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"prepared", prepared},
        {"what cannot be opened", refused},
        {"the default provider", by_default},
        {"bound to an interface", by_interface},
        {"rails", rails},
        {"message endpoints", messages},
        {"a refused sleep", refused_sleep},
        {"dropped behind arrivals", dropped_behind_arrivals},
        {"a peer that polls no more", silent_peer},
        {"dropped behind short reads", dropped_behind_short_reads},
        {"leftovers of a killed process", leftovers},
        {"signal handlers", signals},
        CU_TEST_INFO_NULL,
    };

    return suite_run("ofi", tests);
}

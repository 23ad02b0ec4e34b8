/*
 * Keys that the application chooses and uses again, over libfabric and two daemons: an operation
 * finds the memory that the key names now, whatever was under way, and no call waits long for it.
 *
 *     test_keys PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/process.h"
#include "tests/providers/both.h"

#define KEY   7u
#define OTHER 8u

#define CLOSING_BYTES 16384

static const struct side_options own_keys = {.key = OTHER, .format = FI_CQ_FORMAT_TAGGED};

/* Gives the key to a part of the side's memory. The side's own registration, which moved all pages,
 * stays open. */
static struct fid_mr *name_part(struct side *side, size_t from, size_t length, uint64_t rights)
{
    struct fid_mr *mr = NULL;

    CU_ASSERT_EQUAL_FATAL(
        fi_mr_reg(side->domain, side->memory + from, length, rights, 0, KEY, 0, &mr, NULL), 0);
    return mr;
}

/* Writes, and takes the entry. Returns 0, or the operation's error. */
static int write_at(struct side sides[2], const char *text, uint64_t offset)
{
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    int rc;

    CU_ASSERT_EQUAL_FATAL(both_write(sides, text, strlen(text) + 1, offset, KEY, NULL), 0);
    rc = side_entry(&sides[0], &sides[1], &entry);
    if (rc == -FI_EAVAIL)
        return side_error(&sides[0], &error);
    return rc == 1 ? 0 : rc;
}

/* A key that names a longer range now reaches all of it, at the first try, also while an earlier
 * write by this key has not ended. A range that is too long for the new memory is an error. */
static void test_longer(void)
{
    const uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    struct fid_mr *mr;

    both_open(sides, &own_keys);
    mr = name_part(&sides[1], 0, 64, rights);
    CU_ASSERT_EQUAL(write_at(sides, "short", 0), 0);
    CU_ASSERT_EQUAL(write_at(sides, "long", 1000), ERANGE);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "x", 2, 32, KEY, NULL), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    mr = name_part(&sides[1], 4096, 8192, rights);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "long", 5, 1000, KEY, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + 4096 + 1000, "long");
    CU_ASSERT_EQUAL(write_at(sides, "too long", 8190), ERANGE);
    CU_ASSERT_EQUAL(write_at(sides, "too long", 8190), ERANGE);
    CU_ASSERT_EQUAL(write_at(sides, "fits", 8187), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    both_close(sides);
}

/* A key that had no right to be read, and has it now. */
static void test_rights(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    struct fid_mr *mr;
    char to[8] = "";

    both_open(sides, &own_keys);
    mr = name_part(&sides[1], 0, 64, FI_REMOTE_WRITE);
    CU_ASSERT_EQUAL(write_at(sides, "text", 0), 0);
    CU_ASSERT_EQUAL_FATAL(both_read(sides, to, 5, 0, KEY, NULL), 0);
    CU_ASSERT_EQUAL(side_error(&sides[0], &error), FI_EKEYREJECTED);
    CU_ASSERT_EQUAL(write_at(sides, "text", 0), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    mr = name_part(&sides[1], 0, 64, FI_REMOTE_READ);
    CU_ASSERT_EQUAL_FATAL(both_read(sides, to, 5, 0, KEY, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_STRING_EQUAL(to, "text");
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    both_close(sides);
}

/* A key changes its memory more often than an endpoint keeps old memory: each operation finds the
 * new memory, at the first try. */
static void test_often(void)
{
    const uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    uint64_t one = 1, old, word;

    both_open(sides, &own_keys);
    for (size_t i = 0; i < 120; i++) {
        struct fid_mr *mr = name_part(&sides[1], i * 64, 64, rights);

        if (i % 3 == 0)
            CU_ASSERT_EQUAL_FATAL(write_at(sides, "here", 0), 0);
        if (i % 3 == 1) {
            *(uint64_t *)(void *)(sides[1].memory + i * 64) = i;
            CU_ASSERT_EQUAL_FATAL(both_read(sides, &word, 8, 0, KEY, NULL), 0);
            CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
            CU_ASSERT_EQUAL(word, i);
        }
        if (i % 3 == 2) {
            CU_ASSERT_EQUAL_FATAL(
                SIDE_REPEAT(&sides[0], &sides[1],
                            fi_fetch_atomic(sides[0].ep, &one, 1, NULL, &old, NULL, sides[0].peer,
                                            0, KEY, FI_UINT64, FI_SUM, NULL)),
                0);
            CU_ASSERT_EQUAL_FATAL(SIDE_REPEAT(&sides[0], &sides[1],
                                              fi_atomic(sides[0].ep, &one, 1, NULL, sides[0].peer,
                                                        8, KEY, FI_UINT64, FI_SUM, NULL)),
                                  0);
            CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
            CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
            CU_ASSERT_EQUAL(*(uint64_t *)(void *)(sides[1].memory + i * 64), 1);
            CU_ASSERT_EQUAL(*(uint64_t *)(void *)(sides[1].memory + i * 64 + 8), 1);
        } else if (i % 3 == 0)
            CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + i * 64, "here");
        CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    }
    both_close(sides);
}

/* Many writes at once by a key that has changed. An injected write may fail, and only the first. */
static void test_many(void)
{
    const uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    struct fid_mr *mr;
    uint64_t words[32];
    int rc;

    both_open(sides, &own_keys);
    mr = name_part(&sides[1], 0, 512, rights);
    CU_ASSERT_EQUAL(write_at(sides, "old", 0), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    mr = name_part(&sides[1], 4096, 512, rights);
    for (uint64_t i = 0; i < 32; i++) {
        words[i] = i + 1;
        CU_ASSERT_EQUAL_FATAL(both_write(sides, &words[i], 8, i * 8, KEY, NULL), 0);
    }
    for (unsigned i = 0; i < 32; i++)
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_EQUAL(memcmp(sides[1].memory + 4096, words, sizeof(words)), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    mr = name_part(&sides[1], 8192, 512, rights);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_inject_write(sides[0].ep, words, 8, sides[0].peer, 0, KEY)),
        0);
    rc = side_error(&sides[0], &error);
    CU_ASSERT_EQUAL(rc, FI_EKEYREJECTED);
    CU_ASSERT_EQUAL(write_at(sides, "new", 0), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    both_close(sides);
}

/* A write with a fence never passes a write by a changed key: the latter has been placed before, or
 * fails and is never placed. */
static void test_fence(void)
{
    const uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct side sides[2];
    struct iovec iov = {(void *)"flag", 5};
    struct fi_rma_iov target = {32768, 5, OTHER};
    struct fi_msg_rma message = {.msg_iov = &iov,
                                 .iov_count = 1,
                                 .rma_iov = &target,
                                 .rma_iov_count = 1,
                                 .context = &message,
                                 .data = 5};

    both_open(sides, &own_keys);
    message.addr = sides[0].peer;
    for (unsigned i = 0; i < 60; i++) {
        struct fid_mr *mr = name_part(&sides[1], (size_t)i * 64, 64, rights);
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry error;
        unsigned ended = 0;
        bool failed = false, placed;

        CU_ASSERT_EQUAL_FATAL(both_write(sides, "data", 5, 0, KEY, NULL), 0);
        for (unsigned looks = 0; looks < i % 20; looks++)
            side_drive(&sides[0], NULL);
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], NULL,
                        fi_writemsg(sides[0].ep, &message, FI_FENCE | FI_REMOTE_CQ_DATA)),
            0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
        placed = sides[1].memory[i * 64] == 'd';
        while (ended < 2) {
            int rc = side_entry(&sides[0], &sides[1], &entry);

            if (rc == -FI_EAVAIL) {
                CU_ASSERT_EQUAL_FATAL(side_error(&sides[0], &error), FI_EKEYREJECTED);
                failed = true;
            } else
                CU_ASSERT_EQUAL_FATAL(rc, 1);
            ended++;
        }
        CU_ASSERT_EQUAL(failed, !placed);
        CU_ASSERT_EQUAL(sides[1].memory[i * 64] == 'd', placed);
        CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    }
    both_close(sides);
}

/* While the peer's daemon does not run, a call that finds its key changed returns soon: the old
 * memory is given up when nothing is under way to the peer. */
static void test_stopped(void)
{
    const uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct side sides[2];
    struct fi_cq_err_entry error;
    struct fi_cq_tagged_entry entry;
    struct fid_mr *mr;
    int64_t begin;
    ssize_t stuck, changed;

    if (both_cluster.options.nodes < 2)
        return;
    both_open(sides, &own_keys);
    mr = name_part(&sides[1], 0, 64, rights);
    CU_ASSERT_EQUAL(write_at(sides, "one", 0), 0);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "two", 4, 4096, OTHER, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    CU_ASSERT_EQUAL(write_at(sides, "late", 0), FI_EKEYREJECTED);
    mr = name_part(&sides[1], 128, 64, rights);
    both_stop_daemon(1);
    stuck = fi_write(sides[0].ep, "three", 6, NULL, sides[0].peer, 4096, OTHER, NULL);
    begin = side_now();
    changed = fi_write(sides[0].ep, "four", 5, NULL, sides[0].peer, 0, KEY, NULL);
    CU_ASSERT(side_now() - begin < SIDE_WAIT_MS / 4);
    both_resume_daemon(1);
    CU_ASSERT_EQUAL(stuck, 0);
    CU_ASSERT_EQUAL(changed, -FI_EAGAIN);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "four", 5, 0, KEY, &error), 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + 4096, "three");
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + 128, "four");
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    both_close(sides);
}

/* Two keys of one range end apart: the key that was closed reaches nothing, although the other one
 * still names the range, and then the memory that it is given to. */
static void test_two_keys(void)
{
    const uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    struct side sides[2];
    struct fid_mr *closed, *other, *mr;

    both_open(sides, &own_keys);
    closed = name_part(&sides[1], 0, 64, rights);
    CU_ASSERT_EQUAL_FATAL(
        fi_mr_reg(sides[1].domain, sides[1].memory, 64, rights, 0, OTHER + 1, 0, &other, NULL), 0);
    CU_ASSERT_EQUAL(write_at(sides, "first", 0), 0);
    CU_ASSERT_EQUAL(fi_close(&closed->fid), 0);
    CU_ASSERT_EQUAL(write_at(sides, "closed", 0), FI_EKEYREJECTED);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory, "first");
    mr = name_part(&sides[1], 64, 64, rights);
    CU_ASSERT_EQUAL(write_at(sides, "second", 0), 0);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory, "first");
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + 64, "second");
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    mr = name_part(&sides[1], 128, 64, rights);
    CU_ASSERT_EQUAL(write_at(sides, "third", 0), 0);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory + 128, "third");
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    CU_ASSERT_EQUAL(fi_close(&other->fid), 0);
    both_close(sides);
}

/* Registers one of many ranges, reads it, and closes it. Returns the first error. */
static int read_range(struct side sides[2], size_t round)
{
    unsigned char *range = sides[1].memory + round % 1000 * 64;
    struct fi_cq_tagged_entry entry;
    struct fid_mr *mr;
    uint64_t word = 0;
    int rc;

    memcpy(range, &round, sizeof(round));
    rc = fi_mr_reg(sides[1].domain, range, 64, FI_REMOTE_READ, 0, 0, 0, &mr, NULL);
    if (rc < 0)
        return rc;
    rc = (int)both_read(sides, &word, 8, (uint64_t)(uintptr_t)range, fi_mr_key(mr), NULL);
    if (rc == 0)
        rc = side_entry(&sides[0], &sides[1], &entry);
    if (rc == 1)
        rc = word == round ? 0 : -FI_EIO;
    return fi_close(&mr->fid) == 0 ? rc : -FI_EBUSY;
}

/* An endpoint may use any number of keys, one after the other, although its daemon has room for few
 * binds (--binds): keys that were used long ago are unbound. */
static void test_many_keys(void)
{
    struct side sides[2];
    int rc = 0;

    both_open(sides, &both_basic);
    for (size_t round = 0; rc == 0 && round < 2000; round++)
        rc = read_range(sides, round);
    CU_ASSERT_EQUAL(rc, 0);
    both_close(sides);
}

/* After an address is removed, what was bound at its endpoint is unbound: each endpoint here uses
 * 100 keys of a peer, and then another peer of the same owner. */
static void test_removed_addresses(void)
{
    struct side sides[2];
    int rc = 0;

    both_open(sides, &both_basic);
    for (size_t i = 0; rc == 0 && i < 20; i++) {
        for (size_t round = 0; rc == 0 && round < 100; round++)
            rc = read_range(sides, round);
        CU_ASSERT_EQUAL(fi_av_remove(sides[0].av, &sides[0].peer, 1, 0), 0);
        CU_ASSERT_EQUAL_FATAL(side_meet(&sides[0], &sides[1]), 0);
    }
    CU_ASSERT_EQUAL(rc, 0);
    both_close(sides);
}

/* A write that is under way when its address is removed ends as it would have ended before: here
 * its key is looked up again, in vain. */
static void test_removed_meanwhile(void)
{
    struct side sides[2];
    struct fi_cq_err_entry error;
    struct fid_mr *mr;

    if (both_cluster.options.nodes < 2)
        return;
    both_open(sides, &own_keys);
    mr = name_part(&sides[1], 0, 64, FI_REMOTE_WRITE);
    CU_ASSERT_EQUAL(write_at(sides, "text", 0), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    both_stop_daemon(0);
    CU_ASSERT_EQUAL(fi_write(sides[0].ep, "late", 5, NULL, sides[0].peer, 0, KEY, NULL), 0);
    CU_ASSERT_EQUAL(fi_av_remove(sides[0].av, &sides[0].peer, 1, 0), 0);
    side_drive(&sides[0], NULL);
    both_resume_daemon(0);
    CU_ASSERT_EQUAL(side_error(&sides[0], &error), FI_EKEYREJECTED);
    both_close(sides);
}

/* Closes a region while the process gets no descriptor, and cannot see which pages to move back. */
static void close_in_vain(struct fid_mr *mr)
{
    struct rlimit limit, none;

    CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    /* Few, so that all are in use; poll refuses more descriptors than the limit. */
    none = (struct rlimit){.rlim_cur = 3, .rlim_max = limit.rlim_max};
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), -EMFILE);
    CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* A region whose end has failed has no key any more. So a second fi_close, which ends it, leaves
 * the key to the region that has it since. */
static void test_close_again(void)
{
    const uint64_t rights = FI_REMOTE_READ | FI_REMOTE_WRITE;
    const size_t length = 4096;
    struct side sides[2];
    struct fid_mr *failed, *mr;
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    both_open(sides, &own_keys);
    CU_ASSERT_EQUAL_FATAL(
        fi_mr_reg(sides[1].domain, memory, length, rights, 0, KEY, 0, &failed, NULL), 0);
    close_in_vain(failed);
    mr = name_part(&sides[1], 0, 64, rights);
    CU_ASSERT_EQUAL(fi_close(&failed->fid), 0);
    CU_ASSERT_EQUAL(write_at(sides, "text", 0), 0);
    CU_ASSERT_STRING_EQUAL((char *)sides[1].memory, "text");
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    munmap(memory, length);
    both_close(sides);
}

/* Memory of the reader's own, of which all but the first bytes is registered for peers. */
struct closing {
    unsigned char *memory;
    struct fid_mr *mr;
    int rc; /* of fi_close */
    atomic_bool ended;
};

static void open_memory(struct side *side, struct closing *closing)
{
    closing->memory =
        mmap(NULL, CLOSING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_EQUAL_FATAL(fi_mr_reg(side->domain, closing->memory + 64, CLOSING_BYTES - 64,
                                    FI_REMOTE_WRITE, 0, KEY, 0, &closing->mr, NULL),
                          0);
}

static void *close_memory(void *argument)
{
    struct closing *closing = argument;

    closing->rc = fi_close(&closing->mr->fid);
    atomic_store(&closing->ended, true);
    return NULL;
}

/* Closing a memory region waits for the side's own operations from and to the pages that the region
 * has moved, because their bytes move with the pages. */
static void test_close_under_way(void)
{
    const struct side_options options = {
        .key = OTHER, .format = FI_CQ_FORMAT_TAGGED, .wait = FI_WAIT_FD};
    struct side sides[2];
    struct pollfd pollfd = {.events = POLLIN};
    struct fid *fids[1];
    struct closing closing = {.rc = -1};
    struct fi_cq_tagged_entry entry;
    struct timespec limit;
    pthread_t thread;

    if (both_cluster.options.nodes < 2)
        return;
    both_open(sides, &options);
    fids[0] = &sides[0].cq->fid;
    CU_ASSERT_EQUAL_FATAL(fi_control(&sides[0].cq->fid, FI_GETWAIT, &pollfd.fd), 0);
    open_memory(&sides[0], &closing);
    memset(closing.memory + 4096, 'w', 8192);
    memset(sides[1].memory, 'r', 64);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "bound", 6, 4096, OTHER, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    both_stop_daemon(1);
    CU_ASSERT_EQUAL(fi_read(sides[0].ep, closing.memory, 64, NULL, sides[0].peer, 0, OTHER, NULL),
                    0);
    CU_ASSERT_EQUAL(
        fi_write(sides[0].ep, closing.memory + 4096, 8192, NULL, sides[0].peer, 8192, OTHER, NULL),
        0);
    CU_ASSERT_EQUAL(fi_trywait(sides[0].fabric, fids, 1), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, close_memory, &closing), 0);
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_nsec += 200000000;
    limit.tv_sec += limit.tv_nsec / 1000000000;
    limit.tv_nsec %= 1000000000;
    CU_ASSERT_EQUAL_FATAL(pthread_timedjoin_np(thread, NULL, &limit), ETIMEDOUT);
    both_resume_daemon(1);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(closing.rc, 0);
    CU_ASSERT_EQUAL(poll(&pollfd, 1, 0), 1);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_EQUAL(memcmp(closing.memory, sides[1].memory, 64), 0);
    CU_ASSERT_EQUAL(memcmp(closing.memory + 4096, sides[1].memory + 8192, 8192), 0);
    munmap(closing.memory, CLOSING_BYTES);
    both_close(sides);
}

/* When a memory region has been closed, also a read has ended whose key had to be looked up again
 * meanwhile. */
static void test_close_renewed(void)
{
    struct side sides[2];
    struct closing closing = {.rc = -1};
    struct fi_cq_tagged_entry entry;
    struct fid_mr *mr;
    pthread_t thread;

    if (both_cluster.options.nodes < 2)
        return;
    both_open(sides, &own_keys);
    open_memory(&sides[0], &closing);
    mr = name_part(&sides[1], 0, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
    CU_ASSERT_EQUAL(write_at(sides, "old", 0), 0);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "bound", 6, 4096, OTHER, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    mr = name_part(&sides[1], 128, 64, FI_REMOTE_READ | FI_REMOTE_WRITE);
    memset(sides[1].memory + 128, 'n', 64);
    both_stop_daemon(1);
    CU_ASSERT_EQUAL(fi_read(sides[0].ep, closing.memory, 64, NULL, sides[0].peer, 0, KEY, NULL), 0);
    CU_ASSERT_EQUAL(
        fi_write(sides[0].ep, closing.memory + 4096, 8192, NULL, sides[0].peer, 8192, OTHER, NULL),
        0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, close_memory, &closing), 0);
    both_resume_daemon(1);
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(closing.rc, 0);
    CU_ASSERT_EQUAL(memcmp(closing.memory, sides[1].memory + 128, 64), 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_EQUAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_EQUAL(fi_close(&mr->fid), 0);
    munmap(closing.memory, CLOSING_BYTES);
    both_close(sides);
}

static ssize_t write_word(struct side *side, fi_addr_t to)
{
    return SIDE_REPEAT(side, NULL, fi_inject_write(side->ep, "word", 5, to, 0, OTHER));
}

/* Writes with pauses, so that another thread could take the endpoint's lock for long: then many
 * writes would sleep until they had the lock. */
static void write_slowly(struct side *side, fi_addr_t to)
{
    enum { WRITES = 500 };
    const struct timespec pause = {.tv_nsec = 100000};
    pid_t thread = (pid_t)syscall(SYS_gettid);
    int64_t before = thread_sleeps(thread), slept;

    for (unsigned i = 0; i < WRITES; i++) {
        nanosleep(&pause, NULL);
        CU_ASSERT_EQUAL(write_word(side, to), 0);
    }
    slept = thread_sleeps(thread) - before;
    CU_ASSERT(before > 0);
    CU_ASSERT(slept < WRITES * 3 / 2);
}

/* While a thread waits in the close of a memory region, other threads go on with the endpoint. The
 * wait ends although they always have operations under way. */
static void test_close_beside(void)
{
    struct side sides[2];
    struct closing closing = {.rc = -1};
    struct fi_cq_tagged_entry entry;
    fi_addr_t peer;
    int64_t end;
    pthread_t thread;

    if (both_cluster.options.nodes < 2)
        return;
    both_open(sides, &own_keys);
    open_memory(&sides[0], &closing);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "bound", 6, 0, OTHER, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    peer = sides[0].peer;
    /* Its own daemon, which runs, is its second peer. */
    CU_ASSERT_EQUAL_FATAL(side_meet(&sides[0], &sides[0]), 0);
    CU_ASSERT_EQUAL_FATAL(both_write(sides, "bound", 6, 0, OTHER, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    both_stop_daemon(1);
    CU_ASSERT_EQUAL(fi_read(sides[0].ep, closing.memory, 64, NULL, peer, 0, OTHER, NULL), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, close_memory, &closing), 0);
    write_slowly(&sides[0], sides[0].peer);
    CU_ASSERT(!atomic_load(&closing.ended));
    both_resume_daemon(1);
    end = side_now() + SIDE_WAIT_MS;
    while (!atomic_load(&closing.ended) && side_now() < end)
        CU_ASSERT_EQUAL_FATAL(write_word(&sides[0], peer), 0);
    CU_ASSERT(atomic_load(&closing.ended));
    pthread_join(thread, NULL);
    CU_ASSERT_EQUAL(closing.rc, 0);
    CU_ASSERT_EQUAL(side_entry(&sides[0], &sides[1], &entry), 1);
    munmap(closing.memory, CLOSING_BYTES);
    both_close(sides);
}

/* After the death of the daemon a close waits no longer for a write that was under way. */
static void test_close_killed(void)
{
    static const enum fi_threading threadings[] = {FI_THREAD_DOMAIN, FI_THREAD_SAFE};

    for (int i = 0; i < 2 && both_cluster.options.nodes > 1; i++) {
        const struct side_options options = {
            .key = OTHER, .format = FI_CQ_FORMAT_TAGGED, .threading = threadings[i]};
        struct side sides[2];
        struct fi_cq_tagged_entry entry;
        int64_t begin;

        both_open(sides, &options);
        CU_ASSERT_EQUAL_FATAL(both_write(sides, "one", 4, 0, OTHER, NULL), 0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
        both_stop_daemon(1);
        CU_ASSERT_EQUAL(fi_write(sides[0].ep, "two", 4, NULL, sides[0].peer, 0, OTHER, NULL), 0);
        cluster_kill(&both_cluster, 0);
        begin = side_now();
        CU_ASSERT_EQUAL(fi_close(&sides[0].mr->fid), 0);
        CU_ASSERT(side_now() - begin < SIDE_WAIT_MS / 4);
        sides[0].mr = NULL;
        both_resume_daemon(1);
        /* Daemon 1 waits for it, or gives it up late, before it lets go of the other region. */
        CU_ASSERT_EQUAL_FATAL(cluster_restart(&both_cluster, 0), 0);
        both_close(sides);
    }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"longer memory", test_longer},
        {"other rights", test_rights},
        {"often", test_often},
        {"many", test_many},
        {"fence", test_fence},
        {"stopped daemon", test_stopped},
        {"two keys of one range", test_two_keys},
        {"many keys", test_many_keys},
        {"removed addresses", test_removed_addresses},
        {"address removed meanwhile", test_removed_meanwhile},
        {"close again", test_close_again},
        {"close while operations are under way", test_close_under_way},
        {"close while a key is looked up again", test_close_renewed},
        {"close beside other threads", test_close_beside},
        {"close after the daemon's death", test_close_killed},
        CU_TEST_INFO_NULL,
    };

    /* The tests stop a daemon for a while. A busy machine takes long for what they do then, and the
     * daemon is not to be given up meanwhile. */
    static const char *const more[] = {"--peer-deadline-ms", "20000", NULL};

    return both_main_with(more, argc, argv, "provider, keys that change", tests);
}

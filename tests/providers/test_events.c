/*
 * Event queues over libfabric that several threads use. This program's poll and write stand before
 * the C library's, so that another thread can take an event between the end of a sleep and the look
 * after it, and before the descriptor becomes readable.
 *
 *     test_events PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <poll.h>
#include <pthread.h>
#include <rdma/fi_eq.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "tests/providers/both.h"

#define TIME_MS 50
/* A thread that may take an event takes it within this time. */
#define TAKE_MS 100

/* The queue whose next sleeper is woken by an event that another thread takes first. */
static struct fid_eq *contended;

static void take_first(struct fid_eq *eq)
{
    uint32_t event, data = 0;

    CU_ASSERT_EQUAL(fi_eq_write(eq, FI_NOTIFY, &data, sizeof(data), 0), sizeof(data));
    CU_ASSERT_EQUAL(fi_eq_read(eq, &event, &data, sizeof(data), 0), sizeof(data));
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
    struct fid_eq *eq = contended;

    contended = NULL;
    if (!eq)
        return (int)syscall(SYS_poll, fds, count, timeout);
    take_first(eq);
    return 1;
}

static struct fid_eq *open_queue(struct side *side)
{
    struct fi_eq_attr attr = {.wait_obj = FI_WAIT_FD};
    struct fid_eq *eq;

    CU_ASSERT_EQUAL_FATAL(side_open(side, both_socket(0), &both_basic), 0);
    CU_ASSERT_EQUAL_FATAL(fi_eq_open(side->fabric, &attr, &eq, NULL), 0);
    return eq;
}

/* A thread whose event another thread has taken waits on, until its time is over. */
static void test_contended(void)
{
    struct side side;
    struct fid_eq *eq = open_queue(&side);
    int64_t begin = side_now();
    uint32_t event, data;

    contended = eq;
    CU_ASSERT_EQUAL(fi_eq_sread(eq, &event, &data, sizeof(data), TIME_MS, 0), -FI_EAGAIN);
    CU_ASSERT_PTR_NULL(contended);
    CU_ASSERT(side_now() - begin >= TIME_MS);
    CU_ASSERT_EQUAL(fi_close(&eq->fid), 0);
    side_close(&side);
}

struct reader {
    struct fid_eq *eq;
    sem_t begins, has_read;
    ssize_t rc;
};

/* The reader that write lets begin, in the thread that adds an event. */
static _Thread_local struct reader *beside;

ssize_t write(int fd, const void *bytes, size_t length)
{
    struct reader *reader = beside;
    struct timespec end;

    beside = NULL;
    if (reader) {
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += TAKE_MS * 1000000;
        end.tv_sec += end.tv_nsec / 1000000000;
        end.tv_nsec %= 1000000000;
        sem_post(&reader->begins);
        sem_timedwait(&reader->has_read, &end);
    }
    return syscall(SYS_write, fd, bytes, length);
}

static void *read_event(void *argument)
{
    struct reader *reader = argument;
    uint32_t event, data;

    sem_wait(&reader->begins);
    reader->rc = fi_eq_sread(reader->eq, &event, &data, sizeof(data), SIDE_WAIT_MS, 0);
    sem_post(&reader->has_read);
    return NULL;
}

/* A descriptor is not readable when the only event has been taken, even where another thread reads
 * while the event is added. */
static void test_descriptor(void)
{
    struct side side;
    struct reader reader = {.eq = open_queue(&side)};
    struct pollfd pollfd = {.events = POLLIN};
    uint32_t data = 0;
    pthread_t thread;

    CU_ASSERT_EQUAL_FATAL(fi_control(&reader.eq->fid, FI_GETWAIT, &pollfd.fd), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&reader.begins, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(sem_init(&reader.has_read, 0, 0), 0);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, read_event, &reader), 0);
    beside = &reader;
    CU_ASSERT_EQUAL(fi_eq_write(reader.eq, FI_NOTIFY, &data, sizeof(data), 0), sizeof(data));
    CU_ASSERT_PTR_NULL(beside);
    CU_ASSERT_EQUAL(pthread_join(thread, NULL), 0);
    CU_ASSERT_EQUAL(reader.rc, sizeof(data));
    CU_ASSERT_EQUAL(poll(&pollfd, 1, 0), 0);
    CU_ASSERT_EQUAL(fi_close(&reader.eq->fid), 0);
    side_close(&side);
    sem_destroy(&reader.begins);
    sem_destroy(&reader.has_read);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"contended event", test_contended},
        {"descriptor", test_descriptor},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, event queues", tests);
}

/*
 * Messages and queues over libfabric and two daemons: order, messages before their buffers,
 * sources, data, lengths and cancelling; each format of entry; waits in a queue, by its descriptor,
 * and their end by a signal.
 *
 *     test_messages PWCD PROVIDER [NODES] [--KEY VALUE]...
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "tests/providers/both.h"

static void send_one(struct side sides[2], const void *from, size_t length, void *context)
{
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_send(sides[0].ep, from, length, NULL, sides[0].peer, context)),
        0);
}

static void receive_one(struct side *side, void *to, size_t length, void *context)
{
    CU_ASSERT_EQUAL_FATAL(fi_recv(side->ep, to, length, NULL, FI_ADDR_UNSPEC, context), 0);
}

/* Messages to buffers that were posted before, and the sender's entry. */
static void test_expected(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    char to[64] = "";

    both_open(sides, &both_basic);
    receive_one(&sides[1], to, sizeof(to), &to);
    send_one(sides, "hello", 6, &sides);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
    CU_ASSERT_PTR_EQUAL(entry.op_context, &to);
    CU_ASSERT_EQUAL(entry.flags, FI_MSG | FI_RECV);
    CU_ASSERT_EQUAL(entry.len, 6);
    CU_ASSERT_STRING_EQUAL(to, "hello");
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    CU_ASSERT_PTR_EQUAL(entry.op_context, &sides);
    CU_ASSERT_EQUAL(entry.flags, FI_MSG | FI_SEND);
    both_close(sides);
}

/* Messages that arrive before any buffer is posted keep their order. */
static void test_unexpected(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;

    both_open(sides, &both_basic);
    for (uint64_t i = 0; i < 100; i++)
        send_one(sides, &i, sizeof(i), NULL);
    for (uint64_t i = 0; i < 100; i++)
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t to = UINT64_MAX;

        receive_one(&sides[1], &to, sizeof(to), NULL);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
        CU_ASSERT_EQUAL(to, i);
    }
    both_close(sides);
}

/* A message with data, its source, and an injected message. */
static void test_data(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    uint64_t to = 0, from = 77;
    int64_t end = side_now() + SIDE_WAIT_MS;

    both_open(sides, &both_basic);
    receive_one(&sides[1], &to, sizeof(to), NULL);
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_injectdata(sides[0].ep, &from, sizeof(from), 1234567, sides[0].peer)),
        0);
    while (fi_cq_readfrom(sides[1].cq, &entry, 1, &source) == -FI_EAGAIN && side_now() < end)
        side_drive(&sides[0], NULL);
    CU_ASSERT_EQUAL(entry.flags, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA);
    CU_ASSERT_EQUAL(entry.data, 1234567);
    CU_ASSERT_EQUAL(to, 77);
    CU_ASSERT_EQUAL(source, sides[1].peer);
    CU_ASSERT_EQUAL(fi_cq_read(sides[0].cq, &entry, 1), -FI_EAGAIN);
    both_close(sides);
}

/* The longest message, one that is too long to send, and one that is too long for its buffer. */
static void test_lengths(void)
{
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    static unsigned char from[4097], to[4096];

    both_open(sides, &both_basic);
    memset(from, 'x', sizeof(from));
    receive_one(&sides[1], to, sizeof(to), NULL);
    send_one(sides, from, 4096, NULL);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[1], &sides[0], &entry), 1);
    CU_ASSERT_EQUAL(memcmp(from, to, 4096), 0);
    CU_ASSERT_EQUAL(fi_send(sides[0].ep, from, 4097, NULL, sides[0].peer, NULL), -FI_EMSGSIZE);
    receive_one(&sides[1], to, 10, &to);
    send_one(sides, from, 17, NULL);
    CU_ASSERT_EQUAL(side_error(&sides[1], &error), FI_ETRUNC);
    CU_ASSERT_EQUAL(error.olen, 7);
    CU_ASSERT_PTR_EQUAL(error.op_context, &to);
    both_close(sides);
}

static void test_cancel(void)
{
    struct side sides[2];
    struct fi_cq_err_entry error;
    char to[8];

    both_open(sides, &both_basic);
    receive_one(&sides[1], to, sizeof(to), &to);
    CU_ASSERT_EQUAL(fi_cancel(&sides[1].ep->fid, &error), -FI_ENOENT);
    CU_ASSERT_EQUAL(fi_cancel(&sides[1].ep->fid, &to), 0);
    CU_ASSERT_EQUAL(side_error(&sides[1], &error), FI_ECANCELED);
    CU_ASSERT_PTR_EQUAL(error.op_context, &to);
    both_close(sides);
}

/* Entries have their format's size, and follow each other without gaps. */
static void test_formats(void)
{
    static const enum fi_cq_format formats[] = {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG,
                                                FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED};
    static const size_t sizes[] = {sizeof(struct fi_cq_entry), sizeof(struct fi_cq_msg_entry),
                                   sizeof(struct fi_cq_data_entry),
                                   sizeof(struct fi_cq_tagged_entry)};

    for (unsigned f = 0; f < 4; f++) {
        const struct side_options options = {.mr_mode = both_basic.mr_mode, .format = formats[f]};
        unsigned char entries[2 * sizeof(struct fi_cq_tagged_entry)];
        struct side sides[2];
        char contexts[2];
        ssize_t taken = 0;
        int64_t end = side_now() + SIDE_WAIT_MS;

        both_open(sides, &options);
        for (unsigned i = 0; i < 2; i++)
            CU_ASSERT_EQUAL_FATAL(both_write(sides, "x", 1, side_address(&sides[1], 0),
                                             side_key(&sides[1]), &contexts[i]),
                                  0);
        while (taken < 2 && side_now() < end) {
            ssize_t n =
                fi_cq_read(sides[0].cq, entries + (size_t)taken * sizes[f], 2 - (size_t)taken);

            taken += n > 0 ? n : 0;
        }
        CU_ASSERT_EQUAL_FATAL(taken, 2);
        for (unsigned i = 0; i < 2; i++) {
            void *context;

            memcpy(&context, entries + i * sizes[f], sizeof(context));
            CU_ASSERT_PTR_EQUAL(context, &contexts[i]);
        }
        both_close(sides);
    }
}

/* With selective completion only operations that ask for it have an entry. */
static void test_selective(void)
{
    const struct side_options selective = {.mr_mode = both_basic.mr_mode,
                                           .format = FI_CQ_FORMAT_TAGGED,
                                           .cq_flags = FI_SELECTIVE_COMPLETION,
                                           .counters = true};
    struct side sides[2];
    struct fi_cq_tagged_entry entry;
    struct iovec iov = {(void *)"y", 1};
    struct fi_rma_iov target;
    struct fi_msg_rma message = {.msg_iov = &iov,
                                 .iov_count = 1,
                                 .rma_iov = &target,
                                 .rma_iov_count = 1,
                                 .context = &message};

    both_open(sides, &selective);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
    CU_ASSERT_EQUAL(fi_cntr_wait(sides[0].writes, 1, SIDE_WAIT_MS), 0);
    CU_ASSERT_EQUAL(fi_cq_read(sides[0].cq, &entry, 1), -FI_EAGAIN);
    message.addr = sides[0].peer;
    target = (struct fi_rma_iov){side_address(&sides[1], 0), 1, side_key(&sides[1])};
    CU_ASSERT_EQUAL_FATAL(
        SIDE_REPEAT(&sides[0], &sides[1],
                    fi_writemsg(sides[0].ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE)),
        0);
    CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], NULL, &entry), 1);
    CU_ASSERT_PTR_EQUAL(entry.op_context, &message);
    both_close(sides);
}

/* Writes data to the other side, some time later. */
static void *write_later(void *argument)
{
    struct side *sides = argument;
    struct timespec while_ = {.tv_nsec = 50000000};
    struct fi_cq_tagged_entry entry;

    nanosleep(&while_, NULL);
    SIDE_REPEAT(&sides[0], NULL,
                fi_writedata(sides[0].ep, "x", 1, NULL, 99, sides[0].peer,
                             side_address(&sides[1], 0), side_key(&sides[1]), NULL));
    side_entry(&sides[0], NULL, &entry);
    return NULL;
}

static void wait_for_data(enum fi_wait_obj wait, enum fi_threading threading)
{
    const struct side_options options = {.mr_mode = both_basic.mr_mode,
                                         .format = FI_CQ_FORMAT_TAGGED,
                                         .wait = wait,
                                         .threading = threading};
    struct side sides[2];
    struct fi_cq_tagged_entry entry = {.data = 0};
    pthread_t thread;
    int64_t begin = side_now();

    both_open(sides, &options);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, write_later, sides), 0);
    if (wait == FI_WAIT_FD) {
        struct fid *fids[] = {&sides[1].cq->fid};
        struct pollfd pollfd = {.events = POLLIN};

        CU_ASSERT_EQUAL_FATAL(fi_control(&sides[1].cq->fid, FI_GETWAIT, &pollfd.fd), 0);
        while (fi_cq_read(sides[1].cq, &entry, 1) == -FI_EAGAIN &&
               side_now() < begin + SIDE_WAIT_MS)
            if (fi_trywait(sides[1].fabric, fids, 1) == 0)
                CU_ASSERT(poll(&pollfd, 1, SIDE_WAIT_MS) == 1);
    } else
        CU_ASSERT_EQUAL(fi_cq_sread(sides[1].cq, &entry, 1, NULL, SIDE_WAIT_MS), 1);
    CU_ASSERT_EQUAL(entry.data, 99);
    pthread_join(thread, NULL);
    both_close(sides);
}

/* Waits in one thread, in several threads, and by the descriptor. */
static void test_wait(void)
{
    wait_for_data(FI_WAIT_UNSPEC, FI_THREAD_DOMAIN);
    wait_for_data(FI_WAIT_UNSPEC, FI_THREAD_SAFE);
    wait_for_data(FI_WAIT_FD, FI_THREAD_SAFE);
    wait_for_data(FI_WAIT_FD, FI_THREAD_DOMAIN);
}

/* fi_trywait does not let a program wait while it has not taken all events: operations on one node
 * end in their calls, and make no descriptor readable. */
static void test_events_left(void)
{
    const struct side_options options = {
        .mr_mode = both_basic.mr_mode, .format = FI_CQ_FORMAT_TAGGED, .wait = FI_WAIT_FD};
    struct side sides[2];
    struct fi_cq_tagged_entry entry = {.op_context = NULL};
    struct pollfd pollfd = {.events = POLLIN};
    struct fid *fids[1];
    ssize_t rc;

    both_open(sides, &options);
    fids[0] = &sides[0].cq->fid;
    CU_ASSERT_EQUAL_FATAL(fi_control(&sides[0].cq->fid, FI_GETWAIT, &pollfd.fd), 0);
    for (unsigned i = 0; i < 1500; i++)
        CU_ASSERT_EQUAL_FATAL(
            SIDE_REPEAT(&sides[0], &sides[1],
                        fi_inject_write(sides[0].ep, "x", 1, sides[0].peer,
                                        side_address(&sides[1], 0), side_key(&sides[1]))),
            0);
    CU_ASSERT_EQUAL_FATAL(
        both_write(sides, "y", 1, side_address(&sides[1], 0), side_key(&sides[1]), &entry), 0);
    do {
        if (fi_trywait(sides[0].fabric, fids, 1) == 0)
            CU_ASSERT_EQUAL_FATAL(poll(&pollfd, 1, SIDE_WAIT_MS / 4), 1);
        rc = fi_cq_read(sides[0].cq, &entry, 1);
    } while (rc == -FI_EAGAIN);
    CU_ASSERT_EQUAL(rc, 1);
    CU_ASSERT_PTR_EQUAL(entry.op_context, &entry);
    both_close(sides);
}

/* Writes from side 0, while another thread of this side waits, and reads nothing. */
struct sharer {
    struct side *sides;
    int64_t written; /* when, by side_now */
};

static void *write_only(void *argument)
{
    struct sharer *sharer = argument;
    struct side *sides = sharer->sides;
    struct timespec while_ = {.tv_nsec = 10000000};

    nanosleep(&while_, NULL);
    sharer->written = side_now();
    SIDE_REPEAT(&sides[0], NULL,
                fi_write(sides[0].ep, "x", 1, NULL, sides[0].peer, side_address(&sides[1], 0),
                         side_key(&sides[1]), NULL));
    return NULL;
}

/* Returns how long after the write the entry has come to a thread that waits for it. */
static int64_t wait_beside_writer(struct side sides[2], enum fi_wait_obj wait)
{
    struct sharer sharer = {.sides = sides};
    struct fi_cq_tagged_entry entry;
    struct fid *fids[] = {&sides[0].cq->fid};
    struct pollfd pollfd = {.events = POLLIN};
    pthread_t thread;
    int64_t end;

    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, write_only, &sharer), 0);
    if (wait == FI_WAIT_FD) {
        CU_ASSERT_EQUAL_FATAL(fi_control(&sides[0].cq->fid, FI_GETWAIT, &pollfd.fd), 0);
        while (fi_cq_read(sides[0].cq, &entry, 1) == -FI_EAGAIN)
            if (fi_trywait(sides[0].fabric, fids, 1) == 0)
                CU_ASSERT_EQUAL_FATAL(poll(&pollfd, 1, SIDE_WAIT_MS / 4), 1);
    } else
        CU_ASSERT_EQUAL(fi_cq_sread(sides[0].cq, &entry, 1, NULL, SIDE_WAIT_MS), 1);
    end = side_now();
    pthread_join(thread, NULL);
    return end - sharer.written;
}

/* The end of an operation wakes a thread that waits, although another thread has submitted it, and
 * although it has ended inside its call. The fastest wait counts, because the machine does other
 * work, too: there are more of them while none was fast. */
static void test_other_thread(void)
{
    enum { LEAST = 5, MOST = 30, SOON_MS = 50 };
    static const enum fi_wait_obj waits[] = {FI_WAIT_FD, FI_WAIT_UNSPEC};

    for (unsigned w = 0; w < 2; w++) {
        const struct side_options options = {
            .mr_mode = both_basic.mr_mode, .format = FI_CQ_FORMAT_TAGGED, .wait = waits[w]};
        struct side sides[2];
        struct fi_cq_tagged_entry entry;
        int64_t best = INT64_MAX;

        both_open(sides, &options);
        CU_ASSERT_EQUAL_FATAL(
            both_write(sides, "x", 1, side_address(&sides[1], 0), side_key(&sides[1]), NULL), 0);
        CU_ASSERT_EQUAL_FATAL(side_entry(&sides[0], &sides[1], &entry), 1);
        for (unsigned i = 0; i < LEAST || (best >= SOON_MS && i < MOST); i++) {
            int64_t took = wait_beside_writer(sides, waits[w]);

            best = took < best ? took : best;
        }
        CU_ASSERT(best < SOON_MS);
        both_close(sides);
    }
}

static void *signal_later(void *argument)
{
    struct side *side = argument;
    struct timespec while_ = {.tv_nsec = 50000000};

    nanosleep(&while_, NULL);
    fi_cq_signal(side->cq);
    return NULL;
}

/* A wait ends at its time limit, and at a signal. */
static void test_wait_ends(void)
{
    const struct side_options options = {
        .mr_mode = both_basic.mr_mode, .wait = FI_WAIT_UNSPEC, .threading = FI_THREAD_SAFE};
    struct side side;
    struct fi_cq_tagged_entry entry;
    pthread_t thread;
    int64_t begin;

    CU_ASSERT_EQUAL_FATAL(side_open(&side, both_socket(0), &options), 0);
    begin = side_now();
    CU_ASSERT_EQUAL(fi_cq_sread(side.cq, &entry, 1, NULL, 100), -FI_EAGAIN);
    CU_ASSERT(side_now() >= begin + 100);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, signal_later, &side), 0);
    begin = side_now();
    CU_ASSERT_EQUAL(fi_cq_sread(side.cq, &entry, 1, NULL, SIDE_WAIT_MS), -FI_EAGAIN);
    CU_ASSERT(side_now() < begin + SIDE_WAIT_MS);
    pthread_join(thread, NULL);
    side_close(&side);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"expected", test_expected},
        {"unexpected", test_unexpected},
        {"data", test_data},
        {"lengths", test_lengths},
        {"cancel", test_cancel},
        {"formats", test_formats},
        {"selective", test_selective},
        {"wait", test_wait},
        {"events left", test_events_left},
        {"wait beside another thread", test_other_thread},
        {"ends of waits", test_wait_ends},
        CU_TEST_INFO_NULL,
    };

    return both_main(argc, argv, "provider, messages and queues", tests);
}

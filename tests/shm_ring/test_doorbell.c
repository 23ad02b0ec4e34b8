/* The doorbell word step by step, and its futex between two processes. */
#include "shm_ring/doorbell.h"
#include "tests/suite.h"
#include "proto/clock.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_ring(void)
{
    static const struct {
        uint32_t armed, rung;
    } table[] = {
        {DOORBELL_AWAKE, DOORBELL_AWAKE}, {DOORBELL_FUTEX, DOORBELL_FUTEX},
        {DOORBELL_FD, DOORBELL_FD},       {3, DOORBELL_AWAKE}, /* no mode: a hostile sleeper's */
        {UINT32_MAX, DOORBELL_AWAKE},     {UINT32_C(1) << 31, DOORBELL_AWAKE},
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct doorbell_word word = {0};

        doorbell_arm(&word, table[i].armed);
        CU_ASSERT_EQUAL(atomic_load(&word.armed), table[i].armed);
        CU_ASSERT_EQUAL(doorbell_ring(&word), table[i].rung);
        CU_ASSERT_EQUAL(doorbell_ring(&word), DOORBELL_AWAKE); /* only one waker sees the arm */
        CU_ASSERT_EQUAL(atomic_load(&word.armed), DOORBELL_AWAKE);
        doorbell_arm(&word, table[i].armed);
        doorbell_disarm(&word);
        CU_ASSERT_EQUAL(doorbell_ring(&word), DOORBELL_AWAKE);
    }
}

static void test_sleep_ends(void)
{
    static const int64_t limits[] = {0, 1, 5000000, 1100000000};
    struct doorbell_word word = {0};

    CU_ASSERT_EQUAL(doorbell_sleep(&word, -1), 0); /* returns at once: not armed, or already rung */
    doorbell_arm(&word, DOORBELL_FD);
    CU_ASSERT_EQUAL(doorbell_sleep(&word, -1), 0);
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        int64_t start = now_ns();

        doorbell_arm(&word, DOORBELL_FUTEX);
        CU_ASSERT_EQUAL(doorbell_sleep(&word, limits[i]), -ETIMEDOUT);
        CU_ASSERT(now_ns() - start >= limits[i]);
        CU_ASSERT_EQUAL(atomic_load(&word.armed), DOORBELL_FUTEX); /* the caller disarms */
    }
    doorbell_wake(&word); /* no sleeper is there */
}

/* Only 1 means fenced: a hostile waker's word may hold anything. */
static void test_fenced(void)
{
    static const uint32_t others[] = {0, 2, UINT32_MAX};
    _Atomic uint32_t fenced = 0;

    for (int i = 0; i < 2; i++) {
        doorbell_begin_fenced(&fenced);
        doorbell_fence();
        CU_ASSERT(doorbell_is_fenced(&fenced));
        doorbell_end_fenced(&fenced);
        CU_ASSERT_FALSE(doorbell_is_fenced(&fenced));
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        atomic_store(&fenced, others[i]);
        CU_ASSERT_FALSE(doorbell_is_fenced(&fenced));
    }
}

static void on_alarm(int signal_number)
{
}

static void test_interrupted(void)
{
    struct doorbell_word word = {0};
    struct sigaction action = {.sa_handler = on_alarm}, before;
    timer_t timer;
    /* The timer repeats, because its first signal may come before the sleep. */
    struct itimerspec often = {.it_value.tv_nsec = 1000000, .it_interval.tv_nsec = 1000000};

    sigaction(SIGALRM, &action, &before);
    CU_ASSERT_EQUAL_FATAL(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    CU_ASSERT_EQUAL_FATAL(timer_settime(timer, 0, &often, NULL), 0);
    doorbell_arm(&word, DOORBELL_FUTEX);
    CU_ASSERT_EQUAL(doorbell_sleep(&word, -1), -EINTR);
    timer_delete(timer);
    sigaction(SIGALRM, &before, NULL);
}

/* Two processes map the word at different addresses. The futex is shared, so one wakes the
 * other. */
static void test_between_processes(void)
{
    int fd = memfd_create("test", MFD_CLOEXEC);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    CU_ASSERT_EQUAL_FATAL(ftruncate(fd, (off_t)page), 0);
    struct doorbell_word *ours = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct doorbell_word *theirs = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CU_ASSERT_FATAL(ours != MAP_FAILED && theirs != MAP_FAILED);

    pid_t child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        doorbell_arm(theirs, DOORBELL_FUTEX);
        _exit(doorbell_sleep(theirs, INT64_C(20000000000)) == 0 ? 0 : 1);
    }
    while (doorbell_ring(ours) != DOORBELL_FUTEX)
        ;
    doorbell_wake(ours);
    int status;
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    munmap(ours, page);
    munmap(theirs, page);
    close(fd);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"ring", test_ring},
        {"sleep ends", test_sleep_ends},
        {"fenced", test_fenced},
        {"interrupted", test_interrupted},
        {"between processes", test_between_processes},
        CU_TEST_INFO_NULL,
    };

    return suite_run("doorbell", tests);
}

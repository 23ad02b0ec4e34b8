/*
 * A PE is killed while the others make calls to it, for scripts/openshmem-trial. PE 1 kills itself
 * by SIGKILL once the others have begun; these repeat their calls without end. SOS (Sandia
 * OpenSHMEM) must end them, because the provider reports an error. The trial has a time limit, and
 * uses a launcher that does not end the other PEs itself.
 *
 * usage: killed_pe put|put_nbi|long_put|get|long_get|add|fetch|signal
 *
 * The argument is the call that the others repeat; except for get, long_get and fetch, shmem_quiet
 * follows each call.
 */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    VICTIM = 1,
    WARM_UP = 200, /* calls before the victim may die */
    LONG = 1 << 15,
};

static long begun, word, sum;
static uint64_t signals;
static long target[LONG];
static long source[LONG];

static void put(void)
{
    shmem_long_p(&word, 1, VICTIM);
    shmem_quiet();
}

static void put_nbi(void)
{
    for (int i = 0; i < 16; i++)
        shmem_long_put_nbi(target + i, source + i, 1, VICTIM);
    shmem_quiet();
}

static void long_put(void)
{
    shmem_long_put(target, source, LONG, VICTIM);
    shmem_quiet();
}

static void get(void)
{
    shmem_long_g(&word, VICTIM);
}

static void long_get(void)
{
    shmem_long_get(source, target, LONG, VICTIM);
}

static void add(void)
{
    shmem_long_atomic_add(&sum, 1, VICTIM);
    shmem_quiet();
}

static void fetch(void)
{
    shmem_long_atomic_fetch_add(&sum, 1, VICTIM);
}

static void put_and_signal(void)
{
    shmem_long_put_signal(target, source, 8, &signals, 1, SHMEM_SIGNAL_ADD, VICTIM);
    shmem_quiet();
}

static const struct {
    const char *name;
    void (*make)(void);
} calls[] = {
    {"put", put},     {"put_nbi", put_nbi},       {"long_put", long_put},
    {"get", get},     {"long_get", long_get},     {"add", add},
    {"fetch", fetch}, {"signal", put_and_signal},
};

/* Dies as by `kill -9`, without shmem_finalize or exit. */
static void die(void)
{
    shmem_long_wait_until(&begun, SHMEM_CMP_EQ, shmem_n_pes() - 1);
    fprintf(stderr, "killed_pe: PE %d dies\n", VICTIM);
    kill(getpid(), SIGKILL);
}

static void repeat(void (*make)(void))
{
    for (int i = 0; i < WARM_UP; i++)
        make();
    shmem_long_atomic_inc(&begun, VICTIM);
    for (;;)
        make();
}

int main(int argc, char **argv)
{
    void (*make)(void) = NULL;

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (argc == 2 && strcmp(argv[1], calls[i].name) == 0)
            make = calls[i].make;
    if (!make) {
        fprintf(stderr, "killed_pe: which call? See the head of its source.\n");
        return 2;
    }
    shmem_init();
    if (shmem_my_pe() == VICTIM)
        die();
    else
        repeat(make);
    return 2; /* not reached */
}

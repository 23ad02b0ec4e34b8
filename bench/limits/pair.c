/* Processes, memory, clock and medians of the bare limits; see pair.h. */
#include "bench/limits/pair.h"

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_ROLES 4

uint64_t pair_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pair_pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        perror("sched_setaffinity");
}

void *pair_memory(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    memset(memory, 0, length);
    return memory;
}

int pair_run(const pair_role *roles, const int *cpus, int count, void *shared, const void *options)
{
    pid_t children[MAX_ROLES];
    int started = 0, failed = 0, status;

    for (; started < count - 1; started++) {
        children[started] = fork();
        if (children[started] < 0) {
            perror("fork");
            failed = 1;
            break;
        }
        if (children[started] == 0) {
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            pair_pin(cpus[started]);
            _exit(roles[started](shared, options));
        }
    }
    if (!failed) {
        pair_pin(cpus[count - 1]);
        failed = roles[count - 1](shared, options);
    }
    for (int i = 0; i < started; i++) {
        if (failed)
            (void)kill(children[i], SIGKILL);
        if (waitpid(children[i], &status, 0) != children[i] || status != 0)
            failed = 1;
    }
    return failed;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double pair_median(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return values[count / 2];
}

int pair_parse_cpus(const char *program, const char *text, int cpus[2])
{
    if (sscanf(text, "%d,%d", &cpus[0], &cpus[1]) == 2)
        return 0;
    (void)fprintf(stderr, "%s: --cpu '%s': give two, as in 0,1\n", program, text);
    return -1;
}

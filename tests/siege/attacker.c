/*
 * One attacker of the siege: runs the processes of a row until its standard input ends.
 *
 *     attacker --socket PATH --socket PATH [--data HOST:PORT]... [--control HOST:PORT]...
 *              [--user NUMBER] [--processes N] ROW
 *     attacker --list
 *
 * Prints "ready" when all processes have begun, and at the end a line of JSON with the number of
 * acts that the daemons accepted. scripts/siege starts this program. The row "burners" only
 * computes; scripts/siege compares other rows with it.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shm_ring/clock.h"
#include "tests/siege/row.h"

#define PROCESSES_MAX 256u
#define READY_MS      8000
#define LOOK_MS       2

/*
 * A burner: computes without end. A round of its loop takes some 20 us of processor time. A much
 * longer round shows that the machine or the kernel has kept the processor busy, which counts as
 * the burner's time. A daemon's steps are delayed in the same way, so the longest round is
 * reported.
 */
static void burn(struct attack *a)
{
    uint64_t before = clock_of(CLOCK_THREAD_CPUTIME_ID);

    attack_begins(a);
    for (;;) {
        uint64_t now, pause;

        for (volatile unsigned i = 0; i < 1u << 14;)
            i++;
        attack_counts(a, 0);
        now = clock_of(CLOCK_THREAD_CPUTIME_ID);
        pause = atomic_load(&a->tally->pause_ns);
        while (now - before > pause &&
               !atomic_compare_exchange_weak(&a->tally->pause_ns, &pause, now - before))
            ;
        before = now;
    }
}

static const struct row rows_burners[] = {
    {"burners", "compute, and do nothing else", 1, 0, NULL, burn},
    {0},
};

static const struct row *const tables[] = {rows_burners, rows_requests, rows_transfers,
                                           rows_teams,   rows_handlers, rows_strangers};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static const struct row *find(const char *name)
{
    for (size_t t = 0; t < TABLES; t++)
        for (const struct row *row = tables[t]; row->name; row++)
            if (strcmp(row->name, name) == 0)
                return row;
    return NULL;
}

static void list(void)
{
    const char *between = "";

    printf("[");
    for (size_t t = 1; t < TABLES; t++)
        for (const struct row *row = tables[t]; row->name; row++) {
            printf("%s\n{\"name\": \"%s\", \"does\": \"%s\", \"processes\": %u, \"users\": %s, "
                   "\"alone\": %s, \"stream\": %s, \"daemon\": \"%s\"}",
                   between, row->name, row->does, row->processes,
                   row->flags & ROW_USERS ? "true" : "false",
                   row->flags & ROW_ALONE ? "true" : "false",
                   row->flags & ROW_STREAM ? "true" : "false", row->daemon ? row->daemon : "");
            between = ",";
        }
    printf("\n]\n");
}

static int become(uid_t uid)
{
    if (uid != getuid() &&
        (setgroups(0, NULL) != 0 || setresgid(uid, uid, uid) != 0 || setresuid(uid, uid, uid) != 0))
        return -errno;
    /* After the change of user, which resets both settings. Then processes of that user may trace
     * this one. */
    return prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 ? -errno : 0;
}

/* Raises the limit of descriptors to the most that this user may have. */
static void raise_limits(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static pid_t start(const struct row *row, struct attack *a, unsigned process)
{
    pid_t parent = getpid(), pid = fork();

    if (pid != 0)
        return pid;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent) {
        signal(SIGPIPE, SIG_IGN);
        a->process = process;
        row->run(a);
    }
    _exit(1);
}

/* Waits up to `ms` for the end of standard input. Returns whether it has ended. */
static int is_over(int ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char text[64];

    return poll(&in, 1, ms) == 1 && read(STDIN_FILENO, text, sizeof(text)) <= 0;
}

static int attack(const struct row *row, struct attack *a, unsigned processes)
{
    pid_t pids[PROCESSES_MAX];
    unsigned started = 0, ended = 0;
    int over = 0;

    while (started < processes && (pids[started] = start(row, a, started)) > 0)
        started++;
    for (int ms = 0; !over && ms < READY_MS && a->tally->ready < started; ms += LOOK_MS)
        over = is_over(LOOK_MS);
    printf("ready %u\n", a->tally->ready);
    fflush(stdout);
    while (!over)
        over = is_over(-1);
    for (unsigned i = 0; i < started; i++) /* before the first is killed: others may follow it */
        ended += waitpid(pids[i], NULL, WNOHANG) == pids[i];
    for (unsigned i = 0; i < started; i++)
        kill(pids[i], SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR)
        continue;
    printf(
        "{\"row\": \"%s\", \"processes\": %u, \"ready\": %u, \"taken\": %llu, \"refused\": %llu, "
        "\"ended\": %u, \"pause_us\": %.1f}\n",
        row->name, started, a->tally->ready, (unsigned long long)a->tally->taken,
        (unsigned long long)a->tally->refused, ended, (double)a->tally->pause_ns / 1e3);
    return started == processes ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"socket", required_argument, NULL, 's'},
                                            {"data", required_argument, NULL, 'd'},
                                            {"control", required_argument, NULL, 'c'},
                                            {"user", required_argument, NULL, 'u'},
                                            {"processes", required_argument, NULL, 'p'},
                                            {"list", no_argument, NULL, 'l'},
                                            {0}};
    unsigned sockets = 0, data = 0, control = 0, processes = 0;
    struct attack a = {0};
    uid_t uid = getuid();
    const struct row *row;
    int c, rc;

    while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (c == 'l') {
            list();
            return 0;
        } else if (c == 's' && sockets < ATTACK_NODES) {
            a.sockets[sockets++] = optarg;
        } else if (c == 'd' && data < ATTACK_PORTS - 1) {
            a.data[data++] = optarg;
        } else if (c == 'c' && control < ATTACK_PORTS - 1) {
            a.control[control++] = optarg;
        } else if (c == 'u') {
            uid = (uid_t)strtoul(optarg, NULL, 10);
        } else if (c == 'p') {
            processes = (unsigned)strtoul(optarg, NULL, 10);
        } else {
            return 2;
        }
    }
    row = optind == argc - 1 ? find(argv[optind]) : NULL;
    if (!row || processes > PROCESSES_MAX || (sockets < ATTACK_NODES && row != rows_burners)) {
        fprintf(stderr, "usage: attacker --socket PATH --socket PATH [...] ROW, or --list\n");
        return 2;
    }
    raise_limits();
    rc = become(uid);
    if (rc < 0) {
        fprintf(stderr, "attacker: becoming user %u: %s\n", (unsigned)uid, strerror(-rc));
        return 1;
    }
    a.tally =
        mmap(NULL, sizeof(*a.tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (a.tally == MAP_FAILED)
        return 1;
    snprintf(a.job, sizeof(a.job), "siege-%d", (int)getpid());
    return attack(row, &a, processes ? processes : row->processes);
}

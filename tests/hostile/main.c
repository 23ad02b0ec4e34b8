/*
 * Hostile clients beside honest ones: processes attach properly and then write anything anywhere
 * they can, and strangers connect to the socket. Meanwhile honest ranks, two on different nodes and
 * two on one node, exchange data, and check each byte and event and their order. Afterwards the
 * daemons must still run, hold what they held before, have given a reason for each client that they
 * ended, and end in order.
 *
 *     hostile [--mutations N] [--seed S] PWCD PWCCTL
 *
 * A seed always leads to the same choices, but not to the same timing.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/lib/command.h"
#include "tests/lib/bystanders.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/cluster.h"
#include "tests/hostile/hostile.h"
#include "tests/lib/process.h"
#include "tests/lib/raw/session.h"
#include "tests/hostile/victim.h"

#define NODES     2u
#define PROCESSES 5u
#define END_MS    60000
#define LOG_MAX   (1u << 20)
#define GROWTH_KB                                                                                  \
    65536 /* how much a daemon may grow, by memory that it uses for the first time and keeps */

/* The hostile processes, and their nodes. The two raw sessions of one job, on two nodes, also put
 * to each other. */
static const struct {
    const char *name;
    int (*run)(const struct hostile *h);
    const char *job;
    uint32_t node, rank, size;
    uint32_t share; /* percent of all mutations; 0: runs until the others are done */
} roles[PROCESSES] = {
    {"session on node 0", hostile_session, "raw", 0, 0, 2, 35},
    {"session on node 1", hostile_session, "raw", 1, 1, 2, 35},
    {"neighbour on node 0", hostile_neighbour, "beside", 0, 1, 2, 30},
    {"sockets of node 0", hostile_sockets, "sockets", 0, 0, 4, 0},
    {"sockets of node 1", hostile_sockets, "sockets", 1, 0, 4, 0},
};

struct run {
    struct cluster cluster;
    struct bystanders across, beside;
    struct victim victim;
    struct board *board;
    struct tally *tallies;
    struct hostile hostile[PROCESSES];
    pid_t pids[PROCESSES]; /* 0: the process has ended */
    struct holdings before[NODES];
    int64_t resident_kb[NODES]; /* resident memory when half of the mutations were done */
    const char *pwcctl;
    int log; /* descriptor of the daemons' log */
    uint64_t mutations, seed;
    bool failed;
};

static bool check(struct run *r, bool well, const char *what)
{
    if (!well) {
        fprintf(stderr, "hostile: %s\n", what);
        r->failed = true;
    }
    return well;
}

/* ---- start ----------------------------------------------------------------------------------- */

/* The daemons write their standard error into memory, which is read when they have ended. */
static int open_cluster(struct run *r, const char *pwcd)
{
    static const char *const more[] = {"--peer-deadline-ms", "5000", NULL};
    const struct cluster_options options = {
        .pwcd = pwcd, .provider = "tcp;ofi_rxm", .more = more, .nodes = NODES};
    int own = dup(STDERR_FILENO), rc;

    r->log = memfd_create("log", MFD_CLOEXEC);
    if (own < 0 || r->log < 0 || dup2(r->log, STDERR_FILENO) < 0)
        return -errno;
    rc = cluster_open(&r->cluster, &options);
    dup2(own, STDERR_FILENO);
    close(own);
    if (rc < 0)
        fprintf(stderr, "hostile: %s\n", r->cluster.failure);
    return rc;
}

static void begin(struct run *r, uint32_t i)
{
    struct hostile *h = &r->hostile[i];
    pid_t parent = getpid();

    *h = (struct hostile){
        .node = &r->cluster.nodes[roles[i].node],
        .job = roles[i].job,
        .rank = roles[i].rank,
        .size = roles[i].size,
        .mutations = roles[i].share ? r->mutations * roles[i].share / 100 : UINT64_MAX,
        .seed = r->seed * PROCESSES + i,
        .board = r->board,
        .tally = &r->tallies[i],
    };
    r->pids[i] = fork();
    if (r->pids[i] != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!atomic_load(&r->board->go) && getppid() == parent)
        usleep(1000);
    _exit(roles[i].run(h));
}

/* Forks the hostile processes first, so that they inherit no client and no thread. */
static int start(struct run *r, const char *pwcd)
{
    size_t bytes = sizeof(*r->board) + PROCESSES * sizeof(*r->tallies);
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int rc = shared == MAP_FAILED ? -errno : 0;

    if (rc < 0)
        return rc;
    r->board = shared;
    r->tallies = (struct tally *)(void *)(r->board + 1);
    rc = open_cluster(r, pwcd);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < PROCESSES; i++)
        begin(r, i);
    rc = bystanders_start(&r->across, &r->cluster, "across");
    if (rc == 0)
        rc = bystanders_start_on(&r->beside, r->cluster.nodes[0].socket, "alone");
    if (rc == 0 && (!bystanders_go_on(&r->across) || !bystanders_go_on(&r->beside)))
        rc = -EIO;
    for (uint32_t i = 0; rc == 0 && i < NODES; i++)
        rc = look_node_holdings(&r->cluster.nodes[i], &r->before[i]) ? 0 : -EIO;
    return rc < 0 ? rc : victim_start(&r->victim, &r->cluster.nodes[0], roles[2].job, r->board);
}

/* ---- while they run -------------------------------------------------------------------------- */

/* Returns whether this process has ended. A signal, or a status other than 0, is a failure. */
static bool has_ended(struct run *r, uint32_t i)
{
    int status;

    if (r->pids[i] > 0 && waitpid(r->pids[i], &status, WNOHANG) == r->pids[i]) {
        r->pids[i] = 0;
        if (status != 0) {
            fprintf(stderr, "%s: %s %d\n", roles[i].name,
                    WIFSIGNALED(status) ? "signal" : "exit status",
                    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
            r->failed = true;
        }
    }
    return r->pids[i] == 0;
}

static uint64_t done(const struct run *r)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < PROCESSES; i++)
        sum += roles[i].share ? tally_sum(&r->tallies[i]) : 0;
    return sum;
}

static void print_progress(const struct run *r)
{
    printf("%llu mutations, %llu + %llu + %llu checked rounds\n", (unsigned long long)done(r),
           (unsigned long long)r->across.rounds, (unsigned long long)r->beside.rounds,
           (unsigned long long)r->victim.rounds);
    fflush(stdout);
}

static void watch(struct run *r)
{
    bool busy = true;

    for (uint64_t turn = 1; busy && !r->failed; turn++) {
        busy = false;
        for (uint32_t i = 0; i < PROCESSES; i++)
            busy |= !has_ended(r, i) && roles[i].share > 0;
        check(r, cluster_runs(&r->cluster), r->cluster.failure);
        check(r, !r->across.failed && !r->beside.failed, "a bystander has seen something wrong");
        check(r, !r->victim.failed, "a neighbour has seen something wrong");
        if (r->resident_kb[0] == 0 && done(r) >= r->mutations / 2)
            for (uint32_t i = 0; i < NODES; i++)
                r->resident_kb[i] = process_resident_kb(r->cluster.nodes[i].pid);
        if (turn % 3000 == 0)
            print_progress(r);
        usleep(10000);
    }
}

static void stop_hostile(struct run *r)
{
    atomic_store(&r->board->stop, true);
    for (uint32_t i = 0; i < PROCESSES; i++) {
        for (int ms = 0; ms < END_MS && !has_ended(r, i); ms++)
            usleep(1000);
        if (r->pids[i] > 0) {
            check(r, false, "a hostile process does not end");
            kill(r->pids[i], SIGKILL);
            waitpid(r->pids[i], NULL, 0);
        }
    }
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static void check_growth(struct run *r)
{
    for (uint32_t i = 0; i < NODES; i++) {
        pid_t pid = r->cluster.nodes[i].pid;
        int64_t now = process_resident_kb(pid);

        printf("daemon %u: %lld KiB resident, were %lld at half\n", i, (long long)now,
               (long long)r->resident_kb[i]);
#ifndef __SANITIZE_ADDRESS__ /* AddressSanitizer keeps freed memory */
        check(r, now - r->resident_kb[i] < GROWTH_KB, "a daemon has grown");
#endif
    }
}

static const char reason_of_last[] = "submission ring: tail or record size out of range";

/* Checks that pwcctl shows which client was ended, and why, for one last client, which moves a tail
 * too far. */
static void check_shown(struct run *r)
{
    for (uint32_t i = 0; i < NODES; i++) {
        const char *const argv[] = {r->pwcctl, "--socket", r->cluster.nodes[i].socket, "clients",
                                    NULL};
        struct command *c;
        struct daemon d = {0};
        struct raw_session s;

        memcpy(d.socket, r->cluster.nodes[i].socket, sizeof(d.socket) - 1);
        if (check(r, raw_session_open(&s, &d, "last", 0, 1) == 0, "nobody can attach any more"))
            raw_set_tail(&s, 2 * RAW_RING);
        check(r, raw_hangs_up(s.socket), "a tail out of range is let pass");
        raw_session_close(&s);
        c = command_start(argv, NULL);
        check(r, command_finish(c) == 0 && strstr(c->out_text, reason_of_last),
              "pwcctl clients shows no reason");
        command_free(c);
    }
}

/* Whether this line ends with a reason that a hostile client was given. */
static bool reason_is_known(const struct run *r, const char *line)
{
    for (uint32_t i = 0; i < PROCESSES; i++)
        for (uint32_t n = 0; n < TALLY_REASONS && r->tallies[i].reasons[n].count > 0; n++)
            if (strstr(line, r->tallies[i].reasons[n].text))
                return true;
    return strstr(line, reason_of_last);
}

/* Checks the log. Its lines are limited, so some reasons are missing; but each client that was
 * ended has a line, or is counted among the lines that were left out, and some lines have
 * reasons. */
static void check_log(struct run *r)
{
    static const char left_out[] = " more lines about clients were left out";
    char *text = calloc(1, LOG_MAX), *rest = text, *line;
    uint64_t ended = NODES, lines = 0, known = 0, more = 0; /* one last client of each node */

    for (uint32_t i = 0; i < PROCESSES; i++)
        ended += atomic_load(&r->tallies[i].quarantined);
    if (!check(r, text && pread(r->log, text, LOG_MAX - 1, 0) >= 0, "the log cannot be read"))
        rest = NULL;
    while ((line = strsep(&rest, "\n")) != NULL) {
        unsigned count;

        if (strstr(line, "client of pid")) {
            lines++;
            known += reason_is_known(r, line);
        } else if (strstr(line, left_out) && sscanf(line, "pwcd: warning: %u", &count) == 1) {
            more += count;
        }
        if (rest)
            rest[-1] = '\n';
    }
    check(r, known > 0, "the daemons' log has no reason");
    if (!check(r, lines + more >= ended, "the daemons' log misses clients that were ended"))
        fprintf(stderr, "hostile: %llu lines and %llu left out, of %llu clients\n",
                (unsigned long long)lines, (unsigned long long)more, (unsigned long long)ended);
    if (r->failed && text)
        fprintf(stderr, "%.4000s\n", text);
    free(text);
}

static void print_sums(const struct run *r)
{
    uint64_t attached = 0, quarantined = 0;

    for (int target = 0; target < TARGETS; target++) {
        uint64_t sum = 0;

        for (uint32_t i = 0; i < PROCESSES; i++)
            sum += atomic_load(&r->tallies[i].mutations[target]);
        printf("%12llu %s\n", (unsigned long long)sum, target_name(target));
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        const struct tally *t = &r->tallies[i];

        attached += atomic_load(&t->attached);
        quarantined += atomic_load(&t->quarantined);
        for (uint32_t n = 0; n < TALLY_REASONS && t->reasons[n].count > 0; n++)
            printf("%12llu of the %s: %s\n", (unsigned long long)t->reasons[n].count, roles[i].name,
                   t->reasons[n].text);
    }
    printf("%llu sessions, %llu of them quarantined; %llu rounds across, %llu on one node, %llu "
           "beside a hostile neighbour, from which %llu events came\n",
           (unsigned long long)attached, (unsigned long long)quarantined,
           (unsigned long long)r->across.rounds, (unsigned long long)r->beside.rounds,
           (unsigned long long)r->victim.rounds, (unsigned long long)r->victim.events);
}

static void finish(struct run *r)
{
    stop_hostile(r);
    check(r, victim_stop(&r->victim), "a neighbour has seen something wrong");
    check(r, bystanders_go_on(&r->across) && bystanders_go_on(&r->beside),
          "the bystanders do not go on");
    for (uint32_t i = 0; i < NODES; i++)
        check(r, look_node_returns_to(&r->cluster.nodes[i], &r->before[i]),
              "a daemon holds what is nobody's");
    check_growth(r);
    check_shown(r);
    check(r, bystanders_stop(&r->across), "a bystander has failed");
    check(r, bystanders_stop(&r->beside), "a bystander has failed");
    check(r, cluster_runs(&r->cluster), r->cluster.failure);
    check(r, cluster_close(&r->cluster) == 0, r->cluster.failure);
    check_log(r);
    print_sums(r);
}

static bool options_take(struct run *r, int argc, char **argv)
{
    static const struct option options[] = {
        {"mutations", required_argument, NULL, 'm'}, {"seed", required_argument, NULL, 's'}, {0}};
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'm')
            r->mutations = strtoull(optarg, NULL, 0);
        else if (option == 's')
            r->seed = strtoull(optarg, NULL, 0);
        else
            return false;
    }
    return argc - optind == 2 && r->mutations > 0;
}

int main(int argc, char **argv)
{
    static struct run r = {.mutations = 100000, .seed = 1, .log = -1};
    int rc;

    if (!options_take(&r, argc, argv)) {
        fprintf(stderr, "usage: %s [--mutations N] [--seed S] PWCD PWCCTL\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    r.pwcctl = argv[optind + 1];
    rc = start(&r, argv[optind]);
    if (rc < 0) {
        fprintf(stderr, "hostile: cannot start: %s\n", strerror(-rc));
        return 1; /* the children and daemons die with this process */
    }
    atomic_store(&r.board->go, true);
    watch(&r);
    finish(&r);
    printf("seed %llu: %s\n", (unsigned long long)r.seed, r.failed ? "failed" : "well");
    return r.failed;
}

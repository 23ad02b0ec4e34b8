/*
 * Every call of daemon and library into the C library is made to fail, one after another: with each
 * error that it may return, at its first passing, at its last, and at all. The caller must get an
 * error in time, no process may crash, nothing may stay allocated, and afterwards all must be
 * served as before.
 *
 *     test_calls PWCD VICTIM SHIM [whole [library|serving|starting [CALL]]]
 *
 * With CALL, as "mmap", only the rows of that call.
 *
 * Without `whole` the test runs a sample of the table, as large as BUDGET_S seconds allow. The
 * sample follows from the day, or from PWC_SEED; the seed is printed.
 *
 * A first run finds the call sites (shim.h). To find a site's source line: addr2line -e PROGRAM
 * 0xOFFSET.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/suite.h"
#include "tests/faults/shim.h"
#include "tests/faults/trial.h"

enum {
    BUDGET_S = 8, /* seconds for each of three tables */
    CALL_MS = 3000,
    SETTLE_MS = 3000,
    PLAYS = 4, /* as many as pairs of engines */
    ROWS_MAX = SHIM_SITES * 8,
};

#define OWN_DAEMON  "pwcd libprotobuf-c libjansson libinih"
#define OWN_LIBRARY "libpwc libprotobuf-c"

static const struct {
    const char *name;
    int errors[SHIM_ERRORS];
} calls[SHIM_CALLS] = {
    [SHIM_ACCEPT4] = {"accept4", {EMFILE, ECONNABORTED, EINTR}},
    [SHIM_BIND] = {"bind", {EADDRINUSE}},
    [SHIM_CALLOC] = {"calloc", {ENOMEM}},
    [SHIM_CHMOD] = {"chmod", {EPERM}},
    [SHIM_CONNECT] = {"connect", {ECONNREFUSED, EAGAIN}},
    [SHIM_EPOLL_CREATE1] = {"epoll_create1", {EMFILE}},
    [SHIM_EPOLL_CTL] = {"epoll_ctl", {ENOMEM, ENOSPC}},
    [SHIM_EPOLL_PWAIT2] = {"epoll_pwait2", {EINTR}},
    [SHIM_EVENTFD] = {"eventfd", {EMFILE}},
    [SHIM_FALLOCATE] = {"posix_fallocate", {ENOSPC}},
    [SHIM_FCHMOD] = {"fchmod", {EPERM}},
    [SHIM_FCNTL] = {"fcntl", {EMFILE, EPERM}},
    [SHIM_FLOCK] = {"flock", {ENOLCK, EINTR}},
    [SHIM_FOPEN] = {"fopen", {EMFILE}},
    [SHIM_FSTAT] = {"fstat", {EIO}},
    [SHIM_FTRUNCATE] = {"ftruncate", {ENOMEM}},
    [SHIM_FUTEX_WAIT] = {"futex", {EINTR, EAGAIN}},
    [SHIM_GETSOCKOPT] = {"getsockopt", {ENOBUFS}},
    [SHIM_LISTEN] = {"listen", {EADDRINUSE}},
    [SHIM_MADVISE] = {"madvise", {ENOMEM}},
    [SHIM_MALLOC] = {"malloc", {ENOMEM}},
    [SHIM_MEMBARRIER] = {"membarrier", {EPERM}},
    [SHIM_MEMFD_CREATE] = {"memfd_create", {EMFILE, ENOMEM}},
    [SHIM_MKDIR] = {"mkdir", {EACCES}},
    [SHIM_MMAP] = {"mmap", {ENOMEM}},
    [SHIM_MREMAP] = {"mremap", {ENOMEM}},
    [SHIM_OPEN] = {"open", {EMFILE, EACCES}},
    [SHIM_PIDFD_OPEN] = {"pidfd_open", {EMFILE, ESRCH}},
    [SHIM_POLL] = {"poll", {EINTR, ENOMEM}},
    [SHIM_PTHREAD_CREATE] = {"pthread_create", {EAGAIN}},
    [SHIM_READ] = {"read", {EINTR, EAGAIN}},
    [SHIM_REALLOC] = {"realloc", {ENOMEM}},
    [SHIM_RECVMSG] = {"recvmsg", {EINTR, EAGAIN, ECONNRESET}},
    [SHIM_SEND] = {"send", {EAGAIN}},
    [SHIM_SENDMSG] = {"sendmsg", {EINTR, EAGAIN, EPIPE}},
    [SHIM_SETSOCKOPT] = {"setsockopt", {ENOBUFS}},
    [SHIM_SHUTDOWN] = {"shutdown", {ENOTCONN}},
    [SHIM_SOCKET] = {"socket", {EMFILE}},
    [SHIM_SOCKETPAIR] = {"socketpair", {EMFILE}},
    [SHIM_STRDUP] = {"strdup", {ENOMEM}},
    [SHIM_WRITE] = {"write", {EINTR, EAGAIN}},
};

struct row {
    uint64_t key, at;
    int error;
    bool for_ever;
};

/* main sets these before the tests run. */
static struct {
    const char *pwcd, *victim, *shim;
    bool whole;
    const char *only;      /* run only this table; run only this call's rows; NULL: all */
    const char *only_call; /* NULL: all */
    uint64_t seed;
    struct trial trial;
    struct shim_board *board;
    int board_fd;
    /* The ranks' output is kept in said_fd, and shown on screen when a row fails. */
    int said_fd, screen;
    struct row rows[ROWS_MAX];
    uint32_t row_count;
} t;

/* ---- output of the processes ----------------------------------------------------------------- */

static void listen_to_all(void)
{
    (void)!ftruncate(t.said_fd, 0);
    lseek(t.said_fd, 0, SEEK_SET);
    dup2(t.said_fd, STDERR_FILENO);
}

static bool somebody_said(const char *words)
{
    char text[8192];
    ssize_t got = pread(t.said_fd, text, sizeof(text) - 1, 0);

    text[got > 0 ? got : 0] = '\0';
    return strstr(text, words) != NULL;
}

static void show_what_was_said(void)
{
    char text[8192];
    ssize_t got = pread(t.said_fd, text, sizeof(text), 0);

    (void)!write(t.screen, text, got > 0 ? (size_t)got : 0);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Whether the kernel returns this error only for a moment: such an error is not injected at all
 * passings. */
static bool passes(const struct row *row)
{
    return row->error == EINTR || (row->error == EAGAIN && shim_call_of(row->key) != SHIM_CONNECT &&
                                   shim_call_of(row->key) != SHIM_PTHREAD_CREATE);
}

static void add_row(const struct row *row)
{
    if (t.row_count < ROWS_MAX)
        t.rows[t.row_count++] = *row;
}

static void add_site(const struct shim_site *site)
{
    for (int i = 0; i < (int)SHIM_ERRORS; i++) {
        struct row row = {.key = site->key, .at = 1};

        row.error = calls[shim_call_of(site->key)].errors[i];
        if (row.error == 0)
            break;
        add_row(&row);
        row.at = site->passed;
        if (site->passed > 1)
            add_row(&row);
        row.at = 1;
        row.for_ever = true;
        if (!passes(&row))
            add_row(&row);
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static bool is_chosen_call(const struct shim_site *site)
{
    return !t.only_call || strcmp(t.only_call, calls[shim_call_of(site->key)].name) == 0;
}

/* Makes rows for all chosen call sites that the program has reached, in an order that follows from
 * the seed. */
static void make_rows(void)
{
    uint64_t state = t.seed;

    t.row_count = 0;
    for (uint32_t i = 0; i < SHIM_SITES; i++)
        if (t.board->sites[i].passed > 0 && is_chosen_call(&t.board->sites[i]))
            add_site(&t.board->sites[i]);
    for (uint32_t i = t.row_count; i > 1; i--) {
        uint32_t other = (uint32_t)(next_random(&state) % i);
        struct row row = t.rows[i - 1];

        t.rows[i - 1] = t.rows[other];
        t.rows[other] = row;
    }
}

static void forget_passings(void)
{
    for (uint32_t i = 0; i < SHIM_SITES; i++)
        t.board->sites[i].passed = 0;
}

static void arm(const struct row *row)
{
    forget_passings();
    t.board->failed = 0;
    t.board->fail_at = row->at;
    t.board->error = row->error;
    t.board->for_ever = row->for_ever;
    t.board->fail_key = row->key;
}

static void forget_allocations(void)
{
    t.board->live = 0;
    for (uint32_t i = 0; i < SHIM_SITES; i++)
        t.board->sites[i].live = 0;
}

static void disarm(void)
{
    t.board->fail_key = 0;
}

static bool chosen(const char *table)
{
    return !t.only || strcmp(t.only, table) == 0;
}

/* Runs `one` on as many rows as there is time for. `one` returns false when a check has failed. */
static void run_rows(const char *where, bool (*one)(const struct row *row))
{
    time_t end = time(NULL) + BUDGET_S;
    uint32_t done = 0, failed = 0, unmet = 0;

    CU_ASSERT(t.row_count > 0);
    for (; done < t.row_count && (t.whole || time(NULL) < end); done++) {
        const struct row *row = &t.rows[done];
        bool good;

        listen_to_all();
        good = one(row);
        disarm();
        unmet += t.board->failed == 0;
        dup2(t.screen, STDERR_FILENO);
        CU_ASSERT(good);
        if (good)
            continue;
        failed++;
        fprintf(stderr, "^ %s of module %u, 0x%llx, passing %llu%s: %s\n",
                calls[shim_call_of(row->key)].name, shim_module_of(row->key),
                (unsigned long long)shim_offset_of(row->key), (unsigned long long)row->at,
                row->for_ever ? " and on" : "", strerror(row->error));
    }
    printf("\n    %s: %u of %u rows, %u failed, the call not reached in %u, seed %llu ", where,
           done, t.row_count, failed, unmet, (unsigned long long)t.seed);
    CU_ASSERT(done > 0);
    CU_ASSERT(unmet * 2 <= done); /* some sites are passed only at certain timings */
}

static bool fail(const char *what)
{
    show_what_was_said();
    dprintf(t.screen, "%s\n", what);
    return false;
}

/* ---- in the library -------------------------------------------------------------------------- */

static void in_shimmed_victim(void *context)
{
    stage_name("PWC_SHIM_FD", t.board_fd);
    setenv("PWC_SHIM_OWN", OWN_LIBRARY, 1);
    setenv("LD_PRELOAD", t.shim, 1);
}

static bool library_row(const struct row *row)
{
    const struct trial_plan plan = {
        .role = ROLE_ALL, .call_ms = CALL_MS, .in_victim = in_shimmed_victim};
    int status = -1;
    bool good;

    forget_allocations();
    arm(row);
    good = trial_run(&t.trial, &plan, &status);
    disarm();
    if (!good || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        return fail("the victim crashes, leaks or hangs, or others notice");
    if (passes(row) && status != 0)
        return fail("what passes is an error to the victim");
    if (t.board->live != 0) {
        dprintf(t.screen, "%lld allocations are left\n", (long long)t.board->live);
        return fail("the library leaks memory");
    }
    return trial_settles(&t.trial) || fail("the daemons do not give all back");
}

static void library(void)
{
    const struct cluster_options options = {.pwcd = t.pwcd, .provider = "tcp;ofi_rxm", .nodes = 2};
    const struct row nothing = {.at = 1};

    if (!chosen("library"))
        return;
    memset(t.board, 0, sizeof(*t.board));
    CU_ASSERT_FATAL(trial_open(&t.trial, &options, t.victim));
    CU_ASSERT_FATAL(trial_serves(&t.trial) && trial_note_quiet(&t.trial));
    CU_ASSERT_FATAL(library_row(&nothing));
    make_rows();
    run_rows("library", library_row);
    CU_ASSERT(trial_close(&t.trial));
}

/* ---- in daemons ------------------------------------------------------------------------------ */

/* `more`: further arguments, up to NULL. */
static bool open_shimmed(const char *const *more)
{
    const struct cluster_options options = {
        .pwcd = t.pwcd, .provider = "tcp;ofi_rxm", .nodes = 2, .more = more};
    bool opened;

    forget_allocations();
    t.board->pids = 0;
    stage_name("PWC_SHIM_FD", t.board_fd);
    setenv("PWC_SHIM_OWN", OWN_DAEMON, 1);
    setenv("LD_PRELOAD", t.shim, 1);
    opened = trial_open(&t.trial, &options, t.victim);
    unsetenv("LD_PRELOAD");
    return opened;
}

static void in_plain_victim(void *context)
{
}

static bool play(enum trial_failure may_fail, int *status)
{
    const struct trial_plan plan = {
        .role = ROLE_ALL, .call_ms = CALL_MS, .may_fail = may_fail, .in_victim = in_plain_victim};

    return trial_run(&t.trial, &plan, status);
}

static bool played_well(void)
{
    int status = -1;

    return play(TRIAL_NONE, &status) && status == 0;
}

static bool all_well(void)
{
    return played_well() && trial_settles(&t.trial);
}

/* A failure may have broken the link between the daemons. The daemons make the link again without
 * being asked, but its connections only when two ranks use them. So the first plays may still fail,
 * and then one must succeed. */
static bool recovers(void)
{
    bool well = false;

    for (int i = 0; !well && i < PLAYS; i++)
        well = played_well();
    return well;
}

/* Two engines connect when they first need each other, which may be in any play. So only memory
 * that every play leaves allocated is a leak. */
static bool all_well_in_the_end(void)
{
    bool well = trial_serves(&t.trial) && played_well(), settled = false;

    for (int i = 0; well && !settled && i < PLAYS; i++) {
        well = trial_note_quiet(&t.trial) && played_well();
        settled = well && trial_settles(&t.trial);
    }
    return settled;
}

/* The daemons' allocations while they serve no client. */
static struct {
    int64_t all, of_site[SHIM_SITES];
} quiet;

static void note_quiet_allocations(void)
{
    quiet.all = t.board->live;
    for (uint32_t i = 0; i < SHIM_SITES; i++)
        quiet.of_site[i] = t.board->sites[i].live;
}

static void fail_kept_allocations(void)
{
    for (uint32_t i = 0; i < SHIM_SITES; i++) {
        const struct shim_site *site = &t.board->sites[i];

        if (site->live != quiet.of_site[i])
            dprintf(t.screen, "%lld allocations by %s of module %u, 0x%llx, were %lld\n",
                    (long long)site->live, calls[shim_call_of(site->key)].name,
                    shim_module_of(site->key), (unsigned long long)shim_offset_of(site->key),
                    (long long)quiet.of_site[i]);
    }
}

/* Waits until the allocations are as before, because another thread may free memory a moment later.
 * A leak is reported once. */
static bool live_returns(void)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    bool good;

    for (int i = 0; i < SETTLE_MS && t.board->live > quiet.all; i++)
        nanosleep(&pause, NULL);
    good = t.board->live <= quiet.all;
    if (!good) {
        fail_kept_allocations();
        note_quiet_allocations();
    }
    return good;
}

static bool open_serving(void)
{
    if (!open_shimmed(NULL) || !trial_serves(&t.trial) || !trial_note_quiet(&t.trial) ||
        !all_well() || !all_well())
        return false;
    note_quiet_allocations();
    return true;
}

/* Whether a process that has ended by itself has printed the reason. */
static bool ended_with_words(void)
{
    bool good = somebody_said("pwcd: error");

    for (int i = 0; i < 2; i++)
        good = good && !WIFSIGNALED(t.trial.cluster.nodes[i].status);
    return good;
}

static bool serving_row(const struct row *row)
{
    int status = -1;
    bool good;

    arm(row);
    good = play(row->for_ever ? TRIAL_LATE : TRIAL_IN_TIME, &status);
    disarm();
    if (!cluster_runs(&t.trial.cluster)) {
        (void)trial_close(&t.trial);
        good = ended_with_words() || fail("a daemon crashes, or ends without a word");
        return open_serving() && good;
    }
    if (!good || !WIFEXITED(status) || WEXITSTATUS(status) > 1)
        return fail("a client hangs, or crashes");
    if (!recovers())
        return fail("the daemons do not serve any more");
    if (!trial_settles(&t.trial))
        return fail("the daemons do not give all back");
    return live_returns() || fail("the daemons leak memory");
}

static void serving(void)
{
    if (!chosen("serving"))
        return;
    memset(t.board, 0, sizeof(*t.board));
    listen_to_all();
    CU_ASSERT_FATAL(open_serving());
    dup2(t.screen, STDERR_FILENO);
    forget_passings();
    CU_ASSERT_FATAL(all_well());
    make_rows();
    run_rows("serving daemons", serving_row);
    CU_ASSERT(trial_close(&t.trial));
}

/* Two threads, so that a failure at the second must undo the first. */
static const char *const two_threads[] = {"--progress-threads", "2", NULL};

static bool starting_row(const struct row *row)
{
    bool good;

    arm(row);
    if (open_shimmed(two_threads)) {
        disarm();
        good = all_well_in_the_end();
        if (!good)
            fail("they have come to serve, and don't");
        return trial_close(&t.trial) && good;
    }
    disarm();
    (void)trial_close(&t.trial);
    return ended_with_words() || fail("a daemon crashes, or ends without a word");
}

static void starting(void)
{
    if (!chosen("starting"))
        return;
    memset(t.board, 0, sizeof(*t.board));
    CU_ASSERT_FATAL(open_shimmed(two_threads));
    make_rows();
    CU_ASSERT(trial_close(&t.trial));
    run_rows("starting daemons", starting_row);
}

/* ---- the program ----------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"calls of the library fail", library},
                           {"calls of daemons that serve fail", serving},
                           {"calls of daemons that start fail", starting},
                           CU_TEST_INFO_NULL};
    const char *seed = getenv("PWC_SEED");

    signal(SIGPIPE, SIG_IGN);
    if (argc < 4)
        return 2;
    t.pwcd = argv[1];
    t.victim = argv[2];
    t.shim = argv[3];
    t.whole = argc > 4 && strcmp(argv[4], "whole") == 0;
    t.only = argc > 5 ? argv[5] : NULL;
    t.only_call = argc > 6 ? argv[6] : NULL;
    t.seed = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) / 86400;
    t.said_fd = memfd_create("pwc-said", MFD_CLOEXEC);
    t.screen = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    t.board = stage_share(sizeof(*t.board), &t.board_fd);
    setenv("PWC_TEST_LOG", "error", 0);
    if (t.said_fd < 0 || t.screen < 0 || !t.board)
        return 1;
    return suite_run("calls", tests);
}

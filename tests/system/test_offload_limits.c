/*
 * The holdings of an offload, and how they are given back: quotas of programs and offloads when the
 * daemon dies or hands over, puts that are under way when the offload is destroyed, and the
 * offload's targets.
 *
 *     test_offload_limits PWCD KEY_VALUE.o SLOW_END.o
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include "pwc/offload.h"
#include "tests/lib/cluster.h"
#include "tests/lib/rank.h"
#include "tests/suite.h"
#include "tests/system/lib/offload.h"

enum {
    INDEX = 7,
    REGION_BYTES = 1 << 16,
    LIMIT_S = 60,
    CLIENT_OFFLOADS = 3, /* the user may have one more */
};

/* Set by main before the tests run. */
static struct cluster cluster;
static const char *key_value_file, *slow_end_file;

/* ---- quotas over restarts -------------------------------------------------------------------- */

/* Creates one more offload of the rank. Returns 0, or an error of pwc_offload_create. */
static int create(struct rank *r, pwc_program *program, uint32_t index, pwc_offload **out)
{
    const struct pwc_offload_attr attr = {.program = program, .index = index};
    int rc;

    do
        rc = pwc_offload_create(r->ctx, &attr, out);
    while (rc == -ECONNABORTED); /* the daemon has died meanwhile: ask again */
    return rc;
}

/* A daemon that takes over still counts a client's programs and offloads, for the client and for
 * its user. */
static void test_quota_stays(void)
{
    pwc_offload *offload[CLIENT_OFFLOADS], *other, *more;
    pwc_program *program[2];
    struct rank r[2];

    for (uint32_t i = 0; i < 2; i++) {
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&r[i], cluster.nodes[1].socket, "quota", i, 2, REGION_BYTES), 0);
        CU_ASSERT_EQUAL_FATAL(offload_load(&r[i], key_value_file, &program[i]), 0);
    }
    for (uint32_t i = 0; i < CLIENT_OFFLOADS; i++)
        CU_ASSERT_EQUAL_FATAL(create(&r[0], program[0], i, &offload[i]), 0);
    CU_ASSERT_EQUAL_FATAL(create(&r[1], program[1], 0, &other), 0);
    for (int i = 0; i < 2; i++) {
        offload_daemon_goes(&cluster, i == 0);
        CU_ASSERT_EQUAL(create(&r[0], program[0], 10, &more), -EDQUOT);
        CU_ASSERT_EQUAL(create(&r[1], program[1], 10, &more), -EDQUOT);
        /* An offload that is destroyed at the next daemon lowers the counts once. */
        CU_ASSERT_EQUAL(pwc_offload_destroy(offload[0]), 0);
        CU_ASSERT_EQUAL(create(&r[1], program[1], 10, &more), 0);
        CU_ASSERT_EQUAL(create(&r[0], program[0], 0, &offload[0]), -EDQUOT);
        CU_ASSERT_EQUAL(pwc_offload_destroy(more), 0);
        CU_ASSERT_EQUAL(create(&r[0], program[0], 0, &offload[0]), 0);
    }
    for (uint32_t i = 0; i < 2; i++)
        rank_detach(&r[i]);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

/* ---- puts that are cut ----------------------------------------------------------------------- */

struct slow_end { /* as in slow_end.c */
    uint64_t begun, ended, cut, turns;
};

enum { ORIGINS = 4, LONG_PUT = 8 << 20 };

/* Creates an offload for puts to the rank's region, and returns its state. */
static const volatile struct slow_end *end_slowly(struct rank *r, pwc_region **state,
                                                  pwc_offload **offload)
{
    struct pwc_offload_attr attr = {.flags = PWC_OFFLOAD_QUIET, .region = r->region};

    CU_ASSERT_EQUAL_FATAL(offload_load(r, slow_end_file, &attr.program), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_alloc(r->client, 4096, PWC_REMOTE_READ, state), 0);
    attr.state = *state;
    attr.state_length = sizeof(struct slow_end);
    CU_ASSERT_EQUAL_FATAL(pwc_offload_create(r->ctx, &attr, offload), 0);
    return pwc_region_addr(*state);
}

/* Destroys an offload while puts of several origins have begun. Their completion handlers, for
 * which the daemon needs more than one step, have all run when the call returns. Returns whether a
 * put was cut. */
static bool cut_at_once(const char *job)
{
    const volatile struct slow_end *seen;
    struct rank owner, origin[ORIGINS];
    pwc_offload *offload;
    pwc_region *state;
    bool cut;

    CU_ASSERT_EQUAL_FATAL(
        rank_attach(&owner, cluster.nodes[1].socket, job, 0, ORIGINS + 1, LONG_PUT), 0);
    seen = end_slowly(&owner, &state, &offload);
    for (uint32_t i = 0; i < ORIGINS; i++) {
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&origin[i], cluster.nodes[0].socket, job, i + 1, ORIGINS + 1, LONG_PUT), 0);
        CU_ASSERT_EQUAL_FATAL(rank_bind(&origin[i], &owner), 0);
    }
    for (uint32_t i = 0; i < ORIGINS; i++)
        CU_ASSERT_EQUAL(
            pwc_put(origin[i].remote, 0, origin[i].memory, LONG_PUT, PWC_CID_NONE, PWC_CID_NONE, 0),
            0);
    for (time_t end = time(NULL) + LIMIT_S; seen->begun < ORIGINS && time(NULL) < end;)
        continue;
    CU_ASSERT_EQUAL(pwc_offload_destroy(offload), 0);
    CU_ASSERT_EQUAL(seen->begun, ORIGINS);
    CU_ASSERT_EQUAL(seen->ended, ORIGINS);
    cut = seen->cut > 0;
    CU_ASSERT_EQUAL(pwc_region_free(state), 0);
    for (uint32_t i = 0; i < ORIGINS; i++) {
        struct pwc_event event;

        CU_ASSERT_EQUAL_FATAL(pwc_wait(origin[i].ctx, PWC_ANY, PWC_LOCAL, &event, RANK_WAIT_MS), 1);
        CU_ASSERT(event.status == -ESHUTDOWN || event.status == 0);
        rank_detach(&origin[i]);
    }
    rank_detach(&owner);
    return cut;
}

/* A busy machine may end all puts before the offload is destroyed: then there is another try. */
static void test_cut_at_once(void)
{
    enum { TRIES = 20 };
    bool cut = false;

    for (int i = 0; i < TRIES && !cut; i++) {
        char job[16];

        snprintf(job, sizeof(job), "cut-%d", i);
        cut = cut_at_once(job);
    }
    CU_ASSERT_TRUE(cut);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

/* An offload may have 1,024 targets, whose binds end with it, and not more. */
static void test_many_targets(void)
{
    static const struct {
        uint32_t targets;
        int result;
    } rows[] = {{64, 0}, {65, 0}, {1024, 0}, {1025, -EINVAL}};
    static pwc_remote *targets[1025];
    struct pwc_offload_attr attr = {.index = INDEX, .targets = targets};
    pwc_offload *offload;
    struct rank r[2];

    for (uint32_t i = 0; i < 2; i++)
        CU_ASSERT_EQUAL_FATAL(
            rank_attach(&r[i], cluster.nodes[i].socket, "targets", i, 2, REGION_BYTES), 0);
    CU_ASSERT_EQUAL_FATAL(offload_load(&r[1], key_value_file, &attr.program), 0);
    CU_ASSERT_EQUAL_FATAL(pwc_bind(r[1].ctx, pwc_peer_of(0, 0), NULL, &targets[0]), 0);
    for (uint32_t i = 1; i < 1025; i++)
        targets[i] = targets[0];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        attr.target_count = rows[i].targets;
        CU_ASSERT_EQUAL(pwc_offload_create(r[1].ctx, &attr, &offload), rows[i].result);
        if (rows[i].result == 0)
            CU_ASSERT_EQUAL(pwc_offload_destroy(offload), 0);
    }
    for (uint32_t i = 0; i < 2; i++)
        rank_detach(&r[i]);
    CU_ASSERT_TRUE(cluster_runs(&cluster));
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"quotas over restarts", test_quota_stays},
                           {"destroyed while puts are under way", test_cut_at_once},
                           {"many targets", test_many_targets},
                           CU_TEST_INFO_NULL};
    /* Sanitizers are slow, so handlers have much time. */
    static const char *const more[] = {"--keep", "--peer-deadline-ms",
                                       "20000",  "--client-offloads",
                                       "3",      "--user-offloads",
                                       "4",      "--handler-us",
                                       "1000",   NULL};
    struct cluster_options options = {.nodes = 2, .provider = "stream", .more = more};
    int status = 1;

    if (argc != 4)
        return 2;
    options.pwcd = argv[1];
    key_value_file = argv[2];
    slow_end_file = argv[3];
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("offload limits", tests);
    return cluster_end(&cluster, status);
}

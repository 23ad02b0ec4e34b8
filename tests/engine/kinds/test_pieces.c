/*
 * Payloads leave in pieces, and no more pieces are under way to a peer than its window takes: every
 * length arrives whole, a small put overtakes an endless transfer, and a payload that is half on
 * its way survives a broken link, and ends with its region.
 *
 * Ends 0 and 2 are on one node, 1 and 3 on another. Thread: one.
 */
#include <stdio.h>
#include "daemon/engine/ops/turn.h"
#include "tests/suite.h"
#include "tests/engine/world/paths/driver.h"
#include "tests/engine/world/paths/world_path.h"
#include "tests/engine/bench/peek.h"

#define PIECE     1024u
#define WINDOW    (4 * PIECE)
#define LONG      (32 * PIECE)
#define TURNS_MAX 200000u

static struct world_path path;
static struct driver driver;

static const struct way {
    const char *name;
    uint32_t protocol;
    uint64_t ordered_write_max;
    uint32_t rails;
} ways[] = {
    {"ordered", ENGINE_PROTOCOL_AUTO, UINT64_MAX, 1},
    {"ordered up to a piece", ENGINE_PROTOCOL_AUTO, PIECE, 1},
    {"reassembled", ENGINE_PROTOCOL_AUTO, 0, 1},
    {"reassembled, four rails", ENGINE_PROTOCOL_AUTO, 0, 4},
    {"chained", ENGINE_PROTOCOL_CHAIN, 0, 1},
    {"chained, two rails", ENGINE_PROTOCOL_CHAIN, 0, 2},
};
#define WAYS (sizeof(ways) / sizeof(ways[0]))

static void begin(const struct way *way, uint64_t seed)
{
    const struct world_options options = {
        .seed = seed,
        .protocol = way->protocol,
        .segment_bytes = 1u << 23,
        .limits = {.piece_bytes = PIECE,
                   .window_bytes = WINDOW,
                   .stripe_min = 512,
                   .packed_max = 64,
                   .ledger_start = 4096,
                   .ledger_max = 4096},
        .sim = {.ordered_write_max = way->ordered_write_max, .rails = way->rails},
    };
    char failure[400];

    CU_ASSERT_EQUAL_FATAL(world_path_open(&path, &options, 4, failure), 0);
    CU_ASSERT_EQUAL_FATAL(driver_open(&driver, &path.path, seed), 0);
    driver_remote(&driver, 0, 1);
    driver_remote(&driver, 2, 3);
}

static void end(const struct way *way)
{
    driver_finish(&driver);
    CU_ASSERT_FALSE(driver.failed);
    if (driver.failed)
        printf("\n  %s: %s\n", way->name, driver.failure);
    driver_close(&driver);
    CU_ASSERT_FALSE(world_path_leave(&path));
    world_path_close(&path);
}

static struct engine *origin(void)
{
    return path.world->nodes[0].engine;
}

static struct peek_flow flow_from(uint32_t from)
{
    return peek_flow(origin(), peek_flow_of(origin(), driver.remotes[from][from + 1].handle));
}

/* Makes a turn, and guards that the window is exceeded by no more than the piece that filled it. */
static bool turn(void)
{
    CU_ASSERT_FATAL(peek_peer(origin(), 1).payload_bytes < WINDOW + PIECE);
    return driver_turn(&driver);
}

static uint32_t submit(uint32_t from, enum path_kind kind, uint64_t length)
{
    return driver_submit(
        &driver, (struct model_op){.from = from, .to = from + 1, .kind = kind, .length = length});
}

/* ---- lengths --------------------------------------------------------------------------------- */

static void boundaries(void)
{
    static const struct {
        uint64_t length;
        uint32_t reads; /* how many reads a get of this length takes, on one rail */
    } rows[] = {
        {0, 0},
        {1, 1},
        {63, 1},
        {64, 1},
        {65, 1},
        {PIECE - 1, 1},
        {PIECE, 1},
        {PIECE + 1, 2},
        {2 * PIECE, 2},
        {2 * PIECE + 1, 3},
        {WINDOW, 4},
        {WINDOW + 1, 5},
        {9 * PIECE - 1, 9},
        {LONG, 32},
        {LONG + 1, 33},
    };

    for (size_t w = 0; w < WAYS; w++) {
        begin(&ways[w], 1 + w);
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
            uint64_t before = sim_counters(path.world->sim)->reads;

            driver_finish_one(&driver, submit(0, PATH_GET, rows[i].length));
            if (ways[w].rails == 1)
                CU_ASSERT_EQUAL(sim_counters(path.world->sim)->reads - before, rows[i].reads);
            driver_finish_one(&driver, submit(0, PATH_PUT, rows[i].length));
        }
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) /* all at once */
            submit(i % 2 * 2, i % 3 ? PATH_PUT : PATH_GET, rows[i].length);
        end(&ways[w]);
    }
}

/* Guards that completions of pieces find their operation, whose index has more bits than a cookie
 * of the fabric. The low 32 bits are 0, as the target expects them. */
static void high_indices(void)
{
    for (size_t w = 0; w < WAYS; w++) {
        begin(&ways[w], 31 + w);
        poke_flow_index(origin(), peek_flow_of(origin(), driver.remotes[0][1].handle),
                        UINT64_C(1) << 40);
        for (enum path_kind kind = PATH_PUT; kind <= PATH_GET; kind++) {
            driver_finish_one(&driver, submit(0, kind, LONG));
            submit(0, kind, LONG);
        }
        end(&ways[w]);
    }
}

/* ---- a small put beside ---------------------------------------------------------------------- */

/* Bytes of payload that the flow of `from` has posted so far, with `length` bytes in each
 * operation. */
static uint64_t posted_from(uint32_t from, uint64_t length)
{
    struct peek_flow f = flow_from(from);

    return f.started * length + f.posted;
}

/* Guards that at most one window of a client's payloads goes ahead of another client's small put,
 * whatever the first client has submitted. */
static void passes(void)
{
    for (size_t w = 0; w < WAYS; w++)
        for (enum path_kind kind = PATH_PUT; kind <= PATH_GET; kind++) {
            uint64_t before, staged;
            uint32_t small, turns = 0;

            begin(&ways[w], 11 + w);
            for (int i = 0; i < 12; i++)
                submit(0, kind, LONG);
            while (posted_from(0, LONG) < 8 * WINDOW && turns++ < TURNS_MAX)
                turn();
            staged = flow_from(2).staged;
            before = posted_from(0, LONG);
            small = submit(2, PATH_PUT, 8);
            while (flow_from(2).staged == staged && turns++ < TURNS_MAX)
                turn();
            CU_ASSERT_FATAL(turns < TURNS_MAX);
            CU_ASSERT(posted_from(0, LONG) - before <= WINDOW + PIECE);
            driver_finish_one(&driver, small);
            /* Some large operations have not started when the small one ends. */
            CU_ASSERT(flow_from(0).started < 12);
            end(&ways[w]);
        }
}

/* Client 0 posts this many more bytes, while client 2 sends one small put after another. Returns
 * the most bytes of payload that were under way at a time. */
static uint64_t most_on_their_way(uint64_t bytes)
{
    uint64_t until = posted_from(0, LONG) + bytes, most = 0;
    uint32_t turns = 0, small = UINT32_MAX;

    while (posted_from(0, LONG) < until && turns++ < TURNS_MAX) {
        uint64_t now;

        if (small == UINT32_MAX || !model_busy(&driver.model, small))
            small = submit(2, PATH_PUT, 8);
        turn();
        now = peek_peer(origin(), 1).payload_bytes;
        most = now > most ? now : most;
    }
    CU_ASSERT_FATAL(turns < TURNS_MAX);
    return most;
}

/* Makes turns until a whole window of client 0's payloads is under way. */
static void fill_window(uint32_t *submitted)
{
    uint32_t turns = 0;

    while (peek_peer(origin(), 1).payload_bytes < WINDOW && turns++ < TURNS_MAX) {
        if (flow_from(0).started + 12 > *submitted) {
            submit(0, PATH_PUT, LONG);
            ++*submitted;
        }
        turn();
    }
    CU_ASSERT_FATAL(turns < TURNS_MAX);
}

/* Guards that two clients which send have a part of the window, and that a client which is alone
 * has all of it. */
static void shared_window(void)
{
    for (size_t w = 0; w < WAYS; w++) {
        uint32_t submitted = 0;

        begin(&ways[w], 51 + w);
        fill_window(&submitted);
        (void)most_on_their_way(2 * WINDOW); /* the window becomes smaller meanwhile */
        CU_ASSERT(most_on_their_way(4 * WINDOW) < WINDOW / SHARED_PART + PIECE);
        fill_window(&submitted);
        end(&ways[w]);
    }
}

/* ---- half on its way ------------------------------------------------------------------------- */

static void until_posted(uint64_t bytes)
{
    uint32_t turns = 0;

    while (flow_from(0).posted < bytes && turns++ < TURNS_MAX)
        turn();
    CU_ASSERT_FATAL(turns < TURNS_MAX);
}

static void broken_links(void)
{
    for (size_t w = 0; w < WAYS; w++)
        for (uint32_t i = 0; i < 6; i++) {
            begin(&ways[w], 100 * w + i);
            submit(0, i % 2 ? PATH_PUT : PATH_GET, LONG);
            submit(0, PATH_PUT, 8);
            until_posted(PIECE + i / 2 * 4 * PIECE);
            CU_ASSERT_EQUAL(path.path.calls->cut(path.path.context, 0, 1, false), 0);
            end(&ways[w]);
        }
}

/* Guards what ends an operation whose payload is half on its way: a key that is withdrawn, or a
 * client that dies. The end waits for all pieces that are on their way, no piece follows, and what
 * had no room meanwhile continues. */
static void endings(void)
{
    for (size_t w = 0; w < WAYS; w++)
        for (uint32_t i = 0; i < 8; i++) {
            uint32_t turns = 0;

            begin(&ways[w], 300 + 100 * w + i);
            submit(0, i % 2 ? PATH_PUT : PATH_GET, LONG);
            submit(2, PATH_PUT, LONG);
            until_posted(PIECE + i / 4 * 8 * PIECE);
            driver.model.ops[0].shaken = true;
            if (i % 4 < 2) {
                CU_ASSERT_EQUAL(path.path.calls->withdraw(path.path.context, 1), 0);
                while (!path.path.calls->withdrawn(path.path.context, 1) && turns++ < TURNS_MAX)
                    turn();
            } else {
                model_dead(&driver.model, i / 4 == 1);
                CU_ASSERT_EQUAL(path.path.calls->kill(path.path.context, i / 4 == 1), 0);
            }
            CU_ASSERT(turns < TURNS_MAX);
            end(&ways[w]);
        }
}

int main(void)
{
    CU_TestInfo tests[] = {{"every length", boundaries},
                           {"high indices", high_indices},
                           {"a small put beside endless ones", passes},
                           {"a window that two share", shared_window},
                           {"links that break half way", broken_links},
                           {"regions and clients that end half way", endings},
                           CU_TEST_INFO_NULL};

    return suite_run("pieces", tests);
}

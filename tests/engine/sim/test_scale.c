/*
 * Guards the rows of bench/scale with few nodes, to the single message: what engines send, and
 * when, is the same in every run. A change that makes engines send more, less or at other times
 * changes the numbers here. Thread: one.
 */
#include <math.h>
#include "tests/suite.h"
#include "bench/scaling/network.h"
#include "bench/scaling/row.h"

/* L, o and G of the network `hdr`, in us. */
#define L 0.92
#define O 0.065
#define B 0.00004

struct expected {
    const char *row;
    uint32_t nodes;
    const char *figure;
    double value;
};

static struct figures run(const char *name, uint32_t nodes)
{
    const struct row_run r = {
        .row = row_named(name), .nodes = nodes, .loggp = network_named("hdr")->loggp};
    struct figures figures = {0};

    CU_ASSERT_PTR_NOT_NULL_FATAL(r.row);
    CU_ASSERT_EQUAL(r.row->run(&r, &figures), 0);
    if (figures.failure[0])
        printf("\n  %s with %u nodes: %s\n", name, nodes, figures.failure);
    return figures;
}

static void check(const struct expected *e, uint32_t count)
{
    for (; count > 0; count--, e++) {
        struct figures figures = run(e->row, e->nodes);
        double value = figure_of(&figures, e->figure);

        if (fabs(value - e->value) > 1e-6)
            printf("\n  %s with %u nodes: %s is %.9g, not %.9g\n", e->row, e->nodes, e->figure,
                   value, e->value);
        CU_ASSERT_DOUBLE_EQUAL(value, e->value, 1e-6);
    }
}

#define CHECK(rows) check(rows, sizeof(rows) / sizeof(rows[0]))

/* Guards the messages for a link: a BIND, a BOUND and an acknowledgement in each direction. */
static void test_exchanges(void)
{
    static const struct expected rows[] = {
        /* A record of 72 bytes, in whole ns. */
        {"neighbours", 2, "us", O + L + 0.003 + O},    {"neighbours", 2, "bind_messages_a_link", 8},
        {"neighbours", 8, "messages_a_node", 3.25},    {"neighbours", 32, "messages_a_node", 3.25},
        {"neighbours", 32, "bind_messages_a_link", 8}, {"peers-8", 32, "messages_a_node", 15.25},
        {"all-to-all", 8, "messages_a_node", 13.25},   {"all-to-all", 32, "messages_a_node", 61.25},
        {"all-to-all", 32, "bind_messages_a_link", 8}, {"hub", 32, "bind_messages_a_link", 8},
        {"hub", 32, "messages_a_node", 3.125},
    };

    CHECK(rows);
}

/* Guards the frames of an attach: the home's control thread reads 31 x 64 claims, and answers each.
 */
static void test_attach(void)
{
    static const struct expected rows[] = {
        {"attach-64", 2, "frames_a_node", 64},
        {"attach-64", 32, "frames_a_node", 2 * 31 * 64.0 / 32},
        {"attach-64", 32, "home_bytes_a_rank", 4},
    };
    struct figures few = run("attach-64", 8), many = run("attach-64", 32);

    CHECK(rows);
    CU_ASSERT(figure_of(&many, "us") > 31 * 64 * 2 * O);
    CU_ASSERT(figure_of(&many, "us") / figure_of(&few, "us") < 31 / 7.0);
}

/* Guards that a node's memory grows with its links, not with the number of peers. */
static void test_memory(void)
{
    struct figures few = run("memory-1024", 32), many = run("memory-16384", 32);

    CU_ASSERT(figure_of(&few, "kib_unlinked") > 0);
    CU_ASSERT_DOUBLE_EQUAL(figure_of(&many, "kib_unlinked"), figure_of(&few, "kib_unlinked"), 64);
    CU_ASSERT_DOUBLE_EQUAL(figure_of(&many, "kib_linked"), figure_of(&few, "kib_linked"), 64);
    CU_ASSERT(figure_of(&few, "kib_a_link") < 50);
}

/* Guards the sums of schedules, without engines: five rounds among 32 participants; eleven among
 * 2048, of which the last six leave the node. */
static void test_collectives(void)
{
    static const struct expected rows[] = {
        {"barrier-1", 32, "rounds", 5},
        {"barrier-1", 32, "messages_a_node", 5},
        {"barrier-1", 32, "us_by_rank", 5 * (O + L + 63 * B + O)},
        {"barrier-1", 24, "rounds", 5},
        {"barrier-64", 32, "rounds_by_rank", 11},
        {"barrier-64", 32, "messages_a_node", 5},
        /* In round r, 2^r of a node's 64 ranks send to the next node. */
        {"barrier-64", 32, "messages_a_node_by_rank", 63 + 5 * 64},
        {"allreduce-8-1", 32, "us_by_rank", 5 * (O + L + 71 * B + O + 8 * 0.0001)},
        {"allreduce-8-64", 32, "messages_a_node_by_rank", 5 * 64},
        {"allreduce-8-1", 24, "rounds", 6}, /* 8 pairs fold first, and get the result last */
        {"alltoall-1", 32, "messages_a_node", 5},
        {"alltoall-64", 16, "rounds", 2}, /* 15 other nodes, eight at once */
        {"alltoall-64", 16, "messages_a_node", 15},
        {"allreduce-1m-1", 32, "rounds", 10},
    };

    CHECK(rows);
}

/* Guards that engines take the time that their schedules say: a round takes 2 o + L and the time
 * for the bytes of the letter, and of the ACK that some letters bring along, in whole ns. */
static void test_teams(void)
{
    static const struct expected rows[] = {
        {"team-barrier-1", 2, "us", O + L + 0.00375 + O},
        {"team-barrier-1", 32, "messages_a_node", 5 + 1.25},
        {"team-barrier-64", 32, "messages_a_node", 5 + 1.25},
        {"team-allreduce-64", 32, "messages_a_node", 5 + 1.25},
        {"team-allreduce-1", 24, "messages_a_node", 4},
        /* One round with all data, and sometimes an ACK. */
        {"team-allreduce-64k", 2, "messages_a_node", 4.25},
    };
    static const uint32_t nodes[] = {2, 3, 4, 8};
    struct figures engines = run("team-allreduce-64", 32), schedule = run("allreduce-8-1", 32);
    struct figures few = run("team-barrier-1", 32), many = run("team-barrier-1", 128);

    CHECK(rows);
    CU_ASSERT_DOUBLE_EQUAL(figure_of(&engines, "us"), figure_of(&schedule, "us_by_rank"), 0.01);
    /* The bytes of two nodes take 42 us. Slices wait for data rows of earlier slices. These rows
     * are free as soon as acknowledgements say so, and no acknowledgement waits for its time here.
     */
    for (uint32_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        struct figures slices = run("team-allreduce-1m", nodes[i]);

        CU_ASSERT(figure_of(&slices, "us") > 42 && figure_of(&slices, "us") < 100);
    }
    /* Four links more cost memory, the 96 participants more of the team cost little. */
    CU_ASSERT(figure_of(&many, "kib_a_node") - figure_of(&few, "kib_a_node") < 4 * 50);
}

#ifdef FORWARD_OBJECT

/* Guards handlers that forward a put along a tree of depth log2 N, with 8 bytes for each edge. A
 * client takes 1 us to pass on what it has got; the acknowledgement leaves meanwhile, but handlers
 * wait for it. */
static void test_handlers(void)
{
    static const double hop = O + L + 0.003 + O;
    const struct expected rows[] = {
        {"forward-8", 2, "us", hop},
        {"forward-8", 2, "us_by_client", hop},
        {"forward-8", 8, "us", 3 * hop + 2 * O},
        {"forward-8", 8, "us_by_client", 3 * hop + 2 * 1.0},
        {"forward-8", 32, "us", 5 * hop + 4 * O},
        {"forward-8", 32, "messages_a_node", 2 * 31 / 32.0},
        {"forward-8", 32, "messages_a_node_by_client", 2 * 31 / 32.0},
    };
    struct figures large = run("forward-64k", 32);

    CHECK(rows);
    CU_ASSERT(figure_of(&large, "us") < 0.9 * figure_of(&large, "us_by_client"));
}

/* Guards a broadcast past nodes that are dead. With node 1 of 4 dead, node 0's second put reaches
 * node 2, whose put reaches node 3. Each node that lives passes the broadcast on once, to all of
 * its log2 N targets, the dead ones too. */
static void test_outliving(void)
{
    static const struct expected rows[] = {
        {"outlive-8", 2, "us", O + L + 0.003 + O},
        {"outlive-8", 2, "us_by_client", O + L + 0.003 + O},
    };
    static const uint32_t nodes[] = {4, 16, 32};

    CHECK(rows);
    for (uint32_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        struct figures f = run("outlive-8", nodes[i]);
        double targets = log2(nodes[i]), lives = nodes[i] - (targets - 1);

        CU_ASSERT(figure_of(&f, "messages_a_node") >= lives * targets / nodes[i]);
        CU_ASSERT(figure_of(&f, "us") < 0.8 * figure_of(&f, "us_by_client"));
    }
}

/* Guards the messages of products: a put and an acknowledgement for each other node; an answer by a
 * client costs one more put and one more acknowledgement. */
static void test_products(void)
{
    static const struct expected rows[] = {
        {"product-16", 2, "messages_a_node", 1},
        {"product-16", 32, "messages_a_node", 2 * 31 / 32.0},
        {"product-16", 32, "messages_a_node_by_client", 4 * 31 / 32.0},
        {"product-4k", 32, "messages_a_node", 2 * 31 / 32.0},
    };
    struct figures few = run("product-16", 2), many = run("product-4k", 32);

    CHECK(rows);
    CU_ASSERT_DOUBLE_EQUAL(figure_of(&few, "us_by_client") - figure_of(&few, "us"), 1, 0.01);
    CU_ASSERT(figure_of(&many, "us") < 0.9 * figure_of(&many, "us_by_client"));
}

#endif

int main(void)
{
    CU_TestInfo tests[] = {{"exchanges", test_exchanges},
                           {"a job attaches", test_attach},
                           {"memory", test_memory},
                           {"collectives by their schedules", test_collectives},
                           {"collectives by engines", test_teams},
#ifdef FORWARD_OBJECT
                           {"broadcasts by handlers", test_handlers},
                           {"broadcasts past dead nodes", test_outliving},
                           {"products by handlers", test_products},
#endif
                           CU_TEST_INFO_NULL};

    return suite_run("scale", tests);
}

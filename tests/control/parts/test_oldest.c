/* The oldest operations among many, however they are offered. One thread. */
#include "daemon/control/watch/oldest.h"
#include "tests/suite.h"

enum { MOST = 8 };

/* Ages are from 1 to `count`, each once; the step is prime to each count. */
static uint64_t age_of(unsigned i, unsigned count, unsigned step)
{
    return 1 + (uint64_t)i * step % count;
}

/* Guards that the oldest stay, in the order of their age, whatever the order of the offers; that an
 * operation which is refused is younger than all that stay; and that the view knows of the rest. */
static void the_oldest_stay(void)
{
    static const struct {
        unsigned count, step;
    } rows[] = {{0, 1},        {1, 1},        {MOST - 1, 1},     {MOST, 1},
                {MOST + 1, 1}, {2 * MOST, 1}, {1000, 1},         {1000, 999},
                {1000, 7},     {1000, 333},   {2 * MOST - 1, 7}, {10000, 4321}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned count = rows[i].count, kept = count < MOST ? count : MOST;
        struct oldest o;

        CU_ASSERT_EQUAL_FATAL(oldest_open(&o, MOST), 0);
        for (unsigned k = 0; k < count; k++) {
            uint64_t age = age_of(k, count, rows[i].step);

            if (!oldest_take(&o, &(struct view_op){.age_ns = age, .sequence = k}, k % 3))
                CU_ASSERT(age <= count - MOST);
        }
        oldest_sort(&o);
        CU_ASSERT_EQUAL_FATAL(o.count, kept);
        CU_ASSERT_EQUAL(o.left_out, count > MOST);
        for (unsigned k = 0; k < kept; k++) {
            CU_ASSERT_EQUAL(o.ops[k].op.age_ns, count - k);
            CU_ASSERT_EQUAL(o.ops[k].engine, o.ops[k].op.sequence % 3);
        }
        oldest_close(&o);
    }
}

/* Guards that much is refused where a flow's operations come oldest first: the work stays small. */
static void young_flows_are_short(void)
{
    struct oldest o;
    unsigned taken = 0;

    CU_ASSERT_EQUAL_FATAL(oldest_open(&o, MOST), 0);
    for (unsigned flow = 0; flow < 1000; flow++)
        for (unsigned k = 0; k < 1000; k++) {
            if (!oldest_take(&o, &(struct view_op){.age_ns = 2000 - k}, flow))
                break;
            taken++;
        }
    CU_ASSERT(taken < 16 * MOST);
    oldest_close(&o);
}

int main(void)
{
    CU_TestInfo tests[] = {{"the oldest stay", the_oldest_stay},
                           {"young flows are short", young_flows_are_short},
                           CU_TEST_INFO_NULL};

    return suite_run("oldest", tests);
}

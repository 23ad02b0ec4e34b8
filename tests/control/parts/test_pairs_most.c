/* Guards that pairs leave mappings, and places in the table of ranges, to contexts and segments,
 * whatever number of mappings the kernel allows (quota.h). */
#include <CUnit/CUnit.h>
#include "daemon/control/clients/quota.h"
#include "shm_ring/sigbus.h"
#include "tests/suite.h"

static void bounds(void)
{
    static const struct {
        uint64_t mappings, pairs;
    } rows[] = {{0, 0},
                {65530, 49146},
                {87384, SIGBUS_PAIRS_MAX},
                {1048576, SIGBUS_PAIRS_MAX},
                {UINT64_MAX, SIGBUS_PAIRS_MAX}};

    CU_ASSERT(SIGBUS_RANGES_MAX - SIGBUS_PAIRS_MAX >= 16u * (512u + 1024u));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        CU_ASSERT_EQUAL(quota_pairs_most(rows[i].mappings), rows[i].pairs);
}

int main(void)
{
    CU_TestInfo tests[] = {{"bounds", bounds}, CU_TEST_INFO_NULL};

    return suite_run("pairs", tests);
}

/* The runner of suite.h: CUnit, with a watchdog. */
#include "tests/clientlib/suite.h"

#include <CUnit/Basic.h>
#include <unistd.h>

enum { WATCHDOG_SECONDS = 60 };

int suite_run(const char *name, const struct suite_test *tests, size_t count)
{
    CU_pSuite suite;
    unsigned failed = 1;

    alarm(WATCHDOG_SECONDS);
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    suite = CU_add_suite(name, NULL, NULL);
    for (size_t i = 0; suite && i < count; i++)
        if (!CU_add_test(suite, tests[i].name, tests[i].run))
            suite = NULL;
    if (suite) {
        CU_basic_set_mode(CU_BRM_VERBOSE);
        CU_basic_run_tests();
        failed = CU_get_number_of_tests_failed() + CU_get_number_of_failure_records();
        if (CU_get_number_of_tests_run() != count)
            failed++;
    }
    CU_cleanup_registry();
    return failed ? 1 : 0;
}

/* Runs one CUnit suite, for a test program's main. Returns 0 when all tests have passed, otherwise
 * 1. */
#ifndef PWC_TESTS_SUITE_H
#define PWC_TESTS_SUITE_H

#include <CUnit/Basic.h>
#include <CUnit/TestDB.h>

static inline int suite_run(const char *name, CU_TestInfo *tests)
{
    CU_SuiteInfo suites[] = {{.pName = name, .pTests = tests}, CU_SUITE_INFO_NULL};
    unsigned failures = 1;

    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    if (CU_register_suites(suites) == CUE_SUCCESS) {
        CU_basic_set_mode(CU_BRM_VERBOSE);
        CU_basic_run_tests();
        failures = CU_get_number_of_failures();
    }
    CU_cleanup_registry();
    return failures == 0 ? 0 : 1;
}

#endif

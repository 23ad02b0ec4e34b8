/*
 * Runs one table of CUnit tests: the result is main's. A watchdog ends a program that hangs.
 */
#ifndef PWC_TESTS_CLIENTLIB_SUITE_H
#define PWC_TESTS_CLIENTLIB_SUITE_H

#include <stddef.h>

struct suite_test {
    const char *name;
    void (*run)(void);
};

/* 0 when every test passed, else 1. */
int suite_run(const char *name, const struct suite_test *tests, size_t count);

#endif

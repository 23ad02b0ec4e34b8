/* The number of elements of an array, for tables of tests. */
#ifndef PWC_TESTS_COUNT_H
#define PWC_TESTS_COUNT_H

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif

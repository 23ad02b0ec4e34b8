/* Scenarios of test_crash with active messages: requests of each kind, and their replies. Thread:
 * one. */
#ifndef PWC_TESTS_ENGINE_CRASH_MESSAGES_H
#define PWC_TESTS_ENGINE_CRASH_MESSAGES_H

#include <stddef.h>
#include "tests/engine/world/crash/crash_control.h"

extern const struct crash_scenario crash_message_scenarios[];
extern const size_t crash_message_count;

#endif

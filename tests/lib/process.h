/*
 * What the kernel reports about processes and threads: processor time, sleep, descriptors.
 *
 * Thread: any.
 */
#ifndef PWC_TESTS_LIB_PROCESS_H
#define PWC_TESTS_LIB_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Processor time of all threads, in nanoseconds; negative errno. */
int64_t process_cpu_ns(pid_t pid);

/* Open descriptors; negative errno. */
int process_descriptors(pid_t pid);

/* Mappings whose line in /proc holds this name; negative errno. */
int process_mappings(pid_t pid, const char *name);

/* Memory that is in use now, KiB; negative errno. */
int64_t process_resident_kb(pid_t pid);

/* Whether this thread of ours sleeps in this system call (SYS_futex, ...). */
bool thread_sleeps_in(pid_t thread, long call);

/* How often this thread of ours has gone to sleep of its own will; negative errno. */
int64_t thread_sleeps(pid_t thread);

#endif

/*
 * The kernel's reports about processes and threads: processor time, sleep, descriptors; and how to
 * stop a process.
 *
 * Thread: any.
 */
#ifndef PWC_TESTS_LIB_PROCESS_H
#define PWC_TESTS_LIB_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Stops a child of this process, as SIGSTOP does. Returns whether all of its threads have stopped:
 * on a busy machine this takes some time after the signal. */
bool process_stop(pid_t child);

/* Returns the processor time of all threads in nanoseconds, or a negative errno. */
int64_t process_cpu_ns(pid_t pid);

/* Returns the first child of a process's first thread, also a zombie; 0: there is none. */
pid_t process_child(pid_t parent);

/* Counts open descriptors; a negative errno on failure. */
int process_descriptors(pid_t pid);

/* Counts mappings whose line in /proc holds this name; a negative errno on failure. */
int process_mappings(pid_t pid, const char *name);

/* Returns the memory that is resident now, in KiB, or a negative errno. */
int64_t process_resident_kb(pid_t pid);

/* Whether this thread of the test's own process sleeps in this system call (SYS_futex, ...). */
bool thread_sleeps_in(pid_t thread, long call);

/* Returns how often this thread of the test's own process has gone to sleep by itself, or a
 * negative errno. */
int64_t thread_sleeps(pid_t thread);

#endif

/* Stops the progress thread of a daemon by ptrace while all other threads of the daemon continue,
 * as if the progress thread did not return from a call. Only a process that may trace the daemon
 * can do that. */
#ifndef PWC_TESTS_CONTROL_THREAD_H
#define PWC_TESTS_CONTROL_THREAD_H

#include <sys/types.h>

/* Returns the process's (first) progress thread; 0: there is none. */
pid_t thread_find(pid_t process);
/* Stops the thread. Returns 0 once the thread is stopped, or a negative errno; -EPERM: this machine
 * does not allow ptrace. A thread whose process ends while it is held must be waited for (__WALL)
 * before that process. */
int thread_hold(pid_t thread);
/* Lets the thread continue, and ends the trace of it. */
int thread_release(pid_t thread);

#endif

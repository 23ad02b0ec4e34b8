/* Stops the progress thread of a daemon by ptrace while all its other threads go on, as if it did
 * not return from a call. Only a process that may trace the daemon can do that. */
#ifndef PWC_TESTS_CONTROL_THREAD_H
#define PWC_TESTS_CONTROL_THREAD_H

#include <sys/types.h>

/* The process's (first) progress thread; 0: there is none. */
pid_t thread_find(pid_t process);
/* 0: it stands still. A negative errno; -EPERM: this machine does not allow it. What is held while
 * its process ends has to be waited for (__WALL) before that process. */
int thread_hold(pid_t thread);
/* The thread goes on, and is ours no more. */
int thread_release(pid_t thread);

#endif

/*
 * Sends the plain replies: a request is done, or has failed. Thread: control.
 */
#ifndef PWC_CONTROL_REPLY_H
#define PWC_CONTROL_REPLY_H

#include <stdint.h>
#include <sys/types.h>

struct client;

void reply_done(struct client *c, uint32_t request);
/* Reports success, with the process that has carried the request out, or is about to. */
void reply_done_by(struct client *c, uint32_t request, pid_t pid);
/* Reports an error; request 0: the error concerns the connection. */
__attribute__((format(printf, 4, 5))) void reply_error(struct client *c, uint32_t request,
                                                       int status, const char *format, ...);

#endif

/* One question to the daemon over its socket. */
#ifndef PWC_TOOLS_REQUEST_H
#define PWC_TOOLS_REQUEST_H

#include <jansson.h>
#include <stddef.h>
#include "proto/control.pb-c.h"

/* The advice behind -ENOENT and -ECONNREFUSED. */
#define REQUEST_NO_DAEMON                                                                          \
    ": no daemon serves there (name its socket with --socket or PWC_SOCKET; pwcrun has one for "   \
    "each node: /tmp/pwcrun.*/N.sock)"

/* Stores the daemon's JSON document in *out, to be freed; or returns a negative errno after a
 * message on stderr. */
int request_inspect(const char *socket_path, const char *what, char **out);
/* Does as request_inspect, with the reason in `why` instead. */
int request_try(const char *socket_path, const char *what, char **out, char *why, size_t why_size);
/* Does as request_try, with the document as an object to be released. -EBADMSG: any other answer.
 */
int request_document(const char *socket_path, const char *what, json_t **out, char *why,
                     size_t why_size);

/* Opens a connection for request_trace, which the caller closes. `why` gets the reason of a
 * failure, here and below. */
int request_connect(const char *socket_path, char *why, size_t why_size);
/* Reads what has been traced since this connection asked last; its first question starts the trace.
 * 0 with the reply, to be freed. */
int request_trace(int connection, const char *socket_path, Pwc__ClientReply **out, char *why,
                  size_t why_size);

/* Asks whether the daemon would take a program of handlers (proto/handler_abi.h). */
int request_check(const char *socket_path, const void *image, size_t size, char *why,
                  size_t why_size);
/* Reads a program that the daemon has: *image is to be freed. */
int request_program(const char *socket_path, uint32_t engine, uint32_t program, void **image,
                    size_t *size, char *why, size_t why_size);

/* Asks for another process in the daemon's place: one of `program` (an absolute path), or, NULL, of
 * the daemon's own. Returns when that process is about to take over, with its number (0: an older
 * daemon did not send it). */
int request_upgrade(const char *socket_path, const char *program, unsigned *pid);

#endif

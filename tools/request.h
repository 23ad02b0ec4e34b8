/* One question to the daemon over its socket. */
#ifndef PWC_TOOLS_REQUEST_H
#define PWC_TOOLS_REQUEST_H

#include <jansson.h>
#include <stddef.h>
#include "proto/control.pb-c.h"

/* The daemon's JSON document in *out, to be freed; or a negative errno, said on stderr. */
int request_inspect(const char *socket_path, const char *what, char **out);
/* As request_inspect, with the reason in `why` instead. */
int request_try(const char *socket_path, const char *what, char **out, char *why, size_t why_size);
/* As request_try, with the document as an object to be released: -EBADMSG of any other answer. */
int request_document(const char *socket_path, const char *what, json_t **out, char *why,
                     size_t why_size);

/* A connection for request_trace, the caller's to close. What is wrong is in `why`, here and below.
 */
int request_connect(const char *socket_path, char *why, size_t why_size);
/* What has been traced since this connection asked last: its first question begins it. 0 with the
 * reply, to be freed. */
int request_trace(int connection, const char *socket_path, Pwc__ClientReply **out, char *why,
                  size_t why_size);

/* Has another process take the daemon's place: of `program` (an absolute path), or, NULL, of its
 * own. Returns when that one is about to, with its number (0: an older daemon did not say). */
int request_upgrade(const char *socket_path, const char *program, unsigned *pid);

#endif

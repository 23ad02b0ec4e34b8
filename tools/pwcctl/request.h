/* One question to the daemon over its socket. */
#ifndef PWCCTL_REQUEST_H
#define PWCCTL_REQUEST_H

/* The daemon's JSON document in *out, to be freed; or a negative errno, said on stderr. */
int request_inspect(const char *socket_path, const char *what, char **out);

/* Has another process take the daemon's place: of `program` (an absolute path), or, NULL, of its
 * own. Returns when that one is about to. */
int request_upgrade(const char *socket_path, const char *program);

#endif

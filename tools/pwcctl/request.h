/* One question to the daemon over its socket. */
#ifndef PWCCTL_REQUEST_H
#define PWCCTL_REQUEST_H

/* The daemon's JSON document in *out, to be freed; or a negative errno, said on stderr. */
int request_inspect(const char *socket_path, const char *what, char **out);

#endif

/* The counters file beside the daemon's socket (proto/counters_abi.h), as a document. */
#ifndef PWCCTL_COUNTERS_H
#define PWCCTL_COUNTERS_H

/* A JSON document in *out, to be freed; or a negative errno, said on stderr. Asks nobody. */
int counters_read(const char *socket_path, char **out);

#endif

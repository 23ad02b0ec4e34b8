/* The counters file beside the daemon's socket (proto/counters_abi.h), as a JSON document. */
#ifndef PWCCTL_COUNTERS_H
#define PWCCTL_COUNTERS_H

/* Reads the counters into a JSON document, which the caller frees; or a negative errno after a
 * message on stderr. Sends nothing to the daemon. */
int counters_read(const char *socket_path, char **out);

#endif

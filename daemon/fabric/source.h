/*
 * Finds the address to which a fabric is bound, from the configured IP address or interface.
 *
 * Owns nothing. Thread: any.
 */
#ifndef PWC_FABRIC_SOURCE_H
#define PWC_FABRIC_SOURCE_H

#include <sys/socket.h>

#define SOURCE_DEFAULT "127.0.0.1"

/* Parses `text`; NULL means SOURCE_DEFAULT. Returns 0, or -ENODEV and others: there is no such
 * address or interface. */
int source_parse(const char *text, struct sockaddr_storage *out);
/* The size of the struct of the address's family. */
socklen_t source_size(const struct sockaddr_storage *address);

#endif

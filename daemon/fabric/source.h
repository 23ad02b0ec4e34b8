/*
 * The address that a fabric is bound to, from what the configuration says: an IP address, or an
 * interface that has one.
 *
 * Owns nothing. Any thread.
 */
#ifndef PWC_FABRIC_SOURCE_H
#define PWC_FABRIC_SOURCE_H

#include <sys/socket.h>

#define SOURCE_DEFAULT "127.0.0.1"

/* text: NULL means SOURCE_DEFAULT. 0, or -ENODEV and others: there is no such address or interface.
 */
int source_parse(const char *text, struct sockaddr_storage *out);
/* The size of the structure that the address's family uses. */
socklen_t source_size(const struct sockaddr_storage *address);

#endif

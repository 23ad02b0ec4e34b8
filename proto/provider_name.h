/* The meaning of a provider's name, for the daemon and for the tools. Thread: any. */
#ifndef PWC_PROVIDER_NAME_H
#define PWC_PROVIDER_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The provider goes through the kernel's TCP or UDP, with or without layers, and pins no memory. */
static inline bool provider_over_ip(const char *name)
{
    static const char *const begins[] = {"stream", "tcp", "net", "sockets", "udp"};

    for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

#endif

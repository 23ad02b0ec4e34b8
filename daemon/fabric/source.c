/* Owns nothing: finds the address of a fabric (source.h). Thread: any. */
#include "daemon/fabric/source.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

static bool is_number(const char *text, struct sockaddr_storage *out)
{
    if (inet_pton(AF_INET, text, &((struct sockaddr_in *)out)->sin_addr) == 1)
        out->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)out)->sin6_addr) == 1)
        out->ss_family = AF_INET6;
    return out->ss_family != 0;
}

/* Finds the interface's first IPv4 address; else its first IPv6 address that other machines can
 * use. They could not use a link-local address without the number of their interface. */
static int address_of_interface(const char *name, struct sockaddr_storage *out)
{
    struct ifaddrs *all;

    if (getifaddrs(&all) != 0)
        return -errno;
    for (const struct ifaddrs *a = all; a && out->ss_family != AF_INET; a = a->ifa_next) {
        sa_family_t family = a->ifa_addr ? a->ifa_addr->sa_family : 0;

        if (strcmp(a->ifa_name, name) != 0)
            continue;
        if (family == AF_INET)
            memcpy(out, a->ifa_addr, sizeof(struct sockaddr_in));
        else if (family == AF_INET6 && out->ss_family == 0 &&
                 !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)a->ifa_addr)->sin6_addr))
            memcpy(out, a->ifa_addr, sizeof(struct sockaddr_in6));
    }
    freeifaddrs(all);
    return out->ss_family != 0 ? 0 : -ENODEV;
}

int source_parse(const char *text, struct sockaddr_storage *out)
{
    const char *name = text ? text : SOURCE_DEFAULT;

    memset(out, 0, sizeof(*out));
    return is_number(name, out) ? 0 : address_of_interface(name, out);
}

socklen_t source_size(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Owns the checks of a configuration against the machine (check.h). Thread: main. */
#include "daemon/control/start/check.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/fabric/provider.h"

enum { PROVIDERS_MAX = 32 };

static struct provider_config provider_config_of(const struct config *config, char *why,
                                                 size_t why_size)
{
    return (struct provider_config){.name = config->provider,
                                    .bind = config->address,
                                    .rails = 1u << config->rails,
                                    .message = why,
                                    .message_size = why_size};
}

int check_fabric(const struct config *config, char *why, size_t why_size)
{
    const struct provider_config wanted = provider_config_of(config, why, why_size);
    char name[PROVIDER_NAME_MAX];
    struct fabric *fabric;
    int rc = provider_open(&wanted, &fabric, name);

    if (rc == 0)
        fabric_close(fabric);
    return rc;
}

/* A port that is in use is no error: this daemon may run already. */
static int can_bind(const struct addrinfo *at)
{
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = fd < 0 || bind(fd, at->ai_addr, at->ai_addrlen) != 0 ? -errno : 0;

    if (fd >= 0)
        close(fd);
    return rc == -EADDRINUSE ? 0 : rc;
}

int check_entry(const struct node_list *list, uint32_t node, char *why, size_t why_size)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    const struct node_address *at = &list->nodes[node];
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(at->host, at->port, &hints, &found);

    if (rc != 0) {
        snprintf(why, why_size, "node %u is %s:%s in the list of nodes: %s", node, at->host,
                 at->port, gai_strerror(rc));
        return -EADDRNOTAVAIL;
    }
    rc = can_bind(found);
    freeaddrinfo(found);
    if (rc == -EADDRNOTAVAIL)
        snprintf(why, why_size,
                 "node %u is %s:%s in the list of nodes, which is no address of this machine: is "
                 "this another node?",
                 node, at->host, at->port);
    else if (rc < 0)
        snprintf(why, why_size, "cannot listen at %s:%s, which is node %u in the list of nodes: %s",
                 at->host, at->port, node, strerror(-rc));
    return rc;
}

int check_providers(const struct config *config, FILE *to)
{
    char why[512] = "", taken[PROVIDER_NAME_MAX], names[PROVIDERS_MAX][PROVIDER_NAME_MAX];
    const struct provider_config wanted = provider_config_of(config, why, sizeof(why));
    int count, rc = provider_choose(&wanted, taken);

    if (rc < 0) {
        fprintf(stderr, "pwcd: error: %s\n", *why ? why : strerror(-rc));
        return rc;
    }
    fprintf(to, "%s\n", taken);
    count = provider_list(config->address, names, PROVIDERS_MAX);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], taken) != 0)
            fprintf(to, "%s\n", names[i]);
    return 0;
}

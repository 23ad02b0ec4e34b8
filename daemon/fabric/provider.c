/* Owns nothing: the choice of the fabric to other nodes (provider.h). Thread: the thread that opens
 * the fabric. */
#include "daemon/fabric/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/fabric/ofi/ofi.h"
#include "daemon/fabric/source.h"
#include "daemon/fabric/stream/stream.h"
#include "proto/provider_name.h"

#define STREAM "stream"

static_assert(PROVIDER_NAME_MAX == OFI_NAME_MAX, "one array for both");

static struct ofi_config ofi_config_of(const struct provider_config *config)
{
    return (struct ofi_config){
        .provider = config->name,
        .bind = config->bind,
        .peers_max = config->peers_max,
        .memories_max = config->memories_max,
        .rails = config->rails,
        .message = config->message,
        .message_size = config->message_size,
    };
}

void provider_prepare(void)
{
    ofi_prepare();
}

int provider_choose(const struct provider_config *config, char name[PROVIDER_NAME_MAX])
{
    const struct ofi_config ofi = ofi_config_of(config);
    struct sockaddr_storage address;
    int rc;

    if (config->name && strcmp(config->name, STREAM) == 0) {
        if (config->rails > 1) {
            if (config->message)
                snprintf(config->message, config->message_size,
                         "provider stream has one connection to a peer: %u rails need another, say "
                         "tcp;ofi_rxm",
                         config->rails);
            return -EOPNOTSUPP;
        }
        snprintf(name, PROVIDER_NAME_MAX, STREAM);
        return 0;
    }
    rc = ofi_choose(&ofi, name);
    if (config->name || config->rails > 1 || source_parse(config->bind, &address) < 0)
        return rc;
    if (rc < 0 || provider_over_ip(name)) {
        snprintf(name, PROVIDER_NAME_MAX, STREAM);
        if (config->message && config->message_size > 0)
            *config->message = '\0';
    }
    return 0;
}

int provider_open(const struct provider_config *config, struct fabric **out,
                  char name[PROVIDER_NAME_MAX])
{
    const struct ofi_config ofi = ofi_config_of(config);
    int rc = provider_choose(config, name);

    if (rc < 0)
        return rc;
    if (strcmp(name, STREAM) == 0)
        return stream_open(&(struct stream_config){.bind = config->bind,
                                                   .peers_max = config->peers_max,
                                                   .memories_max = config->memories_max,
                                                   .message = config->message,
                                                   .message_size = config->message_size},
                           out);
    rc = ofi_open(&ofi, out);
    if (rc == 0)
        snprintf(name, PROVIDER_NAME_MAX, "%s", ofi_provider_name(*out));
    return rc;
}

int provider_list(const char *bind, char names[][PROVIDER_NAME_MAX], int room)
{
    struct sockaddr_storage address;
    int count = source_parse(bind, &address);

    if (count < 0 || room == 0)
        return count;
    snprintf(names[0], PROVIDER_NAME_MAX, STREAM);
    count = ofi_providers(bind, names + 1, room - 1);
    return count < 0 ? 1 : count + 1;
}

/*
 * Owns the choice of a libfabric provider: by what it can do, and by the address to bind to.
 *
 * Thread: the thread that opens the fabric.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>
#include "daemon/fabric/ofi/ofi_private.h"
#include "daemon/fabric/source.h"

#define API_VERSION   FI_VERSION(1, 14)
#define IMMEDIATE_MIN 4 /* bytes of immediate data that we need */

void ofi_say(const struct ofi_config *config, const char *format, ...)
{
    va_list arguments;

    if (!config->message || config->message_size == 0)
        return;
    va_start(arguments, format);
    (void)vsnprintf(config->message, config->message_size, format, arguments);
    va_end(arguments);
}

int ofi_error(ssize_t result)
{
    if (result >= 0)
        return 0;
    switch (-result) {
    case FI_ENOKEY:
        return -EACCES;
    case FI_ETRUNC:
        return -EMSGSIZE;
    case FI_ENOAV:
    case FI_EOPBADSTATE:
        return -ENOTCONN;
    case FI_EOVERRUN:
        return -EOVERFLOW;
    default:
        /* libfabric's own numbers start at FI_ERRNO_OFFSET; smaller numbers are those of errno. */
        return -result < FI_ERRNO_OFFSET ? (int)result : -EIO;
    }
}

/* ---- the address to bind to ------------------------------------------------------------------ */

static int hint_source(struct fi_info *hints, const struct sockaddr_storage *address)
{
    size_t size = source_size(address);

    hints->src_addr = malloc(size);
    if (!hints->src_addr)
        return -ENOMEM;
    memcpy(hints->src_addr, address, size);
    hints->src_addrlen = size;
    hints->addr_format = address->ss_family == AF_INET ? FI_SOCKADDR_IN : FI_SOCKADDR_IN6;
    return 0;
}

/* ---- endpoints with names in /dev/shm -------------------------------------------------------- */

#define SHM_FOLDER "/dev/shm"
#define SHM_PREFIX "pwcd-"

/* Removes the files (16 MiB each) that killed processes with this name have left. */
static void remove_leftovers(const char *stem)
{
    DIR *folder = opendir(SHM_FOLDER);

    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strncmp(entry->d_name, stem, strlen(stem)) == 0)
            (void)shm_unlink(entry->d_name);
    closedir(folder);
}

/*
 * Gives the endpoint a name, which is new at each start, because peers may still use the memory of
 * the last start by its name. The name ends in a zero, which the rail's number replaces. With a
 * name that the provider has chosen, a later start could not find our files. Without a name, pwcrun
 * removes what a killed daemon has left, by the process group that pwcrun has started: the daemon's
 * keeper leads it, and the daemons that the keeper starts have numbers that pwcrun does not know.
 */
static int name_endpoint(const struct ofi_config *config, struct fi_info *info)
{
    char stem[96], name[128];
    uint32_t start;

    if (getrandom(&start, sizeof(start), 0) != sizeof(start))
        return -EIO;
    start &= ~UINT32_C(0xf);
    if (config->name) {
        if (strchr(config->name, '/') || strlen(config->name) > 64) {
            ofi_say(config, "endpoint name '%s': give at most 64 characters without '/'",
                    config->name);
            return -EINVAL;
        }
        (void)snprintf(stem, sizeof(stem), SHM_PREFIX "%s.", config->name);
        remove_leftovers(stem);
    } else {
        (void)snprintf(stem, sizeof(stem), SHM_PREFIX "%ld.%ld.", (long)getpid(), (long)getpgrp());
    }
    (void)snprintf(name, sizeof(name), "%s%08x", stem, start);
    free(info->src_addr);
    info->src_addr = strdup(name);
    info->src_addrlen = strlen(name) + 1;
    return info->src_addr ? 0 : -ENOMEM;
}

/* ---- the search ------------------------------------------------------------------------------ */

static struct fi_info *make_hints(const char *provider, enum fi_ep_type type)
{
    struct fi_info *hints = fi_allocinfo();

    if (!hints)
        return NULL;
    /* Do not ask for FI_ATOMIC: with it some providers give up the order of writes. */
    hints->caps = FI_RMA | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = type;
    hints->tx_attr->msg_order = FI_ORDER_WAW | FI_ORDER_RMA_WAW;
    hints->rx_attr->msg_order = FI_ORDER_WAW | FI_ORDER_RMA_WAW;
    hints->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_ENDPOINT;
    /* FI_THREAD_SAFE, because the registration thread registers while the progress thread posts and
     * polls. */
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_TABLE;
    if (provider) {
        hints->fabric_attr->prov_name = strdup(provider);
        if (!hints->fabric_attr->prov_name) {
            fi_freeinfo(hints);
            return NULL;
        }
    }
    return hints;
}

/* Searches for a provider with ordered writes first, then for any. */
static int search_orders(struct fi_info *hints, struct fi_info **out)
{
    int rc = fi_getinfo(API_VERSION, NULL, NULL, 0, hints, out);

    if (rc == -FI_ENODATA) {
        hints->tx_attr->msg_order = 0;
        hints->rx_attr->msg_order = 0;
        rc = fi_getinfo(API_VERSION, NULL, NULL, 0, hints, out);
    }
    return rc;
}

static int search(const char *provider, enum fi_ep_type type, const struct sockaddr_storage *source,
                  struct fi_info **out)
{
    struct fi_info *hints = make_hints(provider, type);
    int rc = -ENOMEM;

    if (!hints)
        return rc;
    if (source)
        rc = hint_source(hints, source);
    if (!source || !rc)
        rc = search_orders(hints, out);
    fi_freeinfo(hints);
    return rc;
}

/*
 * Searches for the named provider. A name without a layer ("tcp", not "tcp;ofi_rxm") means the
 * provider itself. If it has no reliable datagrams of its own, its message endpoints are used,
 * which cost less than a layer.
 */
static int search_named(const char *provider, const struct sockaddr_storage *source,
                        struct fi_info **out)
{
    struct fi_info *messages;
    int rc = search(provider, FI_EP_RDM, source, out);

    if (rc || !provider || strchr(provider, ';') || !strchr((*out)->fabric_attr->prov_name, ';'))
        return rc;
    if (search(provider, FI_EP_MSG, source, &messages) == 0) {
        fi_freeinfo(*out);
        *out = messages;
    }
    return 0;
}

void ofi_prepare(void)
{
    /* The layer for reliable datagrams keeps thousands of buffers for messages, of 16 KiB by
     * default, and writes to all of them as it opens. We send no messages over it. Nodes with
     * another size of buffers are refused by the layer. */
    static const struct {
        const char *name, *value;
    } variables[] = {
        {"FI_OFI_RXM_BUFFER_SIZE", "512"},
        {"FI_OFI_RXM_RX_SIZE", "64"},      /* receives of ours */
        {"FI_OFI_RXM_MSG_RX_SIZE", "128"}, /* receives below the layer: its default, but over tcp */
    };

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        setenv(variables[i].name, variables[i].value, 0);
}

int ofi_provider_find(const struct ofi_config *config, struct fi_info **out)
{
    const char *bind_to = config->bind ? config->bind : SOURCE_DEFAULT;
    struct sockaddr_storage source;
    struct fi_info *found = NULL, *chosen;
    int rc = source_parse(bind_to, &source);

    if (rc) {
        ofi_say(config, "cannot bind to '%s': %s; give an IP address or an interface that has one",
                bind_to, strerror(-rc));
        return rc;
    }
    rc = search_named(config->provider, &source, &found);
    if (rc == -FI_ENODATA && config->provider)
        rc = search_named(config->provider, NULL, &found); /* its addresses are not IP addresses */
    if (rc) {
        ofi_say(config,
                "no provider %s%swith one-sided writes at %s: %s; pwcd --providers lists "
                "what there is",
                config->provider ? config->provider : "", config->provider ? " " : "", bind_to,
                fi_strerror(-rc));
        return rc == -FI_ENODATA ? -ENODEV : ofi_error(rc);
    }
    chosen = found;
    while (chosen && chosen->domain_attr->cq_data_size < IMMEDIATE_MIN)
        chosen = chosen->next;
    if (!chosen) {
        ofi_say(config, "provider %s cannot carry %d bytes of data with a write",
                found->fabric_attr->prov_name, IMMEDIATE_MIN);
        rc = -EOPNOTSUPP;
        goto done;
    }
    *out = fi_dupinfo(chosen);
    if (!*out) {
        rc = -ENOMEM;
        goto done;
    }
    if ((*out)->addr_format == FI_ADDR_STR) {
        rc = name_endpoint(config, *out);
        if (rc) {
            fi_freeinfo(*out);
            *out = NULL;
        }
    }
done:
    fi_freeinfo(found);
    return rc;
}

int ofi_choose(const struct ofi_config *config, char name[OFI_NAME_MAX])
{
    struct fi_info *info;
    int rc = ofi_provider_find(config, &info);

    if (rc)
        return rc;
    snprintf(name, OFI_NAME_MAX, "%s", info->fabric_attr->prov_name);
    fi_freeinfo(info);
    return 0;
}

static int add_name(const char *name, char names[][OFI_NAME_MAX], int count, int room)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return count;
    if (count < room)
        snprintf(names[count++], OFI_NAME_MAX, "%s", name);
    return count;
}

static bool speaks_ip(const struct fi_info *info)
{
    return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN ||
           info->addr_format == FI_SOCKADDR_IN6;
}

int ofi_providers(const char *bind, char names[][OFI_NAME_MAX], int room)
{
    struct sockaddr_storage address;
    int count = 0, rc = source_parse(bind, &address);

    if (rc)
        return rc;
    /* Providers at this address first, then providers without IP addresses. */
    for (int anywhere = 0; anywhere < 2; anywhere++) {
        struct fi_info *found;

        if (search(NULL, FI_EP_RDM, anywhere ? NULL : &address, &found) != 0)
            continue;
        for (const struct fi_info *i = found; i; i = i->next)
            if (i->domain_attr->cq_data_size >= IMMEDIATE_MIN && !(anywhere && speaks_ip(i)))
                count = add_name(i->fabric_attr->prov_name, names, count, room);
        fi_freeinfo(found);
    }
    return count;
}

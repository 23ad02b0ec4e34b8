/*
 * Owns the rails of the libfabric fabric, and their addresses. Rails are endpoints of one domain
 * with one completion queue, so that registered memory and its keys are the same for all of them.
 *
 * Thread: the thread that opens the fabric; then the progress thread.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include "daemon/fabric/ofi/ofi_private.h"

int ofi_rails_check(const struct ofi_config *config, const struct fi_info *info)
{
    uint32_t rails = config->rails;

    if (rails == 0 || rails == 1)
        return 0;
    if (info->ep_attr->type == FI_EP_MSG) {
        ofi_say(config,
                "provider %s has message endpoints: give 1 rail, not %u, or a provider with "
                "reliable datagrams (tcp;ofi_rxm)",
                info->fabric_attr->prov_name, rails);
        return -EOPNOTSUPP;
    }
    if (rails != 2 && rails != OFI_RAILS_MAX) {
        ofi_say(config, "rails %u: give 1, 2 or %u", rails, OFI_RAILS_MAX);
        return -EINVAL;
    }
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        ofi_say(config, "provider %s registers memory with one endpoint alone: give 1 rail, not %u",
                info->fabric_attr->prov_name, rails);
        return -EOPNOTSUPP;
    }
    return 0;
}

static int open_queue(struct ofi *ofi, uint32_t operations)
{
    struct fi_cq_attr attributes = {
        .size = operations,
        .format = FI_CQ_FORMAT_DATA,
        .wait_obj = FI_WAIT_FD, /* with many connections this also makes reads of the queue
                                 * cheaper */
    };
    int rc = fi_cq_open(ofi->domain, &attributes, &ofi->queue, NULL);

    if (rc) {
        attributes.wait_obj = FI_WAIT_NONE;
        rc = fi_cq_open(ofi->domain, &attributes, &ofi->queue, NULL);
    }
    return rc;
}

static int open_rail(struct ofi *ofi, uint32_t number)
{
    struct fi_av_attr addresses = {.type = FI_AV_TABLE};
    struct ofi_rail *rail = &ofi->rails[number];
    struct fi_info *info = ofi->info;
    int rc;

    if (ofi->named_addresses) /* a name for this rail: the zero at its end is replaced
                               * (name_endpoint) */
        ((char *)info->src_addr)[info->src_addrlen - 2] = (char)('0' + number);
    rc = fi_av_open(ofi->domain, &addresses, &rail->addresses, NULL);
    if (!rc)
        rc = fi_endpoint(ofi->domain, info, &rail->endpoint, NULL);
    if (!rc)
        rc = fi_ep_bind(rail->endpoint, &ofi->queue->fid, FI_TRANSMIT | FI_RECV);
    if (!rc)
        rc = fi_ep_bind(rail->endpoint, &rail->addresses->fid, 0);
    if (!rc)
        rc = fi_enable(rail->endpoint);
    return rc;
}

/* Opens the rails, and restores the handlers of signals that the daemon needs: the shm provider
 * replaces them. */
static int open_rails(struct ofi *ofi)
{
    static const int ours[] = {SIGBUS, SIGSEGV, SIGTERM, SIGINT};
    enum { COUNT = sizeof(ours) / sizeof(ours[0]) };
    struct sigaction before[COUNT];
    int rc = 0;

    for (int i = 0; i < COUNT; i++)
        (void)sigaction(ours[i], NULL, &before[i]);
    for (uint32_t i = 0; !rc && i < ofi->rail_count; i++)
        rc = open_rail(ofi, i);
    for (int i = 0; i < COUNT; i++)
        (void)sigaction(ours[i], &before[i], NULL);
    return rc;
}

int ofi_rails_open(struct ofi *ofi, uint32_t operations)
{
    struct fabric_address address;
    int rc = fi_fabric(ofi->info->fabric_attr, &ofi->provider, NULL);

    if (!rc)
        rc = fi_domain(ofi->provider, ofi->info, &ofi->domain, NULL);
    if (!rc)
        rc = open_queue(ofi, operations);
    if (!rc)
        rc = ofi->messages ? ofi_connections_open(ofi) : open_rails(ofi);
    rc = ofi_error(rc);
    return rc ? rc : ofi_address(&ofi->fabric, &address); /* checks that all addresses fit into
                                                           * one */
}

static void close_fid(struct fid *fid)
{
    if (fid)
        (void)fi_close(fid);
}

void ofi_rails_close(struct ofi *ofi)
{
    ofi_connections_close(ofi);
    for (uint32_t i = 0; i < OFI_RAILS_MAX; i++) {
        close_fid(ofi->rails[i].endpoint ? &ofi->rails[i].endpoint->fid : NULL);
        close_fid(ofi->rails[i].addresses ? &ofi->rails[i].addresses->fid : NULL);
    }
    close_fid(ofi->queue ? &ofi->queue->fid : NULL);
    close_fid(ofi->domain ? &ofi->domain->fid : NULL);
    close_fid(ofi->provider ? &ofi->provider->fid : NULL);
}

int ofi_address(struct fabric *fabric, struct fabric_address *out)
{
    struct ofi *ofi = (struct ofi *)fabric;

    memset(out, 0, sizeof(*out));
    if (ofi->messages)
        return ofi_connections_address(ofi, out);
    for (uint32_t i = 0; i < ofi->rail_count; i++) {
        size_t size = sizeof(out->bytes) - out->size;
        int rc = fi_getname(&ofi->rails[i].endpoint->fid, out->bytes + out->size, &size);

        if (rc)
            return rc == -FI_ETOOSMALL ? -ENAMETOOLONG : ofi_error(rc);
        if (i > 0 && size * i != out->size)
            return -EPROTO;
        out->size += (uint32_t)size;
    }
    return 0;
}

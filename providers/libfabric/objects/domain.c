/*
 * Owns domains: each is a client of the daemon, with a table of keys. Thread: the application's.
 */
#include "providers/libfabric/objects/domain.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include "providers/libfabric/transfers/atomic.h"
#include "providers/libfabric/objects/av.h"
#include "providers/libfabric/members/client.h"
#include "providers/libfabric/objects/cntr.h"
#include "providers/libfabric/objects/cq.h"
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/objects/info.h"
#include "providers/libfabric/members/members.h"
#include "providers/libfabric/objects/mr.h"
#include "providers/libfabric/refuse.h"

static int domain_close(struct fid *fid)
{
    struct domain *domain = container_of(fid, struct domain, fid.fid);

    if (atomic_load(&domain->users) != 0)
        return -FI_EBUSY;
    keys_close(domain->keys);
    members_free(domain->targets);
    members_free(domain->endpoints);
    pwc_finalize(domain->client);
    atomic_fetch_sub(&domain->fabric->users, 1);
    free(domain);
    return 0;
}

/* An event queue may be bound, but gets no event: no call here ends later than it returns. */
static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    return other->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
}

static struct fi_ops domain_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = domain_close,
    .bind = domain_bind,
    .control = refuse_control,
    .ops_open = refuse_ops_open,
};

static struct fi_ops_domain domain_ops = {
    .size = sizeof(struct fi_ops_domain),
    .av_open = av_open,
    .cq_open = cq_open,
    .endpoint = endpoint_open,
    .scalable_ep = refuse_scalable,
    .cntr_open = cntr_open,
    .poll_open = refuse_poll_open,
    .stx_ctx = refuse_shared_transmit,
    .srx_ctx = refuse_shared_receive,
    .query_atomic = atomic_query,
};

int domain_open(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **out,
                void *context)
{
    struct fabric *fabric = fabric_of(fid);
    struct domain *domain = calloc(1, sizeof(*domain));
    int mr_mode = info->domain_attr->mr_mode;
    bool basic = info_is_basic(mr_mode);
    int rc = -FI_ENOMEM;

    if (!domain)
        return rc;
    rc = client_open(&domain->client);
    if (rc < 0)
        goto no_client;
    rc = keys_open(domain->client, &domain->keys);
    if (rc < 0)
        goto no_keys;
    domain->locked = info->domain_attr->threading != FI_THREAD_DOMAIN;
    rc = members_new(domain->locked, &domain->targets);
    if (rc < 0)
        goto no_targets;
    rc = members_new(domain->locked, &domain->endpoints);
    if (rc < 0)
        goto no_endpoints;
    domain->fabric = fabric;
    domain->virtual_bases = basic || mr_mode & FI_MR_VIRT_ADDR;
    domain->own_keys = basic || mr_mode & FI_MR_PROV_KEY;
    domain->fid.fid.fclass = FI_CLASS_DOMAIN;
    domain->fid.fid.context = context;
    domain->fid.fid.ops = &domain_fid_ops;
    domain->fid.ops = &domain_ops;
    domain->fid.mr = &mr_ops;
    atomic_fetch_add(&fabric->users, 1);
    *out = &domain->fid;
    return 0;
no_endpoints:
    members_free(domain->targets);
no_targets:
    keys_close(domain->keys);
no_keys:
    pwc_finalize(domain->client);
no_client:
    free(domain);
    return rc;
}

/*
 * A fabric and its domains. A domain is one client of the daemon. The domain owns the client and
 * the table of keys, and counts the objects that are open in it.
 */
#ifndef PWC_PROVIDER_DOMAIN_H
#define PWC_PROVIDER_DOMAIN_H

#include <pwc/pwc.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stdatomic.h>
#include "providers/libfabric/members/keys.h"
#include "providers/libfabric/lock.h"

struct fabric {
    struct fid_fabric fid;
    atomic_uint users; /* domains and event queues */
};

struct domain {
    struct fid_domain fid;
    struct fabric *fabric;
    pwc_client *client;
    struct keys *keys;
    bool locked;               /* threads share objects: locks are taken */
    bool virtual_bases;        /* FI_MR_VIRT_ADDR: remote addresses are the owner's own */
    bool own_keys;             /* FI_MR_PROV_KEY */
    atomic_uint users;         /* everything that was opened in this domain and is still open */
    struct members *endpoints; /* all that are open */
    /* The endpoints that peers' puts may reach, for counters of memory regions. */
    struct members *targets;
};

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context);
int domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
                void *context);

static inline struct fabric *fabric_of(struct fid_fabric *fid)
{
    return container_of(fid, struct fabric, fid);
}

static inline struct domain *domain_of(struct fid_domain *fid)
{
    return container_of(fid, struct domain, fid);
}

#endif

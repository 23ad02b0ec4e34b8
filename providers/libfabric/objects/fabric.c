/*
 * Owns fabrics, which only count what was opened in them. Thread: the application's.
 */
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include "providers/libfabric/objects/cntr.h"
#include "providers/libfabric/objects/cq.h"
#include "providers/libfabric/objects/domain.h"
#include "providers/libfabric/objects/eq.h"
#include "providers/libfabric/refuse.h"

static int fabric_close(struct fid *fid)
{
    struct fabric *fabric = container_of(fid, struct fabric, fid.fid);

    if (atomic_load(&fabric->users) != 0)
        return -FI_EBUSY;
    free(fabric);
    return 0;
}

/* Returns -FI_EAGAIN if an entry or event is there already, so that the application does not sleep.
 */
static int fabric_trywait(struct fid_fabric *fid, struct fid **fids, int count)
{
    for (int i = 0; i < count; i++) {
        int rc = -FI_EINVAL;

        if (fids[i]->fclass == FI_CLASS_CQ)
            rc = cq_trywait(container_of(fids[i], struct cq, fid.fid));
        else if (fids[i]->fclass == FI_CLASS_CNTR)
            rc = cntr_trywait(container_of(fids[i], struct cntr, fid.fid));
        else if (fids[i]->fclass == FI_CLASS_EQ)
            rc = eq_trywait(container_of(fids[i], struct eq, fid.fid));
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct fi_ops fabric_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = fabric_close,
    .bind = refuse_bind,
    .control = refuse_control,
    .ops_open = refuse_ops_open,
};

static struct fi_ops_fabric fabric_ops = {
    .size = sizeof(struct fi_ops_fabric),
    .domain = domain_open,
    .passive_ep = refuse_passive,
    .eq_open = eq_open,
    .wait_open = refuse_wait_open,
    .trywait = fabric_trywait,
};

int fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context)
{
    struct fabric *fabric = calloc(1, sizeof(*fabric));

    if (!fabric)
        return -FI_ENOMEM;
    fabric->fid.fid.fclass = FI_CLASS_FABRIC;
    fabric->fid.fid.context = context;
    fabric->fid.fid.ops = &fabric_fid_ops;
    fabric->fid.ops = &fabric_ops;
    fabric->fid.api_version = attr->api_version;
    *out = &fabric->fid;
    return 0;
}

/*
 * Owns memory regions: each has a region of libpwc, and an entry in the domain's table of keys. A
 * range that peers may not reach needs neither. Thread: the application's.
 */
#include "providers/libfabric/objects/mr.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <stdint.h>
#include <stdlib.h>
#include "providers/libfabric/members/client.h"
#include "providers/libfabric/members/members.h"
#include "providers/libfabric/objects/cntr.h"
#include "providers/libfabric/objects/info.h"
#include "providers/libfabric/refuse.h"

struct mr {
    struct fid_mr fid;
    struct domain *domain;
    pwc_region *region; /* NULL: peers cannot reach it */
    bool named;         /* its key is in the table of keys */
    struct cntr *cntr;
};

/* As long as calls of libpwc that block. */
#define CLOSE_MS      30000
#define WORD_BYTES    8 /* of the longest words that atomics change */
#define REMOTE_ACCESS (FI_REMOTE_READ | FI_REMOTE_WRITE)

static unsigned rights_of(uint64_t access)
{
    return (access & FI_REMOTE_READ ? PWC_REMOTE_READ : 0) |
           (access & FI_REMOTE_WRITE ? PWC_REMOTE_WRITE : 0);
}

/* The end of the region moves its pages back, and with them the buffers of any operations there. So
 * all operations of the domain that are under way end first. */
static int mr_close(struct fid *fid)
{
    struct mr *mr = container_of(fid, struct mr, fid.fid);
    int rc;

    if (mr->region) {
        rc = members_flush(mr->domain->endpoints, CLOSE_MS);
        if (rc < 0) {
            info_warn("end a memory region: own operations have not ended in %d ms", CLOSE_MS);
            return rc;
        }
        /* After an end that failed, another region may have the key. */
        if (mr->named)
            keys_remove(mr->domain->keys, mr->fid.key);
        mr->named = false;
        rc = pwc_region_free(mr->region);
        if (rc < 0) {
            info_warn("end a memory region: %s", pwc_strerror(rc));
            return rc;
        }
    }
    if (mr->cntr)
        atomic_fetch_sub(&mr->cntr->users, 1);
    atomic_fetch_sub(&mr->domain->users, 1);
    free(mr);
    return 0;
}

/* Binds a counter of peers' writes, which counts those to all memory of the domain. */
static int mr_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
    struct mr *mr = container_of(fid, struct mr, fid.fid);
    struct cntr *cntr = container_of(other, struct cntr, fid.fid);
    int rc;

    if (other->fclass == FI_CLASS_EP)
        return 0;
    if (other->fclass != FI_CLASS_CNTR || flags != FI_REMOTE_WRITE)
        return -FI_ENOSYS;
    if (mr->cntr)
        return -FI_EBUSY;
    rc = cntr_count_all_arrivals(cntr);
    if (rc < 0)
        return rc;
    mr->cntr = cntr;
    atomic_fetch_add(&cntr->users, 1);
    return 0;
}

static int mr_control(struct fid *fid, int command, void *argument)
{
    return command == FI_ENABLE ? 0 : -FI_ENOSYS;
}

static struct fi_ops mr_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = mr_close,
    .bind = mr_bind,
    .control = mr_control,
    .ops_open = refuse_ops_open,
};

/* The bytes between a multiple of the longest word's size and the range: with them the region is
 * aligned as the memory is, which libpwc's atomics need. */
static uint32_t skip_of(const struct fi_mr_attr *attr)
{
    return (uintptr_t)attr->mr_iov->iov_base % WORD_BYTES;
}

static int make_key(struct mr *mr, const struct fi_mr_attr *attr)
{
    struct domain *domain = mr->domain;
    uint64_t base = (uint64_t)(uintptr_t)attr->mr_iov->iov_base;
    uint32_t skip = skip_of(attr);
    struct key_entry entry = {
        .key = attr->requested_key, .length = skip + attr->mr_iov->iov_len, .skip = skip};
    int rc = pwc_region_key(mr->region, &entry.region);

    if (rc < 0)
        return rc;
    entry.base = (domain->virtual_bases ? base : attr->offset) - skip;
    rc = domain->own_keys ? keys_add_new(domain->keys, &entry) : keys_add(domain->keys, &entry);
    mr->fid.key = entry.key;
    mr->named = rc == 0;
    return rc == -EEXIST ? -FI_ENOKEY : rc;
}

static int make_region(struct mr *mr, const struct fi_mr_attr *attr)
{
    uint32_t skip = skip_of(attr);
    int rc = -EINVAL;

    if (attr->mr_iov->iov_len <= SIZE_MAX - skip)
        rc = client_share(mr->domain->client, (char *)attr->mr_iov->iov_base - skip,
                          skip + attr->mr_iov->iov_len, rights_of(attr->access), &mr->region);
    if (rc == 0) {
        rc = make_key(mr, attr);
        if (rc < 0)
            pwc_region_free(mr->region);
    }
    return rc;
}

static int mr_regattr(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
                      struct fid_mr **out)
{
    struct domain *domain = container_of(fid, struct domain, fid.fid);
    struct mr *mr;
    int rc = 0;

    if (fid->fclass != FI_CLASS_DOMAIN || attr->iov_count != 1 || attr->mr_iov->iov_len == 0)
        return -FI_EINVAL;
    if (flags & ~FI_RMA_EVENT)
        return -FI_EBADFLAGS;
    if (attr->iface != FI_HMEM_SYSTEM)
        return -FI_ENOSYS;
    mr = calloc(1, sizeof(*mr));
    if (!mr)
        return -FI_ENOMEM;
    mr->domain = domain;
    mr->fid.key = FI_KEY_NOTAVAIL;
    if (attr->access & REMOTE_ACCESS)
        rc = make_region(mr, attr);
    if (rc < 0) {
        info_warn("register %zu bytes: %s", attr->mr_iov->iov_len, pwc_strerror(rc));
        free(mr);
        return rc;
    }
    mr->fid.mem_desc = mr;
    mr->fid.fid.fclass = FI_CLASS_MR;
    mr->fid.fid.context = attr->context;
    mr->fid.fid.ops = &mr_fid_ops;
    atomic_fetch_add(&domain->users, 1);
    *out = &mr->fid;
    return 0;
}

static int mr_regv(struct fid *fid, const struct iovec *iov, size_t count, uint64_t access,
                   uint64_t offset, uint64_t key, uint64_t flags, struct fid_mr **out,
                   void *context)
{
    struct fi_mr_attr attr = {
        .mr_iov = iov,
        .iov_count = count,
        .access = access,
        .offset = offset,
        .requested_key = key,
        .context = context,
    };

    return mr_regattr(fid, &attr, flags, out);
}

static int mr_reg(struct fid *fid, const void *buf, size_t len, uint64_t access, uint64_t offset,
                  uint64_t key, uint64_t flags, struct fid_mr **out, void *context)
{
    struct iovec iov = {.iov_base = (void *)(uintptr_t)buf, .iov_len = len};

    return mr_regv(fid, &iov, 1, access, offset, key, flags, out, context);
}

struct fi_ops_mr mr_ops = {
    .size = sizeof(struct fi_ops_mr),
    .reg = mr_reg,
    .regv = mr_regv,
    .regattr = mr_regattr,
};

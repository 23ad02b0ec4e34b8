/*
 * Owns completion queues. Any thread may call: a queue's lock guards its entries. No other lock of
 * the provider is taken while this one is held.
 */
#include "providers/libfabric/objects/cq.h"

#include <rdma/fi_errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "providers/libfabric/refuse.h"

#define DEFAULT_SIZE 8192
#define FIRST_ROOM   256

static struct cq *cq_of(struct fid_cq *fid)
{
    return container_of(fid, struct cq, fid);
}

static size_t held(const struct cq *cq)
{
    return (size_t)(cq->tail - cq->head);
}

bool cq_promise(struct cq *cq)
{
    bool fits;

    lock_take(&cq->lock);
    fits = held(cq) + cq->promised < cq->size;
    if (fits)
        cq->promised++;
    lock_give(&cq->lock);
    return fits;
}

void cq_release(struct cq *cq)
{
    lock_take(&cq->lock);
    cq->promised--;
    lock_give(&cq->lock);
}

bool cq_has_room(struct cq *cq)
{
    bool fits;

    lock_take(&cq->lock);
    fits = held(cq) < cq->size;
    lock_give(&cq->lock);
    return fits;
}

/* Doubles the ring. Returns false without memory. */
static bool grow(struct cq *cq)
{
    struct cq_completion *ring = malloc(2 * cq->room * sizeof(*ring));

    if (!ring)
        return false;
    for (uint64_t i = cq->head; i != cq->tail; i++)
        ring[i & (2 * cq->room - 1)] = cq->ring[i & (cq->room - 1)];
    free(cq->ring);
    cq->ring = ring;
    cq->room *= 2;
    return true;
}

void cq_add(struct cq *cq, const struct cq_completion *completion, bool promised)
{
    lock_take(&cq->lock);
    if (promised)
        cq->promised--;
    if (held(cq) < cq->room || grow(cq))
        cq->ring[cq->tail++ & (cq->room - 1)] = *completion;
    lock_give(&cq->lock);
    members_wake(cq->members);
}

void cq_add_error(struct cq *cq, const struct fi_cq_err_entry *entry, bool promised)
{
    struct cq_error *error = malloc(sizeof(*error));

    if (error) {
        error->next = NULL;
        error->entry = *entry;
    }
    lock_take(&cq->lock);
    if (promised)
        cq->promised--;
    if (error) {
        *cq->last_error = error;
        cq->last_error = &error->next;
    }
    lock_give(&cq->lock);
    members_wake(cq->members);
}

static size_t entry_size(enum fi_cq_format format)
{
    switch (format) {
    case FI_CQ_FORMAT_CONTEXT:
        return sizeof(struct fi_cq_entry);
    case FI_CQ_FORMAT_MSG:
        return sizeof(struct fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
        return sizeof(struct fi_cq_data_entry);
    default:
        return sizeof(struct fi_cq_tagged_entry);
    }
}

/* Copies entries out; an entry of any format is the beginning of one of the longest format. */
static ssize_t take_entries(struct cq *cq, void *buf, size_t count, fi_addr_t *sources)
{
    size_t size = entry_size(cq->format);
    size_t taken = 0;
    ssize_t rc;

    lock_take(&cq->lock);
    if (cq->errors)
        rc = -FI_EAVAIL;
    else {
        while (taken < count && held(cq) > 0) {
            const struct cq_completion *c = &cq->ring[cq->head++ & (cq->room - 1)];

            memcpy((char *)buf + taken * size, &c->entry, size);
            if (sources)
                sources[taken] = c->source;
            taken++;
        }
        rc = taken > 0 ? (ssize_t)taken : -FI_EAGAIN;
    }
    lock_give(&cq->lock);
    return rc;
}

static ssize_t look(struct cq *cq, void *buf, size_t count, fi_addr_t *sources)
{
    int rc = members_progress(cq->members);
    ssize_t taken = take_entries(cq, buf, count, sources);

    if (taken == -FI_EAGAIN && count > 0 && rc < 0)
        return rc;
    return taken == -FI_EAGAIN && count == 0 ? 0 : taken;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *sources)
{
    struct cq *cq = cq_of(fid);
    ssize_t rc = look(cq, buf, count, sources);

    /* A read of no entries only asks for progress. */
    if (rc == -FI_EAGAIN || rc == 0)
        members_yield(cq->members);
    else
        members_found(cq->members);
    return rc;
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
    return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
    struct cq *cq = cq_of(fid);
    struct cq_error *error;

    members_progress(cq->members);
    lock_take(&cq->lock);
    error = cq->errors;
    if (error) {
        cq->errors = error->next;
        if (!cq->errors)
            cq->last_error = &cq->errors;
    }
    lock_give(&cq->lock);
    if (!error)
        return -FI_EAGAIN;
    /* This provider has no data that explains the error. */
    error->entry.err_data = buf->err_data;
    error->entry.err_data_size = 0;
    *buf = error->entry;
    free(error);
    return 1;
}

static bool take_signal(struct cq *cq)
{
    bool signalled;

    lock_take(&cq->lock);
    signalled = cq->signalled;
    cq->signalled = false;
    lock_give(&cq->lock);
    return signalled;
}

static bool is_empty(struct cq *cq)
{
    bool empty;

    lock_take(&cq->lock);
    empty = held(cq) == 0 && !cq->errors;
    lock_give(&cq->lock);
    return empty;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *sources,
                            const void *condition, int timeout)
{
    struct cq *cq = cq_of(fid);
    int64_t end = timeout < 0 ? INT64_MAX : members_now() + timeout;

    if (cq->wait_object == FI_WAIT_NONE)
        return -FI_ENOSYS;
    for (;;) {
        ssize_t rc = look(cq, buf, count, sources);
        int64_t left = end - members_now();

        if (rc != -FI_EAGAIN || left <= 0 || take_signal(cq))
            return rc;
        if (members_arm(cq->members) && is_empty(cq))
            members_sleep(cq->members, left > INT32_MAX ? -1 : (int)left);
    }
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *condition,
                        int timeout)
{
    return cq_sreadfrom(fid, buf, count, NULL, condition, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
    struct cq *cq = cq_of(fid);

    lock_take(&cq->lock);
    cq->signalled = true;
    lock_give(&cq->lock);
    members_wake(cq->members);
    return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int error, const void *data, char *buf,
                               size_t len)
{
    const char *text = pwc_strerror(error);

    if (buf && len)
        snprintf(buf, len, "%s", text);
    return text;
}

int cq_trywait(struct cq *cq)
{
    if (cq->wait_object == FI_WAIT_NONE)
        return -FI_EINVAL;
    return members_quiet(cq->members) && is_empty(cq) ? 0 : -FI_EAGAIN;
}

static int cq_control(struct fid *fid, int command, void *argument)
{
    struct cq *cq = container_of(fid, struct cq, fid.fid);
    int fd;

    if (command == FI_GETWAITOBJ) {
        *(enum fi_wait_obj *)argument = cq->wait_object;
        return 0;
    }
    if (command != FI_GETWAIT || cq->wait_object != FI_WAIT_FD)
        return -FI_ENOSYS;
    fd = members_descriptor(cq->members);
    if (fd < 0)
        return fd;
    *(int *)argument = fd;
    return 0;
}

static int cq_close(struct fid *fid)
{
    struct cq *cq = container_of(fid, struct cq, fid.fid);

    if (atomic_load(&cq->users) != 0)
        return -FI_EBUSY;
    while (cq->errors) {
        struct cq_error *next = cq->errors->next;

        free(cq->errors);
        cq->errors = next;
    }
    members_free(cq->members);
    lock_destroy(&cq->lock);
    atomic_fetch_sub(&cq->domain->users, 1);
    free(cq->ring);
    free(cq);
    return 0;
}

static struct fi_ops cq_fid_ops = {
    .size = sizeof(struct fi_ops),
    .close = cq_close,
    .bind = refuse_bind,
    .control = cq_control,
    .ops_open = refuse_ops_open,
};

static struct fi_ops_cq cq_ops = {
    .size = sizeof(struct fi_ops_cq),
    .read = cq_read,
    .readfrom = cq_readfrom,
    .readerr = cq_readerr,
    .sread = cq_sread,
    .sreadfrom = cq_sreadfrom,
    .signal = cq_signal,
    .strerror = cq_strerror,
};

static bool attr_met(const struct fi_cq_attr *attr)
{
    return attr->wait_obj == FI_WAIT_NONE || attr->wait_obj == FI_WAIT_UNSPEC ||
           attr->wait_obj == FI_WAIT_FD || attr->wait_obj == FI_WAIT_YIELD;
}

int cq_open(struct fid_domain *fid, struct fi_cq_attr *attr, struct fid_cq **out, void *context)
{
    struct domain *domain = domain_of(fid);
    struct cq *cq;
    int rc = -FI_ENOMEM;

    if (!attr_met(attr))
        return -FI_ENOSYS;
    cq = calloc(1, sizeof(*cq));
    if (!cq)
        return rc;
    cq->ring = malloc(FIRST_ROOM * sizeof(*cq->ring));
    if (!cq->ring)
        goto fail;
    rc = members_new(domain->locked, &cq->members);
    if (rc < 0)
        goto fail;
    cq->room = FIRST_ROOM;
    cq->size = attr->size ? attr->size : DEFAULT_SIZE;
    if (attr->format == FI_CQ_FORMAT_UNSPEC)
        attr->format = FI_CQ_FORMAT_CONTEXT;
    cq->format = attr->format;
    cq->wait_object = attr->wait_obj;
    cq->last_error = &cq->errors;
    cq->domain = domain;
    lock_init(&cq->lock, domain->locked);
    cq->fid.fid.fclass = FI_CLASS_CQ;
    cq->fid.fid.context = context;
    cq->fid.fid.ops = &cq_fid_ops;
    cq->fid.ops = &cq_ops;
    atomic_fetch_add(&domain->users, 1);
    *out = &cq->fid;
    return 0;
fail:
    free(cq->ring);
    free(cq);
    return rc;
}

/* Opens, progresses and closes one side of a test over libfabric (side.h). Thread: the test's. */
#include "tests/providers/side.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define VERSION FI_VERSION(1, 14)

int64_t side_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void side_choose(const char *socket, const char *job)
{
    setenv("PWC_SOCKET", socket, 1);
    if (job)
        setenv("FI_PWC_JOB", job, 1);
}

struct fi_info *side_hints(const struct side_options *options)
{
    struct fi_info *hints = fi_allocinfo();

    hints->fabric_attr->prov_name = strdup("pwc");
    hints->caps = options->caps;
    hints->domain_attr->mr_mode = options->mr_mode;
    hints->domain_attr->threading = options->threading;
    hints->ep_attr->type = FI_EP_RDM;
    return hints;
}

static int open_counters(struct side *side)
{
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    int rc = fi_cntr_open(side->domain, &attr, &side->writes, NULL);

    if (rc == 0)
        rc = fi_cntr_open(side->domain, &attr, &side->reads, NULL);
    if (rc == 0)
        rc = fi_cntr_open(side->domain, &attr, &side->arrived, NULL);
    if (rc == 0)
        rc = fi_ep_bind(side->ep, &side->writes->fid, FI_WRITE);
    if (rc == 0)
        rc = fi_ep_bind(side->ep, &side->reads->fid, FI_READ);
    return rc;
}

static int make_endpoint(struct side *side, const struct side_options *options, struct fid_ep **out)
{
    int rc = fi_endpoint(side->domain, side->info, out, NULL);

    if (rc == 0)
        rc = fi_ep_bind(*out, &side->av->fid, 0);
    if (rc == 0)
        rc = fi_ep_bind(*out, &side->cq->fid, FI_TRANSMIT | FI_RECV | options->cq_flags);
    return rc;
}

int side_endpoint(struct side *side, const struct side_options *options, struct fid_ep **out)
{
    int rc = make_endpoint(side, options, out);

    return rc == 0 ? fi_enable(*out) : rc;
}

static int open_endpoint(struct side *side, const struct side_options *options)
{
    struct fi_cq_attr cq_attr = {
        .size = options->cq_size, .format = options->format, .wait_obj = options->wait};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    int rc = fi_av_open(side->domain, &av_attr, &side->av, NULL);

    if (rc == 0)
        rc = fi_cq_open(side->domain, &cq_attr, &side->cq, NULL);
    if (rc == 0)
        rc = make_endpoint(side, options, &side->ep);
    if (rc == 0 && options->counters)
        rc = open_counters(side);
    return rc == 0 ? fi_enable(side->ep) : rc;
}

static int open_memory(struct side *side, const struct side_options *options)
{
    int rc;

    side->memory =
        mmap(NULL, SIDE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (side->memory == MAP_FAILED) {
        side->memory = NULL;
        return -FI_ENOMEM;
    }
    rc = fi_mr_reg(side->domain, side->memory, SIDE_BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                   options->key, 0, &side->mr, NULL);
    if (rc == 0 && side->arrived)
        rc = fi_mr_bind(side->mr, &side->arrived->fid, FI_REMOTE_WRITE);
    return rc;
}

int side_open(struct side *side, const char *socket, const struct side_options *options)
{
    struct fi_info *hints = side_hints(options);
    int rc;

    memset(side, 0, sizeof(*side));
    side_choose(socket, NULL);
    rc = fi_getinfo(VERSION, NULL, NULL, 0, hints, &side->info);
    fi_freeinfo(hints);
    if (rc == 0)
        rc = fi_fabric(side->info->fabric_attr, &side->fabric, NULL);
    if (rc == 0)
        rc = fi_domain(side->fabric, side->info, &side->domain, NULL);
    if (rc == 0)
        rc = open_endpoint(side, options);
    return rc == 0 ? open_memory(side, options) : rc;
}

#define CLOSE(object)                                                                              \
    do {                                                                                           \
        if (object)                                                                                \
            fi_close(&object->fid);                                                                \
        object = NULL;                                                                             \
    } while (0)

void side_close(struct side *side)
{
    CLOSE(side->ep);
    CLOSE(side->mr);
    CLOSE(side->writes);
    CLOSE(side->reads);
    CLOSE(side->arrived);
    CLOSE(side->cq);
    CLOSE(side->av);
    CLOSE(side->domain);
    CLOSE(side->fabric);
    fi_freeinfo(side->info);
    side->info = NULL;
    if (side->memory)
        munmap(side->memory, SIDE_BYTES);
    side->memory = NULL;
}

static int insert(struct side *a, struct side *b)
{
    unsigned char name[128];
    size_t length = sizeof(name);
    int rc = fi_getname(&b->ep->fid, name, &length);

    if (rc < 0)
        return rc;
    rc = fi_av_insert(a->av, name, 1, &a->peer, 0, NULL);
    return rc == 1 ? 0 : -FI_EINVAL;
}

int side_meet(struct side *a, struct side *b)
{
    int rc = insert(a, b);

    return rc == 0 ? insert(b, a) : rc;
}

uint64_t side_address(const struct side *side, size_t offset)
{
    bool is_virtual = side->info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;

    return (is_virtual ? (uint64_t)(uintptr_t)side->memory : 0) + offset;
}

uint64_t side_key(const struct side *side)
{
    return fi_mr_key(side->mr);
}

void side_drive(struct side *side, struct side *other)
{
    fi_cq_read(side->cq, NULL, 0);
    if (other)
        fi_cq_read(other->cq, NULL, 0);
}

int side_entry(struct side *side, struct side *other, struct fi_cq_tagged_entry *entry)
{
    int64_t end = side_now() + SIDE_WAIT_MS;
    ssize_t rc;

    while ((rc = fi_cq_read(side->cq, entry, 1)) == -FI_EAGAIN) {
        if (side_now() > end)
            return -FI_ETIMEDOUT;
        if (other)
            fi_cq_read(other->cq, NULL, 0);
    }
    return (int)rc;
}

int side_error(struct side *side, struct fi_cq_err_entry *entry)
{
    int64_t end = side_now() + SIDE_WAIT_MS;
    ssize_t rc;

    memset(entry, 0, sizeof(*entry));
    while ((rc = fi_cq_readerr(side->cq, entry, 0)) == -FI_EAGAIN)
        if (side_now() > end)
            return -FI_ETIMEDOUT;
    return rc == 1 ? entry->err : (int)rc;
}

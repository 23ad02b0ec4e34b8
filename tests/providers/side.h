/*
 * One side of a test over libfabric: fabric, domain, endpoint, queue and memory, at the daemon of
 * one node. A test has two sides in one process, at two daemons or at one. Every wait has a time
 * limit. Thread: the test's.
 */
#ifndef PWC_TESTS_PROVIDERS_SIDE_H
#define PWC_TESTS_PROVIDERS_SIDE_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIDE_BYTES   (64 * 1024)
#define SIDE_WAIT_MS 20000

struct side {
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    struct fid_cntr *writes, *reads, *arrived;
    unsigned char *memory; /* SIDE_BYTES, registered for peers */
    fi_addr_t peer;        /* the other side, after side_meet */
};

struct side_options {
    uint64_t caps; /* 0: all capabilities */
    int mr_mode;   /* mr_mode in the hints */
    uint64_t key;  /* the key that is asked for, where the application chooses keys */
    uint64_t cq_flags;
    size_t cq_size; /* 0: the provider's default */
    enum fi_cq_format format;
    enum fi_wait_obj wait;
    enum fi_threading threading;
    bool counters; /* binds counters of writes, reads and arrivals */
};

/* Sets the socket that the next fi_getinfo and fi_domain use, and the job's name. */
void side_choose(const char *socket, const char *job);

/* Hints for the provider; free them by fi_freeinfo. */
struct fi_info *side_hints(const struct side_options *options);

/* Opens one more endpoint of a side, with its vector and queue, ready for use. */
int side_endpoint(struct side *side, const struct side_options *options, struct fid_ep **out);

/* Opens a side at the daemon of that socket. Returns 0, or the error of the call that failed. */
int side_open(struct side *side, const char *socket, const struct side_options *options);
void side_close(struct side *side);

/* Exchanges addresses, so that each side's `peer` is the other one. */
int side_meet(struct side *a, struct side *b);

/* The address by which a peer reaches this byte of the side's memory, and the memory's key. */
uint64_t side_address(const struct side *side, size_t offset);
uint64_t side_key(const struct side *side);

/* Waits for one entry, and progresses the other side meanwhile (NULL: no other). Returns 1, the
 * queue's error (-FI_EAVAIL where an error entry waits), or -FI_ETIMEDOUT. */
int side_entry(struct side *side, struct side *other, struct fi_cq_tagged_entry *entry);

/* Waits for one error entry. Returns its err, or -FI_ETIMEDOUT. */
int side_error(struct side *side, struct fi_cq_err_entry *entry);

/* Repeats a call while it returns -FI_EAGAIN, and progresses both sides meanwhile. */
#define SIDE_REPEAT(side, other, call)                                                             \
    ({                                                                                             \
        ssize_t repeat_rc;                                                                         \
        int64_t repeat_end = side_now() + SIDE_WAIT_MS;                                            \
        while ((repeat_rc = (call)) == -FI_EAGAIN && side_now() < repeat_end)                      \
            side_drive(side, other);                                                               \
        repeat_rc;                                                                                 \
    })

int64_t side_now(void);
void side_drive(struct side *side, struct side *other);

#endif

/*
 * The calls that this provider does not have, for the tables of libfabric's calls: each refuses.
 */
#ifndef PWC_PROVIDER_REFUSE_H
#define PWC_PROVIDER_REFUSE_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

int refuse_bind(struct fid *fid, struct fid *other, uint64_t flags);
int refuse_control(struct fid *fid, int command, void *argument);
int refuse_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

int refuse_passive(struct fid_fabric *fabric, struct fi_info *info, struct fid_pep **pep,
                   void *context);
int refuse_wait_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **wait);
int refuse_scalable(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
                    void *context);
int refuse_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **poll);
int refuse_shared_transmit(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
                           void *context);
int refuse_shared_receive(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **ep,
                          void *context);

/* Whole tables of an endpoint. */
extern struct fi_ops_tagged refuse_tagged;

#endif

/*
 * Remote memory access: fi_write and fi_read in all their forms.
 */
#ifndef PWC_PROVIDER_RMA_H
#define PWC_PROVIDER_RMA_H

#include <rdma/fi_rma.h>

extern struct fi_ops_rma rma_ops;

#endif

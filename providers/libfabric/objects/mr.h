/*
 * Memory regions: ranges of the application's memory that peers may reach by a key.
 */
#ifndef PWC_PROVIDER_MR_H
#define PWC_PROVIDER_MR_H

#include <rdma/fi_domain.h>
#include "providers/libfabric/objects/domain.h"

extern struct fi_ops_mr mr_ops;

#endif

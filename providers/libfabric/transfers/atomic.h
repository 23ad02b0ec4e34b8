/*
 * Atomics: fi_atomic, fi_fetch_atomic and fi_compare_atomic in all their forms.
 */
#ifndef PWC_PROVIDER_ATOMIC_H
#define PWC_PROVIDER_ATOMIC_H

#include <rdma/fi_atomic.h>

extern struct fi_ops_atomic atomic_ops;

int atomic_query(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
                 struct fi_atomic_attr *attr, uint64_t flags);

#endif

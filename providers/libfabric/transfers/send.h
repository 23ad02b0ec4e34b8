/*
 * Messages that leave: fi_send in all its forms, each of at most INFO_INJECT_SIZE bytes: a Medium,
 * or several where the daemon's packed_max is smaller.
 */
#ifndef PWC_PROVIDER_SEND_H
#define PWC_PROVIDER_SEND_H

#include <rdma/fi_endpoint.h>

extern struct fi_ops_msg send_ops;

#endif

/*
 * Messages that leave: fi_send in all its forms, each a Medium of at most INFO_INJECT_SIZE bytes.
 */
#ifndef PWC_PROVIDER_SEND_H
#define PWC_PROVIDER_SEND_H

#include <rdma/fi_endpoint.h>

extern struct fi_ops_msg send_ops;

#endif

/*
 * The provider's offer (struct fi_info), and its log. Nothing is changed, so any thread may call.
 */
#ifndef PWC_PROVIDER_INFO_H
#define PWC_PROVIDER_INFO_H

#include <rdma/fabric.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>

#define INFO_NAME         "pwc"
#define INFO_IOV_LIMIT    4
#define INFO_ENDPOINTS    64
#define INFO_QUEUE_SIZE   4096
#define INFO_PROTOCOL     (FI_PROV_SPECIFIC | 0x707763)
#define INFO_MESSAGE_MAX  ((size_t)1 << 30)
#define INFO_CAPS_PRIMARY (FI_MSG | FI_RMA | FI_ATOMIC)
#define INFO_CAPS_TX      (FI_SEND | FI_READ | FI_WRITE)
#define INFO_CAPS_RX      (FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define INFO_CAPS_SECONDARY                                                                        \
    (FI_RMA_EVENT | FI_FENCE | FI_SOURCE | FI_DIRECTED_RECV | FI_LOCAL_COMM | FI_REMOTE_COMM)
#define INFO_CAPS      (INFO_CAPS_PRIMARY | INFO_CAPS_TX | INFO_CAPS_RX | INFO_CAPS_SECONDARY)
#define INFO_MR_MODE   (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)
#define INFO_MSG_ORDER FI_ORDER_SAS
#define INFO_TX_OP_FLAGS                                                                           \
    (FI_INJECT | FI_COMPLETION | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | FI_FENCE |            \
     FI_DELIVERY_COMPLETE | FI_MORE)
#define INFO_RX_OP_FLAGS (FI_COMPLETION | FI_MORE)

/* The default of the daemon's packed_max. An application asks for the size before it is a client,
 * so the size also holds where packed_max is smaller: by parts and copies.
 */
#define INFO_INJECT_SIZE 4096

extern struct fi_provider info_provider;

int info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
             const struct fi_info *hints, struct fi_info **out);

/* Whether the memory mode is FI_MR_BASIC, as older applications ask for it. */
bool info_is_basic(int mr_mode);

void info_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif

/*
 * Owns nothing: answers fi_getinfo. Thread: any; keeps nothing between calls.
 */
#include "providers/libfabric/objects/info.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/providers/fi_log.h>
#include "providers/libfabric/members/address.h"
#include "providers/libfabric/members/client.h"

void info_warn(const char *format, ...)
{
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    FI_WARN(&info_provider, FI_LOG_CORE, "%s\n", text);
}

bool info_is_basic(int mr_mode)
{
    return mr_mode == FI_MR_BASIC;
}

/* Returns the bits of the application's memory mode that are of use here; -1: it demands a mode
 * that this provider does not have. */
static int mr_mode_for(uint32_t version, const struct fi_info *hints)
{
    int asked = hints && hints->domain_attr ? hints->domain_attr->mr_mode : 0;

    if (asked == FI_MR_BASIC || asked == FI_MR_SCALABLE)
        return asked;
    if (FI_VERSION_LT(version, FI_VERSION(1, 5)))
        return asked == FI_MR_UNSPEC ? FI_MR_SCALABLE : -1;
    return asked & INFO_MR_MODE;
}

static bool order_met(uint64_t asked)
{
    return (asked & ~(uint64_t)INFO_MSG_ORDER) == 0;
}

static bool progress_met(enum fi_progress asked, uint64_t caps)
{
    /* Messages are matched inside calls of the application. */
    return asked != FI_PROGRESS_AUTO || (caps & FI_MSG) == 0;
}

static bool name_met(const char *asked, const char *name)
{
    return !asked || strcmp(asked, name) == 0;
}

static bool fabric_met(const struct fi_fabric_attr *asked)
{
    if (!asked)
        return true;
    /* "name;layer" asks for a layer over a provider of that name, and does not match. */
    return name_met(asked->name, INFO_NAME) &&
           (!asked->prov_name || strcasecmp(asked->prov_name, INFO_NAME) == 0);
}

static bool domain_met(const struct fi_domain_attr *asked, uint64_t caps)
{
    if (!asked)
        return true;
    return name_met(asked->name, INFO_NAME) && progress_met(asked->data_progress, caps) &&
           asked->mr_key_size <= sizeof(uint64_t) && asked->cq_data_size <= sizeof(uint64_t) &&
           asked->cq_cnt <= INFO_QUEUE_SIZE && asked->ep_cnt <= INFO_ENDPOINTS &&
           asked->tx_ctx_cnt <= INFO_ENDPOINTS && asked->rx_ctx_cnt <= INFO_ENDPOINTS &&
           asked->max_ep_tx_ctx <= 1 && asked->max_ep_rx_ctx <= 1 && asked->max_ep_stx_ctx == 0 &&
           asked->max_ep_srx_ctx == 0 && asked->mr_iov_limit <= 1 && asked->auth_key_size == 0 &&
           (asked->caps & ~(FI_LOCAL_COMM | FI_REMOTE_COMM)) == 0;
}

/* Returns the longest transfer: where there are only messages, the longest message. */
static size_t length_max(uint64_t caps)
{
    return caps & (FI_RMA | FI_ATOMIC) ? INFO_MESSAGE_MAX : INFO_INJECT_SIZE;
}

static bool endpoint_met(const struct fi_ep_attr *asked, uint64_t caps)
{
    if (!asked)
        return true;
    return (asked->type == FI_EP_UNSPEC || asked->type == FI_EP_RDM) &&
           (asked->protocol == FI_PROTO_UNSPEC || asked->protocol == INFO_PROTOCOL) &&
           asked->max_msg_size <= length_max(caps) && asked->tx_ctx_cnt <= 1 &&
           asked->rx_ctx_cnt <= 1 && asked->auth_key_size == 0 && asked->max_order_raw_size == 0 &&
           asked->max_order_war_size == 0 && asked->max_order_waw_size == 0;
}

static bool transmit_met(const struct fi_tx_attr *asked)
{
    if (!asked)
        return true;
    return (asked->caps & ~INFO_CAPS) == 0 && (asked->op_flags & ~INFO_TX_OP_FLAGS) == 0 &&
           order_met(asked->msg_order) && asked->comp_order == FI_ORDER_NONE &&
           asked->inject_size <= INFO_INJECT_SIZE && asked->size <= INFO_QUEUE_SIZE &&
           asked->iov_limit <= INFO_IOV_LIMIT && asked->rma_iov_limit <= 1;
}

static bool receive_met(const struct fi_rx_attr *asked)
{
    if (!asked)
        return true;
    return (asked->caps & ~INFO_CAPS) == 0 && (asked->op_flags & ~INFO_RX_OP_FLAGS) == 0 &&
           order_met(asked->msg_order) && asked->comp_order == FI_ORDER_NONE &&
           asked->total_buffered_recv == 0 && asked->size <= INFO_QUEUE_SIZE &&
           asked->iov_limit <= INFO_IOV_LIMIT;
}

static bool format_met(uint32_t asked)
{
    return asked == FI_FORMAT_UNSPEC || asked == ADDRESS_FORMAT;
}

/* Returns the capabilities to be given for those that are asked for: a primary capability without a
 * direction gets all directions. */
static uint64_t caps_for(const struct fi_info *hints)
{
    uint64_t caps = hints ? hints->caps : 0;
    uint64_t directions = 0;

    if (caps == 0)
        return INFO_CAPS;
    if (caps & FI_MSG && (caps & (FI_SEND | FI_RECV)) == 0)
        directions |= FI_SEND | FI_RECV;
    if (caps & (FI_RMA | FI_ATOMIC) &&
        (caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)) == 0)
        directions |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    return caps | directions | FI_LOCAL_COMM | FI_REMOTE_COMM;
}

static bool hints_met(const struct fi_info *hints)
{
    uint64_t given = caps_for(hints);

    if (!hints)
        return true;
    return (hints->caps & ~INFO_CAPS) == 0 && format_met(hints->addr_format) &&
           fabric_met(hints->fabric_attr) && domain_met(hints->domain_attr, given) &&
           endpoint_met(hints->ep_attr, given) && transmit_met(hints->tx_attr) &&
           receive_met(hints->rx_attr);
}

static void fill_endpoint(struct fi_info *info)
{
    *info->ep_attr = (struct fi_ep_attr){
        .type = FI_EP_RDM,
        .protocol = INFO_PROTOCOL,
        .protocol_version = 1,
        .max_msg_size = length_max(info->caps),
        .tx_ctx_cnt = 1,
        .rx_ctx_cnt = 1,
    };
}

static void fill_queues(struct fi_info *info, const struct fi_info *hints)
{
    uint64_t tx_flags = hints && hints->tx_attr ? hints->tx_attr->op_flags : 0;
    uint64_t rx_flags = hints && hints->rx_attr ? hints->rx_attr->op_flags : 0;

    *info->tx_attr = (struct fi_tx_attr){
        .caps = info->caps & (INFO_CAPS_PRIMARY | INFO_CAPS_TX | FI_FENCE),
        .op_flags = tx_flags,
        .msg_order = INFO_MSG_ORDER,
        .inject_size = INFO_INJECT_SIZE,
        .size = INFO_QUEUE_SIZE,
        .iov_limit = INFO_IOV_LIMIT,
        .rma_iov_limit = 1,
    };
    *info->rx_attr = (struct fi_rx_attr){
        .caps = info->caps &
                (INFO_CAPS_PRIMARY | INFO_CAPS_RX | FI_RMA_EVENT | FI_SOURCE | FI_DIRECTED_RECV),
        .op_flags = rx_flags,
        .msg_order = INFO_MSG_ORDER,
        .size = INFO_QUEUE_SIZE,
        .iov_limit = INFO_IOV_LIMIT,
    };
}

static void fill_domain(struct fi_info *info, int mr_mode, const struct fi_info *hints)
{
    const struct fi_domain_attr *asked = hints ? hints->domain_attr : NULL;
    struct fi_domain_attr *domain = info->domain_attr;

    domain->threading =
        asked && asked->threading != FI_THREAD_UNSPEC ? asked->threading : FI_THREAD_SAFE;
    domain->control_progress = FI_PROGRESS_AUTO;
    domain->data_progress = info->caps & FI_MSG ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO;
    domain->resource_mgmt = FI_RM_ENABLED;
    domain->av_type = asked && asked->av_type != FI_AV_UNSPEC ? asked->av_type : FI_AV_TABLE;
    domain->mr_mode = mr_mode;
    domain->mr_key_size = sizeof(uint64_t);
    domain->cq_data_size = sizeof(uint64_t);
    domain->cq_cnt = INFO_QUEUE_SIZE;
    domain->ep_cnt = INFO_ENDPOINTS;
    domain->tx_ctx_cnt = INFO_ENDPOINTS;
    domain->rx_ctx_cnt = INFO_ENDPOINTS;
    domain->max_ep_tx_ctx = 1;
    domain->max_ep_rx_ctx = 1;
    domain->cntr_cnt = INFO_QUEUE_SIZE;
    domain->mr_iov_limit = 1;
    domain->mr_cnt = INFO_QUEUE_SIZE;
    domain->caps = FI_LOCAL_COMM | FI_REMOTE_COMM;
}

/* Whether the application names a peer by its node: this provider's addresses are plain bytes,
 * which the peer sends by other means. A name of the own side has no meaning, and no harm. */
static bool names_peer(const char *node, uint64_t flags)
{
    return node && (flags & FI_SOURCE) == 0;
}

static int fill_names(struct fi_info *info)
{
    info->fabric_attr->name = strdup(INFO_NAME);
    info->domain_attr->name = strdup(INFO_NAME);
    info->fabric_attr->prov_version = info_provider.version;
    return info->fabric_attr->name && info->domain_attr->name ? 0 : -FI_ENOMEM;
}

int info_get(uint32_t version, const char *node, const char *service, uint64_t flags,
             const struct fi_info *hints, struct fi_info **out)
{
    struct fi_info *info;
    int mr_mode = mr_mode_for(version, hints);
    int rc;

    if (names_peer(node, flags) || mr_mode < 0 || !hints_met(hints) || client_reachable() < 0)
        return -FI_ENODATA;
    info = fi_allocinfo();
    if (!info)
        return -FI_ENOMEM;
    info->caps = caps_for(hints);
    info->addr_format = ADDRESS_FORMAT;
    fill_endpoint(info);
    fill_queues(info, hints);
    fill_domain(info, mr_mode, hints);
    rc = fill_names(info);
    if (rc == 0 && hints && hints->dest_addr && hints->dest_addrlen == sizeof(struct address)) {
        info->dest_addr = malloc(hints->dest_addrlen);
        if (info->dest_addr) {
            memcpy(info->dest_addr, hints->dest_addr, hints->dest_addrlen);
            info->dest_addrlen = hints->dest_addrlen;
        } else
            rc = -FI_ENOMEM;
    }
    if (rc < 0) {
        fi_freeinfo(info);
        return rc;
    }
    *out = info;
    return 0;
}

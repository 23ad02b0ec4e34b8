/*
 * Owns nothing: makes atomics of libpwc out of those of libfabric. Thread: the application's; the
 * endpoint's lock keeps threads apart.
 */
#include "providers/libfabric/transfers/atomic.h"

#include <errno.h>
#include <pwc/atomic.h>
#include <rdma/fi_errno.h>
#include "providers/libfabric/objects/endpoint.h"
#include "providers/libfabric/objects/info.h"
#include "providers/libfabric/transfers/submit.h"

/* Bytes of operands that one call without results may have: they are copied, in as many parts as
 * libpwc needs. */
#define WRITE_BYTES INFO_INJECT_SIZE

enum family { PLAIN, FETCHING, COMPARING };

struct type_row {
    bool there;
    enum pwc_type type;
    size_t size;
    bool integer;
};

static const struct type_row types[FI_DATATYPE_LAST] = {
    [FI_INT8] = {true, PWC_I8, 1, true},    [FI_UINT8] = {true, PWC_U8, 1, true},
    [FI_INT16] = {true, PWC_I16, 2, true},  [FI_UINT16] = {true, PWC_U16, 2, true},
    [FI_INT32] = {true, PWC_I32, 4, true},  [FI_UINT32] = {true, PWC_U32, 4, true},
    [FI_INT64] = {true, PWC_I64, 8, true},  [FI_UINT64] = {true, PWC_U64, 8, true},
    [FI_FLOAT] = {true, PWC_F32, 4, false}, [FI_DOUBLE] = {true, PWC_F64, 8, false},
};

struct op_row {
    bool there[3]; /* by family */
    enum pwc_atomic_op op;
    bool integers_only;
};

static const struct op_row ops[FI_ATOMIC_OP_LAST] = {
    [FI_MIN] = {{true, true, false}, PWC_MIN, false},
    [FI_MAX] = {{true, true, false}, PWC_MAX, false},
    [FI_SUM] = {{true, true, false}, PWC_ADD, false},
    [FI_PROD] = {{true, true, false}, PWC_PROD, false},
    [FI_BOR] = {{true, true, false}, PWC_OR, true},
    [FI_BAND] = {{true, true, false}, PWC_AND, true},
    [FI_BXOR] = {{true, true, false}, PWC_XOR, true},
    [FI_ATOMIC_READ] = {{false, true, false}, PWC_READ, false},
    [FI_ATOMIC_WRITE] = {{true, true, false}, PWC_SET, false},
    [FI_CSWAP] = {{false, false, true}, PWC_SET, false},
    [FI_MSWAP] = {{false, false, true}, PWC_SET, true},
};

/* Returns the row of a type if the operation works on this type, else NULL. */
static const struct type_row *row_of(enum family family, enum fi_datatype type, enum fi_op op)
{
    if ((unsigned)type >= FI_DATATYPE_LAST || (unsigned)op >= FI_ATOMIC_OP_LAST ||
        !types[type].there || !ops[op].there[family])
        return NULL;
    return ops[op].integers_only && !types[type].integer ? NULL : &types[type];
}

static size_t count_max(enum family family, const struct type_row *row)
{
    return family == PLAIN ? WRITE_BYTES / row->size : PWC_FETCH_MAX;
}

static int valid(enum family family, enum fi_datatype type, enum fi_op op, size_t *count)
{
    const struct type_row *row = row_of(family, type, op);

    if (!row)
        return -FI_EOPNOTSUPP;
    if (count)
        *count = count_max(family, row);
    return 0;
}

/* One call of libfabric: its operands, and where its results go. */
struct atomic_call {
    enum family family;
    const struct fi_msg_atomic *message;
    const void *operands, *compare;
    void *result;
    size_t count;
    uint64_t flags;
    bool injected;
    const struct type_row *row; /* do_atomic finds the row */
    size_t part;                /* elements that libpwc takes together, without results */
};

static int submit_one(struct submission *s, const void *argument, size_t index)
{
    const struct atomic_call *call = argument;
    const struct type_row *row = call->row;
    enum fi_op op = call->message->op;
    pwc_cid lid = operation_id(s->operation);
    unsigned flags = submit_flags(call->flags) | PWC_NO_RCE;
    uint64_t offset = s->offset + index * row->size;
    const char *operand = (const char *)call->operands + index * row->size;
    const char *compare = (const char *)call->compare + index * row->size;
    char *result = (char *)call->result + index * row->size;

    if (call->family == FETCHING)
        return pwc_fetch_atomic(s->remote->handle, offset, ops[op].op, row->type,
                                op == FI_ATOMIC_READ ? NULL : operand, 1, result, lid, PWC_CID_NONE,
                                flags);
    if (op == FI_CSWAP)
        return pwc_compare_swap(s->remote->handle, offset, row->type, compare, operand, result, lid,
                                PWC_CID_NONE, flags);
    return pwc_masked_swap(s->remote->handle, offset, row->type, compare, operand, result, lid,
                           PWC_CID_NONE, flags);
}

/* Submits a part of a call without results. */
static int submit_part(struct submission *s, const void *argument, size_t index)
{
    const struct atomic_call *call = argument;
    size_t from = index * call->part;
    size_t count = call->count - from < call->part ? call->count - from : call->part;
    struct part_end end =
        submit_part_end(call->flags, call->message->data, index, from + count == call->count);

    return pwc_atomic(s->remote->handle, s->offset + from * call->row->size,
                      ops[call->message->op].op, call->row->type,
                      (const char *)call->operands + from * call->row->size, count,
                      operation_id(s->operation), end.rid, end.flags);
}

/* Submits the call. With results each element is submitted alone, because results may stand in any
 * memory. */
static int submit_all(struct submission *s, struct atomic_call *call)
{
    size_t packed_max = pwc_packed_max(s->endpoint->domain->client);

    if (call->family != PLAIN)
        return submit_parts(s, call->count, submit_one, call);
    call->part = packed_max / call->row->size;
    return submit_parts(s, (call->count + call->part - 1) / call->part, submit_part, call);
}

/* Submits an atomic of one part again. */
static int part_again(struct submission *s)
{
    const struct again *again = &s->operation->again;
    const struct fi_msg_atomic message = {
        .datatype = again->type, .op = again->op, .data = again->data};
    const struct atomic_call call = {
        .family = again->compare ? COMPARING
                  : again->to    ? FETCHING
                                 : PLAIN,
        .message = &message,
        .operands = again->operands,
        .compare = again->compare,
        .result = again->to,
        .count = again->count,
        .flags = again->flags,
        .row = &types[again->type],
        .part = again->count, /* the only one */
    };

    return again->to ? submit_one(s, &call, 0) : submit_part(s, &call, 0);
}

/* Notes how to submit the only part again. The operands of injected calls are gone. */
static void note_again(struct operation *operation, const struct atomic_call *call,
                       const struct fi_rma_iov *range)
{
    if (call->injected || call->flags & FI_INJECT ||
        call->count > (call->family == PLAIN ? call->part : 1))
        return;
    operation->again.submit = part_again;
    operation->again.address = range->addr;
    operation->again.length = range->len;
    operation->again.flags = call->flags;
    operation->again.data = call->message->data;
    operation->again.to = call->result;
    operation->again.operands = call->operands;
    operation->again.compare = call->compare;
    operation->again.count = call->count;
    operation->again.type = (uint8_t)call->message->datatype;
    operation->again.op = (uint8_t)call->message->op;
}

static ssize_t do_atomic(struct fid_ep *ep, struct atomic_call *call)
{
    const struct fi_msg_atomic *message = call->message;
    const struct type_row *row = row_of(call->family, message->datatype, message->op);
    struct operation_start start = {.context = message->context,
                                    .class_flags =
                                        FI_ATOMIC | (call->family == PLAIN ? FI_WRITE : FI_READ),
                                    .op_flags = call->flags,
                                    .injected = call->injected};
    struct fi_rma_iov range;
    struct submission submission;
    ssize_t rc;

    if (!row)
        return -FI_EOPNOTSUPP;
    if (message->rma_iov_count != 1 || message->rma_iov->count != call->count || call->count == 0)
        return -FI_EINVAL;
    if (call->count > count_max(call->family, row))
        return -FI_EMSGSIZE;
    call->row = row;
    range =
        (struct fi_rma_iov){message->rma_iov->addr, call->count * row->size, message->rma_iov->key};
    rc = submit_begin(&submission, endpoint_of(ep), message->addr, &range, &start);
    if (rc != SUBMIT_GOES_ON)
        return rc;
    rc = submit_all(&submission, call);
    if (rc == 0)
        note_again(submission.operation, call, &range);
    return submit_finish(&submission, (int)rc);
}

/* Whether a call with a message has one piece of memory: calls with more are refused. */
static bool one_piece(size_t count)
{
    return count == 1;
}

static ssize_t atomic_writemsg(struct fid_ep *ep, const struct fi_msg_atomic *message,
                               uint64_t flags)
{
    struct atomic_call call = {.family = PLAIN, .message = message, .flags = flags};

    if (!one_piece(message->iov_count))
        return -FI_EINVAL;
    call.operands = message->msg_iov->addr;
    call.count = message->msg_iov->count;
    return do_atomic(ep, &call);
}

static ssize_t atomic_readwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *message,
                                   struct fi_ioc *results, void **desc, size_t result_count,
                                   uint64_t flags)
{
    struct atomic_call call = {.family = FETCHING, .message = message, .flags = flags};

    if (!one_piece(result_count) ||
        (message->op != FI_ATOMIC_READ && !one_piece(message->iov_count)))
        return -FI_EINVAL;
    call.operands = message->op == FI_ATOMIC_READ ? NULL : message->msg_iov->addr;
    call.result = results->addr;
    call.count = results->count;
    return do_atomic(ep, &call);
}

static ssize_t atomic_compwritemsg(struct fid_ep *ep, const struct fi_msg_atomic *message,
                                   const struct fi_ioc *compares, void **compare_desc,
                                   size_t compare_count, struct fi_ioc *results, void **desc,
                                   size_t result_count, uint64_t flags)
{
    struct atomic_call call = {.family = COMPARING, .message = message, .flags = flags};

    if (!one_piece(result_count) || !one_piece(compare_count) || !one_piece(message->iov_count))
        return -FI_EINVAL;
    call.operands = message->msg_iov->addr;
    call.compare = compares->addr;
    call.result = results->addr;
    call.count = results->count;
    return do_atomic(ep, &call);
}

/* The message of a call whose form has none. */
#define MESSAGE_OF(count_, dest, addr_, key_, type, op_, context_)                                 \
    {                                                                                              \
        .addr = dest,                                                                              \
        .rma_iov = &(struct fi_rma_ioc){.addr = addr_, .count = count_, .key = key_},              \
        .rma_iov_count = 1, .datatype = type, .op = op_, .context = context_                       \
    }

static ssize_t atomic_write(struct fid_ep *ep, const void *buf, size_t count, void *desc,
                            fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
                            enum fi_op op, void *context)
{
    struct fi_msg_atomic message = MESSAGE_OF(count, dest, addr, key, type, op, context);
    struct atomic_call call = {.family = PLAIN,
                               .message = &message,
                               .operands = buf,
                               .count = count,
                               .flags = endpoint_of(ep)->tx_flags};

    return do_atomic(ep, &call);
}

static ssize_t atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc, size_t count,
                             fi_addr_t dest, uint64_t addr, uint64_t key, enum fi_datatype type,
                             enum fi_op op, void *context)
{
    if (!one_piece(count))
        return -FI_EINVAL;
    return atomic_write(ep, iov->addr, iov->count, NULL, dest, addr, key, type, op, context);
}

static ssize_t atomic_inject(struct fid_ep *ep, const void *buf, size_t count, fi_addr_t dest,
                             uint64_t addr, uint64_t key, enum fi_datatype type, enum fi_op op)
{
    struct fi_msg_atomic message = MESSAGE_OF(count, dest, addr, key, type, op, NULL);
    struct atomic_call call = {.family = PLAIN,
                               .message = &message,
                               .operands = buf,
                               .count = count,
                               .flags = endpoint_of(ep)->tx_flags,
                               .injected = true};

    return do_atomic(ep, &call);
}

static ssize_t atomic_readwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
                                void *result, void *result_desc, fi_addr_t dest, uint64_t addr,
                                uint64_t key, enum fi_datatype type, enum fi_op op, void *context)
{
    struct fi_msg_atomic message = MESSAGE_OF(count, dest, addr, key, type, op, context);
    struct atomic_call call = {.family = FETCHING,
                               .message = &message,
                               .operands = buf,
                               .result = result,
                               .count = count,
                               .flags = endpoint_of(ep)->tx_flags};

    return do_atomic(ep, &call);
}

static ssize_t atomic_readwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
                                 size_t count, struct fi_ioc *results, void **result_desc,
                                 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
                                 enum fi_datatype type, enum fi_op op, void *context)
{
    if (!one_piece(result_count) || (op != FI_ATOMIC_READ && !one_piece(count)))
        return -FI_EINVAL;
    return atomic_readwrite(ep, op == FI_ATOMIC_READ ? NULL : iov->addr, results->count, NULL,
                            results->addr, NULL, dest, addr, key, type, op, context);
}

static ssize_t atomic_compwrite(struct fid_ep *ep, const void *buf, size_t count, void *desc,
                                const void *compare, void *compare_desc, void *result,
                                void *result_desc, fi_addr_t dest, uint64_t addr, uint64_t key,
                                enum fi_datatype type, enum fi_op op, void *context)
{
    struct fi_msg_atomic message = MESSAGE_OF(count, dest, addr, key, type, op, context);
    struct atomic_call call = {.family = COMPARING,
                               .message = &message,
                               .operands = buf,
                               .compare = compare,
                               .result = result,
                               .count = count,
                               .flags = endpoint_of(ep)->tx_flags};

    return do_atomic(ep, &call);
}

static ssize_t atomic_compwritev(struct fid_ep *ep, const struct fi_ioc *iov, void **desc,
                                 size_t count, const struct fi_ioc *compares, void **compare_desc,
                                 size_t compare_count, struct fi_ioc *results, void **result_desc,
                                 size_t result_count, fi_addr_t dest, uint64_t addr, uint64_t key,
                                 enum fi_datatype type, enum fi_op op, void *context)
{
    if (!one_piece(count) || !one_piece(compare_count) || !one_piece(result_count))
        return -FI_EINVAL;
    return atomic_compwrite(ep, iov->addr, iov->count, NULL, compares->addr, NULL, results->addr,
                            NULL, dest, addr, key, type, op, context);
}

static int write_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
    return valid(PLAIN, type, op, count);
}

static int readwrite_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
    return valid(FETCHING, type, op, count);
}

static int compwrite_valid(struct fid_ep *ep, enum fi_datatype type, enum fi_op op, size_t *count)
{
    return valid(COMPARING, type, op, count);
}

int atomic_query(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
                 struct fi_atomic_attr *attr, uint64_t flags)
{
    enum family family = flags & FI_COMPARE_ATOMIC ? COMPARING
                         : flags & FI_FETCH_ATOMIC ? FETCHING
                                                   : PLAIN;
    int rc = valid(family, type, op, attr ? &attr->count : NULL);

    if (rc == 0 && attr)
        attr->size = types[type].size;
    return rc;
}

struct fi_ops_atomic atomic_ops = {
    .size = sizeof(struct fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = atomic_writemsg,
    .inject = atomic_inject,
    .readwrite = atomic_readwrite,
    .readwritev = atomic_readwritev,
    .readwritemsg = atomic_readwritemsg,
    .compwrite = atomic_compwrite,
    .compwritev = atomic_compwritev,
    .compwritemsg = atomic_compwritemsg,
    .writevalid = write_valid,
    .readwritevalid = readwrite_valid,
    .compwritevalid = compwrite_valid,
};

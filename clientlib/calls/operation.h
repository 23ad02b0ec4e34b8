/*
 * One operation before its submission: the common part of puts, gets and active messages.
 *
 * Thread: the one that owns the context. No system call unless the daemon sleeps or waits for this
 * processor (give_way.h), no allocation, no lock (except a copy of the span table when a region was
 * added or removed).
 */
#ifndef PWC_CLIENTLIB_OPERATION_H
#define PWC_CLIENTLIB_OPERATION_H

#include <errno.h>
#include <stdint.h>
#include "clientlib/attach/context.h"

struct operation {
    struct channel_outbox *outbox;
    struct submit_record record;
    const void *lid; /* the id's bytes, if lid_len is not 0 */
    const void *rid; /* the id's bytes, if rid_len is not 0; NULL for a message, which has a
                        block */
    const struct message *block; /* head of a message's block */
    const uint64_t *arguments;   /* as many as the block says */
    const void *payload;         /* of a packed put or a Medium */
};

/* Checks the local id and the flags: 0, -EINVAL, -EOWNERDEAD. */
static inline int operation_check(const struct pwc_ctx *ctx, const pwc_cid *lid, unsigned flags,
                                  unsigned flags_allowed)
{
    if (client_is_forked(ctx->client))
        return -EOWNERDEAD;
    if ((flags & ~flags_allowed) || lid->size > PWC_CID_MAX)
        return -EINVAL;
    return 0;
}

/* The id of a notification is by value, and its event cannot be switched off. */
static inline bool operation_rid_valid(const pwc_cid *rid, unsigned flags)
{
    return rid->size <= PWC_CID_MAX &&
           (!(flags & PWC_NOTIFY) || (rid->size == 0 && !(flags & PWC_NO_RCE)));
}

/* The plain request of this context that a local id names, or NULL. */
static inline struct pwc_request *operation_request(struct pwc_ctx *ctx, const pwc_cid *lid)
{
    struct pwc_request *r = (struct pwc_request *)(uintptr_t)lid->data;

    return lid->size == PWC_CID_REQUEST && r && request_head(r)->pool == &ctx->channel.requests &&
                   r->kind == REQUEST_PLAIN
               ? r
               : NULL;
}

/* The flags of an operation through the daemon that has a request, which must always report its
 * end. */
static inline unsigned operation_request_flags(unsigned flags)
{
    return (flags & ~(unsigned)PWC_NO_LCE) | SUBMIT_SLOT;
}

/* Checks the remote range, and the right to it: 0, -EMSGSIZE, -ERANGE, -EKEYREJECTED. */
static inline int operation_check_range(const struct pwc_ctx *ctx, const struct pwc_remote *remote,
                                        uint64_t off, uint64_t len, unsigned right)
{
    if (len > ctx->client->message_max)
        return -EMSGSIZE;
    if (off > remote->length || len > remote->length - off)
        return -ERANGE;
    return right & ~remote->rights ? -EKEYREJECTED : 0;
}

static inline void operation_set_lid(struct operation *op, const pwc_cid *lid)
{
    op->record.lid = lid->size == 0 ? lid->value : 0;
    op->record.lid_len = (uint16_t)lid->size;
    op->lid = lid->data;
}

static inline void operation_set_rid(struct operation *op, const pwc_cid *rid)
{
    op->record.rid = rid->size == 0 ? rid->value : 0;
    op->record.rid_len = (uint16_t)rid->size;
    op->rid = rid->data;
}

/* Checks that a whole range lies in a region of this client: 0, -EFAULT, -ENOMEM. */
int operation_check_memory(struct pwc_ctx *ctx, const void *start, size_t length);
/* Submits an operation as it is: 0, or as channel_submit. */
int operation_submit(struct pwc_ctx *ctx, const struct operation *op);
/* Publishes the submission that was begun in this ring. */
void operation_commit(struct pwc_ctx *ctx, struct channel_outbox *outbox);
/*
 * Submits an operation with record.length bytes from `src`: packed after the record up to
 * packed_max, else from a region of ours, else through staging (series.h). A reply whose source is
 * in no region fails: -EFAULT; or -EMSGSIZE: its payload may be packed, but the ring is too small.
 */
int operation_submit_payload(struct pwc_ctx *ctx, struct operation *op, const void *src);

#endif

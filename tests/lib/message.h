/*
 * Active messages of a kind that a test chooses at run time. Thread: any.
 */
#ifndef PWC_TESTS_LIB_MESSAGE_H
#define PWC_TESTS_LIB_MESSAGE_H

#include "pwc/am.h"

/* Sends a request. A Short has no payload: a given one is left out. */
static inline int message_request(int kind, pwc_remote *to, uint64_t offset, struct pwc_am_send m)
{
    if (kind == PWC_AM_MEDIUM)
        return pwc_am_medium(to, &m);
    if (kind == PWC_AM_LONG)
        return pwc_am_long(to, offset, &m);
    m.src = NULL;
    m.len = 0;
    return pwc_am_short(to, &m);
}

static inline int message_reply(int kind, pwc_ctx *ctx, uint64_t token, pwc_remote *to,
                                uint64_t offset, struct pwc_am_send m)
{
    if (kind == PWC_AM_MEDIUM)
        return pwc_am_reply_medium(ctx, token, &m);
    if (kind == PWC_AM_LONG)
        return pwc_am_reply_long(ctx, token, to, offset, &m);
    m.src = NULL;
    m.len = 0;
    return pwc_am_reply_short(ctx, token, &m);
}

/* Returns a message with one argument, which lives as long as `value` does, and no local event. */
static inline struct pwc_am_send message_of(unsigned index, const uint64_t *value)
{
    return (struct pwc_am_send){
        .index = index, .arguments = value, .count = 1, .flags = PWC_NO_LCE};
}

#endif

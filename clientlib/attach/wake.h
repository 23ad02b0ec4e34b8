/*
 * Wake-ups that a context asks for: the daemon's, by its eventfd, and those of neighbours, by a
 * SUBMIT_WAKE that the daemon carries out. A wake-up of a neighbour that cannot be submitted now is
 * due (neighbours.wakes_due) until wake_retry has submitted it.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_WAKE_H
#define PWC_CLIENTLIB_WAKE_H

struct direct_pair;
struct pwc_ctx;

/* The daemon sleeps, and a submission for it is published. */
void wake_daemon(struct pwc_ctx *ctx);
/* The target of a pair sleeps, and a record for it is shown. */
void wake_target(struct pwc_ctx *ctx, struct direct_pair *pair);
/* Asks for all wake-ups that are due. */
void wake_retry(struct pwc_ctx *ctx);

#endif

/*
 * Wake-ups by a context: of the daemon, by its eventfd, and of neighbours, by a SUBMIT_WAKE that
 * the daemon carries out. A neighbour's wake-up that cannot be submitted now is due
 * (neighbours.wakes_due) until wake_retry has submitted it.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_WAKE_H
#define PWC_CLIENTLIB_WAKE_H

struct direct_pair;
struct pwc_ctx;

/* Called when the daemon sleeps and a submission is published. */
void wake_daemon(struct pwc_ctx *ctx);
/* Called when the target of a pair sleeps and a record for it is shown. */
void wake_target(struct pwc_ctx *ctx, struct direct_pair *pair);
/* Tries again to submit all wake-ups that are due. */
void wake_retry(struct pwc_ctx *ctx);

#endif

/*
 * The descriptor of pwc_fd: an epoll descriptor over the wake socket and, while binds are under way
 * (pwc_bind_start), over the two sources of their answers: the socket to the daemon, and the bell
 * of the context's mailbox, for answers that another thread has read.
 *
 * Thread: the one that owns the context.
 */
#ifndef PWC_CLIENTLIB_DESCRIPTOR_H
#define PWC_CLIENTLIB_DESCRIPTOR_H

struct pwc_ctx;

/* The descriptor, made at the first call; -EMFILE, -ENFILE, -ENOMEM, -ENOSPC. */
int descriptor_of(struct pwc_ctx *ctx);
/* Called when a bind begins, and when a probe arms the descriptor with no bind under way. Without a
 * descriptor these do nothing. 0, or an error as above. */
int descriptor_watch_answers(struct pwc_ctx *ctx);
void descriptor_forget_answers(struct pwc_ctx *ctx);

#endif

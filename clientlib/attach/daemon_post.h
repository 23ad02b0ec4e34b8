/*
 * Posts: requests to the daemon whose callers do not wait. Any number may be under way at once.
 *
 *     daemon_post --> held --> sent --> answered: in the mailbox --> daemon_collect
 *                      ^         |
 *                      +---------+ the daemon was started anew, or has no room for it now
 *
 * A link has some posts sent at a time, so that the daemon keeps reading, and the client's other
 * requests find room there; it holds the others back, and sends them, in order, when answers come.
 * Whichever thread reads the socket puts an answer into the mailbox of its context and rings the
 * bell there. A thread that sleeps polls the socket, too, since nobody else may read.
 *
 * Threads: an mailbox, and the posts that go there, are one thread's. The link's lock guards what
 * others touch of them.
 */
#ifndef PWC_CLIENTLIB_DAEMON_POST_H
#define PWC_CLIENTLIB_DAEMON_POST_H

#include "clientlib/attach/daemon_link.h"

#define DAEMON_POSTED_MAX                                                                          \
    128u /* of a link, sent and not answered; the daemon takes twice as many */

/* The answers for one context. */
struct daemon_mailbox {
    struct daemon_link *link;
    struct daemon_posts answered;
    int bell; /* eventfd; readable while `answered` has any that daemon_collect has not seen */
    bool rung;
};

enum daemon_post_state {
    POST_AWAY = 0, /* not posted, or collected, or withdrawn */
    POST_HELD,
    POST_SENT,
    POST_ANSWERED,
};

/* Its owner's, with the request, from daemon_post to its end. Its owner sets `call.expected`,
 * `call.accept` and `call.context`; at the end `call.result` is as of daemon_call. */
struct daemon_post {
    struct daemon_call call;
    Pwc__ClientRequest *request;
    struct daemon_mailbox *mailbox;
    struct daemon_post *next, *previous;
    enum daemon_post_state state;
};

/* 0; or -EMFILE, -ENFILE or -ENOMEM, and the mailbox is as before: zeroed. */
int daemon_mailbox_open(struct daemon_mailbox *mailbox, struct daemon_link *link);
/* Nothing is under way for it, or the link is closed. */
void daemon_mailbox_close(struct daemon_mailbox *mailbox);

/* Sends the request soon; never waits for the daemon. 0, or why the connection is over. A post that
 * the daemon, started anew, has not kept (-ECONNABORTED), or has no room for (-ENOBUFS) while
 * others are under way, is sent again. */
int daemon_post(struct daemon_mailbox *mailbox, struct daemon_post *post);
/* Takes what has come, without waiting: a post that has ended, or NULL. */
struct daemon_post *daemon_collect(struct daemon_mailbox *mailbox);
/* Gives a post up: true; what the daemon makes for it is given back when the answer comes
 * (late.h). False: the post has been answered, and daemon_collect still brings it. */
bool daemon_withdraw(struct daemon_post *post);

/* ---- for daemon_link.c, with the lock held --------------------------------------------------- */

/* The call of a post is done. */
void daemon_post_answered(struct daemon_link *link, struct daemon_post *post);
/* The connection is over: ends the posts that were never sent. */
void daemon_posts_over(struct daemon_link *link);

#endif

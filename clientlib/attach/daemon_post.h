/*
 * Posts: requests to the daemon whose callers do not wait. Any number may be under way at once.
 *
 *     daemon_post --> held --> sent --> answered: in the mailbox --> daemon_collect
 *                      ^         |
 *                      +---------+ the daemon was started anew, or has no room for it now
 *
 * A link has a bounded number of posts sent at a time, so that the daemon keeps reading and has
 * room for the client's other requests. The link holds further posts back, and sends them in order
 * when answers arrive. The thread that reads the socket puts each answer into the mailbox of its
 * context and rings the bell there. A thread that sleeps polls the socket, too, because no other
 * thread may be reading.
 *
 * Threads: a mailbox and its posts belong to one thread. The link's lock guards the members that
 * other threads use.
 */
#ifndef PWC_CLIENTLIB_DAEMON_POST_H
#define PWC_CLIENTLIB_DAEMON_POST_H

#include "clientlib/attach/daemon_link.h"

#define DAEMON_POSTED_MAX                                                                          \
    128u /* posts of a link, sent and not answered; the daemon accepts twice as many */

/* The answers for one context. */
struct daemon_mailbox {
    struct daemon_link *link;
    struct daemon_posts answered;
    int bell; /* eventfd; readable from an answer on, up to daemon_mailbox_silence */
    bool rung;
};

enum daemon_post_state {
    POST_AWAY = 0, /* not posted yet, or collected, or withdrawn */
    POST_HELD,
    POST_SENT,
    POST_ANSWERED,
};

/* The owner keeps the post and its request from daemon_post until the post's end. The owner sets
 * `call.expected`, `call.accept` and `call.context`; at the end `call.result` is a result of
 * daemon_call. */
struct daemon_post {
    struct daemon_call call;
    Pwc__ClientRequest *request;
    struct daemon_mailbox *mailbox;
    struct daemon_post *next, *previous;
    enum daemon_post_state state;
};

/* 0; or -EMFILE, -ENFILE or -ENOMEM, and the mailbox stays zeroed. */
int daemon_mailbox_open(struct daemon_mailbox *mailbox, struct daemon_link *link);
/* No post of the mailbox may be under way, unless the link is closed. */
void daemon_mailbox_close(struct daemon_mailbox *mailbox);

/* Sends the request soon; never waits for the daemon. 0, or why the connection is over. A post that
 * a restarted daemon has lost (-ECONNABORTED), or for which the daemon has no room (-ENOBUFS) while
 * others are under way, is sent again. */
int daemon_post(struct daemon_mailbox *mailbox, struct daemon_post *post);
/* Takes a post that has ended, or NULL, without waiting. */
struct daemon_post *daemon_collect(struct daemon_mailbox *mailbox);
/* Silences the bell, unless daemon_collect has left posts. */
void daemon_mailbox_silence(struct daemon_mailbox *mailbox);
/* Gives a post up. True: the daemon had not answered; if a late answer brings a remote or another
 * thing, the library gives that back (late.h). False: the post has ended already, and
 * daemon_collect will return it. */
bool daemon_withdraw(struct daemon_post *post);

/* ---- for daemon_link.c, with the lock held --------------------------------------------------- */

/* Called when the call of a post is done. */
void daemon_post_answered(struct daemon_link *link, struct daemon_post *post);
/* Called when the connection is over: ends the posts that were never sent. */
void daemon_posts_over(struct daemon_link *link);

#endif

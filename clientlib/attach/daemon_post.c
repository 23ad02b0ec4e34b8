/*
 * Owns the posts that a link holds back, and the answered posts (daemon_post.h). Threads: any, with
 * the link's lock; a mailbox belongs to one thread.
 */
#include "clientlib/attach/daemon_post.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void append(struct daemon_posts *list, struct daemon_post *post)
{
    post->next = NULL;
    post->previous = list->last;
    *(list->last ? &list->last->next : &list->first) = post;
    list->last = post;
}

static void prepend(struct daemon_posts *list, struct daemon_post *post)
{
    post->next = list->first;
    post->previous = NULL;
    *(list->first ? &list->first->previous : &list->last) = post;
    list->first = post;
}

static void take_out(struct daemon_posts *list, struct daemon_post *post)
{
    *(post->previous ? &post->previous->next : &list->first) = post->next;
    *(post->next ? &post->next->previous : &list->last) = post->previous;
    post->state = POST_AWAY;
}

int daemon_mailbox_open(struct daemon_mailbox *mailbox, struct daemon_link *link)
{
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (bell < 0)
        return -errno;
    *mailbox = (struct daemon_mailbox){.link = link, .bell = bell};
    return 0;
}

void daemon_mailbox_close(struct daemon_mailbox *mailbox)
{
    if (mailbox->link)
        close(mailbox->bell);
    *mailbox = (struct daemon_mailbox){0};
}

static void deliver(struct daemon_post *post)
{
    struct daemon_mailbox *mailbox = post->mailbox;

    post->state = POST_ANSWERED;
    append(&mailbox->answered, post);
    if (!mailbox->rung)
        mailbox->rung = eventfd_write(mailbox->bell, 1) == 0;
}

/* Sends held posts, as many as may be under way. A post for which the socket has no room stays
 * held: the daemon then has requests to answer, and after each answer this function is called
 * again. */
static void send_held(struct daemon_link *link)
{
    while (link->held.first && link->posted < link->posted_max && link->over == 0) {
        struct daemon_post *post = link->held.first;
        struct daemon_call *call = &post->call;
        int rc = daemon_link_send(link, post->request, 0);

        if (rc == -ETIMEDOUT)
            return;
        take_out(&link->held, post);
        if (rc < 0) {
            call->result = rc;
            deliver(post);
            continue;
        }
        post->state = POST_SENT;
        call->id = post->request->id;
        call->done = false;
        call->next = link->calls;
        link->calls = call;
        link->posted++;
    }
}

/* A post has ended: it is no longer under way. */
static void leave(struct daemon_link *link, struct daemon_post *post)
{
    daemon_link_forget(link, &post->call);
    post->state = POST_AWAY;
    if (--link->posted == 0)
        link->posted_max = DAEMON_POSTED_MAX;
}

/* Whether to send the post again. If the daemon has no room, posted_max is lowered until no post is
 * under way. */
static bool is_to_be_sent_again(struct daemon_link *link, int result)
{
    if (link->over != 0)
        return false;
    if (result == -ENOBUFS && link->posted > 0) {
        link->posted_max = link->posted;
        return true;
    }
    return result == -ECONNABORTED;
}

void daemon_post_answered(struct daemon_link *link, struct daemon_post *post)
{
    leave(link, post);
    if (is_to_be_sent_again(link, post->call.result)) {
        post->state = POST_HELD;
        prepend(&link->held, post);
    } else {
        deliver(post);
    }
    send_held(link);
}

void daemon_posts_over(struct daemon_link *link)
{
    while (link->held.first) {
        struct daemon_post *post = link->held.first;

        take_out(&link->held, post);
        post->call.result = link->over;
        deliver(post);
    }
}

int daemon_post(struct daemon_mailbox *mailbox, struct daemon_post *post)
{
    struct daemon_link *link = mailbox->link;
    int rc;

    pthread_mutex_lock(&link->lock);
    rc = link->over;
    if (rc == 0) {
        post->mailbox = mailbox;
        post->call.post = post;
        post->state = POST_HELD;
        append(&link->held, post);
        send_held(link);
    }
    pthread_mutex_unlock(&link->lock);
    return rc;
}

struct daemon_post *daemon_collect(struct daemon_mailbox *mailbox)
{
    struct daemon_link *link = mailbox->link;
    struct daemon_post *post;

    pthread_mutex_lock(&link->lock);
    if (!mailbox->answered.first) {
        send_held(link);
        while (link->over == 0 && daemon_link_read(link, 0) == 0)
            continue;
    }
    post = mailbox->answered.first;
    if (post)
        take_out(&mailbox->answered, post);
    pthread_mutex_unlock(&link->lock);
    return post;
}

void daemon_mailbox_silence(struct daemon_mailbox *mailbox)
{
    struct daemon_link *link = mailbox->link;
    eventfd_t count;

    pthread_mutex_lock(&link->lock);
    if (mailbox->rung && !mailbox->answered.first) {
        (void)eventfd_read(mailbox->bell, &count);
        mailbox->rung = false;
    }
    pthread_mutex_unlock(&link->lock);
}

bool daemon_withdraw(struct daemon_post *post)
{
    struct daemon_link *link = post->mailbox->link;
    bool given_up = true;

    pthread_mutex_lock(&link->lock);
    if (post->state == POST_HELD) {
        take_out(&link->held, post);
    } else if (post->state == POST_SENT) {
        late_note(&link->late, post->request);
        leave(link, post);
        send_held(link);
    } else {
        given_up = false;
    }
    pthread_mutex_unlock(&link->lock);
    return given_up;
}

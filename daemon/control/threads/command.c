/* Owns mailboxes (command.h). Thread: any, under the mailbox's lock. */
#include "daemon/control/threads/command.h"

#include <stddef.h>

void mailbox_init(struct mailbox *m)
{
    pthread_mutex_init(&m->lock, NULL);
    m->first = m->last = NULL;
}

bool mailbox_put(struct mailbox *m, struct command *command)
{
    bool empty;

    command->next = NULL;
    pthread_mutex_lock(&m->lock);
    empty = m->first == NULL;
    if (empty)
        m->first = command;
    else
        m->last->next = command;
    m->last = command;
    pthread_mutex_unlock(&m->lock);
    return empty;
}

struct command *mailbox_take(struct mailbox *m)
{
    struct command *list;

    pthread_mutex_lock(&m->lock);
    list = m->first;
    m->first = m->last = NULL;
    pthread_mutex_unlock(&m->lock);
    return list;
}

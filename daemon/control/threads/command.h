/*
 * Commands between the control thread and the progress thread.
 *
 * A command is a small struct that its maker embeds: `run` is called on the progress thread with
 * the engine, then `done` on the control thread. Each direction has a mailbox: a list under a
 * mutex, off the data path, with a descriptor or handle that wakes the reader.
 */
#ifndef PWC_CONTROL_COMMAND_H
#define PWC_CONTROL_COMMAND_H

#include <pthread.h>
#include <stdbool.h>

struct engine;

/* The maker owns a command, and lends it from progress_post until `done` is called. */
struct command {
    struct command *next;
    void (*run)(struct command *command, struct engine *engine); /* progress thread */
    void (*done)(struct command *command);                       /* control thread */
};

/* Any thread puts commands in; one thread takes them out. */
struct mailbox {
    pthread_mutex_t lock;
    struct command *first;
    struct command *last;
};

void mailbox_init(struct mailbox *m);
/* True: the mailbox was empty, and the caller wakes the reader. */
bool mailbox_put(struct mailbox *m, struct command *command);
/* Takes the whole list. */
struct command *mailbox_take(struct mailbox *m);

#endif

/*
 * Makes a view of the daemon as one JSON document with a bounded number of rows: the answer to
 * Inspect.
 *
 * The control thread reads everything without the progress threads (engine.h, "looking inside").
 * Root, our own user and members of an inspect group see all rows; other users see the rows of
 * their own clients, and sums.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_DOCUMENT_H
#define PWC_CONTROL_DOCUMENT_H

#include <stdbool.h>
#include <sys/types.h>
#include "daemon/control/control.h"

struct topic;

/* A view, and the user who asks for it. Equal questions share one answer. */
struct question {
    const struct topic *topic;
    uid_t uid;
    bool sees_all;
    bool echoed[NODES_ENGINES_MAX]; /* by engine: its progress thread is not stuck */
};

/* Finds a topic; NULL: none has this name. */
const struct topic *topic_find(const char *name);
const char *topic_name(const struct topic *topic);
/* Makes the answer, which the caller frees; NULL without memory. */
char *document_text(struct control *control, const struct question *question);

#endif

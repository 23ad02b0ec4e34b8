/*
 * A view of the daemon as one JSON document, bounded in its rows: what Inspect answers.
 *
 * The control thread reads all of it on its own (engine.h, "looking inside"); progress threads do
 * nothing for it. Root, our own user and members of an inspect group see all; other users see the
 * rows of their own clients, and sums.
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
    bool echoed[NODES_ENGINES_MAX]; /* by engine: its thread goes round */
};

/* NULL: no topic has this name. */
const struct topic *topic_find(const char *name);
const char *topic_name(const struct topic *topic);
/* The answer, for the caller to free; NULL without memory. */
char *document_text(struct control *control, const struct question *question);

#endif

/*
 * One look at the daemon without waiting: sends all questions on one connection, and reads the
 * answers as they arrive. Each look opens its own connection, so a daemon that was restarted needs
 * no special care.
 */
#ifndef PWCCTL_TOP_SOURCE_H
#define PWCCTL_TOP_SOURCE_H

#include <stdint.h>
#include "tools/pwcctl/top/model.h"

enum { TOP_QUESTIONS = 7, TOP_NEEDED = 5 /* older daemons refuse later questions */ };

struct top_source {
    const char *socket;
    int fd;         /* -1: no look is under way */
    uint8_t *bytes; /* the part of an answer that has arrived */
    size_t size, room;
    json_t *documents[TOP_QUESTIONS];
    int answers;
    char why[TOP_TEXT_MAX]; /* why the last look failed */
};

void top_source_init(struct top_source *source, const char *socket);
/* Sends the questions. 0, or a negative errno with an explanation. */
int top_source_begin(struct top_source *source);
/* Call this when the descriptor is readable. 1: the look is complete; 0: more is to come; or a
 * negative errno. */
int top_source_read(struct top_source *source, struct top_look *out);
/* Gives the look up. */
void top_source_end(struct top_source *source, const char *why);
void top_source_free(struct top_source *source);

#endif

/* Lines of children on their way to our stdout or stderr, each with a label before it. */
#ifndef PWCRUN_OUTPUT_H
#define PWCRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_LINE_MAX 8192

struct output {
    int from; /* non-blocking read end; -1: closed */
    int to;
    char label[24];
    bool ends_unread; /* closes where nobody reads `to` any more, so the child gets SIGPIPE */
    bool hold; /* lines are kept in `held`, and never shown unless output_release is called */
    char *held;
    size_t held_size, held_room;
    size_t used;
    char line[OUTPUT_LINE_MAX]; /* the part of the next line that has arrived */
};

/* Makes the pipe; its other end, for the child, is stored in *child_end. */
int output_open(struct output *output, int to, const char *label, bool ends_unread, int *child_end);
/* Passes on what one read gives, so that a child that prints without end does not keep pwcrun from
 * its signals and deadlines. Closes at the end of the stream, after the last line. */
void output_forward(struct output *output);
/* Passes on all that had arrived when the call began: as much as the pipe can hold. */
void output_drain(struct output *output);
/* From now on keeps output instead of passing it on. */
void output_hold(struct output *output);
/* Shows what has been kept. */
void output_release(struct output *output);
/* Drains and closes, whether or not somebody still holds the other end. */
void output_close(struct output *output);

#endif

/*
 * The log: one line a message to a descriptor, by level; lines that strangers cause are limited.
 *
 * Thread: log_line on any thread (one write a line); log_hostile on the control thread only.
 */
#ifndef PWC_CONTROL_LOG_H
#define PWC_CONTROL_LOG_H

#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR = 0,
    LOG_LEVEL_WARNING = 1,
    LOG_LEVEL_INFO = 2,
    LOG_LEVEL_DEBUG = 3,
};

struct log {
    int descriptor;
    enum log_level level;
    uint64_t window_ns;  /* start of the second that is being counted */
    uint32_t in_window;  /* hostile lines in it */
    uint32_t suppressed; /* since the last one that was written */
};

void log_open(struct log *log, int descriptor, enum log_level level);
__attribute__((format(printf, 3, 4))) void log_line(const struct log *log, enum log_level level,
                                                    const char *format, ...);
/* As log_line at warning, at most a few lines a second: the rest is counted. */
__attribute__((format(printf, 2, 3))) void log_hostile(struct log *log, const char *format, ...);

/* Makes text that came from elsewhere fit for a line: what is not printable ASCII becomes '?'. */
void log_clean(char *text);

#endif

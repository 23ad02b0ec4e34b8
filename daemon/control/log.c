/* Owns how lines are written (log.h). */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "clock.h"

enum { LINE_MAX_BYTES = 1024, HOSTILE_PER_SECOND = 5 };

static const char *const level_names[] = {"error", "warning", "info", "debug"};

void log_open(struct log *log, int descriptor, enum log_level level)
{
    *log = (struct log){.descriptor = descriptor, .level = level};
}

void log_clean(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void write_line(const struct log *log, enum log_level level, const char *format,
                       va_list arguments)
{
    char line[LINE_MAX_BYTES];
    int used = snprintf(line, sizeof(line), "pwcd: %s: ", level_names[level]);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments);
    size_t length;

    if (more < 0)
        return;
    length = strlen(line);
    line[length++] = '\n';
    (void)!write(log->descriptor, line, length);
}

void log_line(const struct log *log, enum log_level level, const char *format, ...)
{
    va_list arguments;

    if (level > log->level)
        return;
    va_start(arguments, format);
    write_line(log, level, format, arguments);
    va_end(arguments);
}

void log_hostile(struct log *log, const char *format, ...)
{
    uint64_t now = clock_ns();
    va_list arguments;

    if (log->level < LOG_LEVEL_WARNING)
        return;
    if (now - log->window_ns > UINT64_C(1000000000)) {
        log->window_ns = now;
        log->in_window = 0;
    }
    if (log->in_window >= HOSTILE_PER_SECOND) {
        log->suppressed++;
        return;
    }
    log->in_window++;
    if (log->suppressed > 0) {
        log_line(log, LOG_LEVEL_WARNING, "%u more lines like the next were not written",
                 log->suppressed);
        log->suppressed = 0;
    }
    va_start(arguments, format);
    write_line(log, LOG_LEVEL_WARNING, format, arguments);
    va_end(arguments);
}

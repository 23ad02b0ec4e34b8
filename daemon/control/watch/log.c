/* Writes the log's lines (log.h). Thread: any, as log.h says. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "daemon/control/watch/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <syslog.h>
#include <systemd/sd-journal.h>
#include <unistd.h>
#include "shm_ring/clock.h"

enum {
    LINE_MAX_BYTES = 1024,
    TIMES_BYTES = 64,                   /* room for the text that says how often a line came */
    FORGOTTEN_S = 2 * LOG_PAUSE_MOST_S, /* after this time without it, a line counts as new */
};

#define SECOND_NS UINT64_C(1000000000)

static const char *const level_names[] = {"error", "warning", "info", "debug"};

/* Whether the descriptor leads to the journal. JOURNAL_STREAM names the journal's file, which our
 * standard error may not be any more. */
static bool leads_to_journal(int descriptor)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uint64_t device, inode;
    struct stat st;

    return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &device, &inode) == 2 &&
           fstat(descriptor, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

void log_open(struct log *log, int descriptor, enum log_level level)
{
    *log = (struct log){
        .descriptor = descriptor, .journal = leads_to_journal(descriptor), .level = level};
}

void log_clean(char *text)
{
    for (; *text; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

/* ---- fields of the journal ------------------------------------------------------------------- */

struct log_subject log_nobody(void)
{
    return (struct log_subject){.peer = -1, .client = -1, .rank = -1, .pid = -1, .user = -1};
}

struct log_subject log_node(uint32_t node)
{
    struct log_subject subject = log_nobody();

    subject.peer = node;
    return subject;
}

size_t log_fields(enum log_level level, const struct log_subject *about,
                  char fields[LOG_FIELDS_MAX][LOG_FIELD_BYTES])
{
    static const int priorities[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};
    struct log_subject subject = about ? *about : log_nobody();
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"PWCD_PEER", subject.peer},
                   {"PWCD_CLIENT", subject.client},
                   {"PWCD_RANK", subject.rank},
                   {"PWCD_PID", subject.pid},
                   {"PWCD_UID", subject.user}};
    size_t count = 0;

    snprintf(fields[count++], LOG_FIELD_BYTES, "PRIORITY=%d", priorities[level]);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i].value >= 0)
            snprintf(fields[count++], LOG_FIELD_BYTES, "%s=%" PRId64, numbers[i].name,
                     numbers[i].value);
    if (subject.job && *subject.job)
        snprintf(fields[count++], LOG_FIELD_BYTES, "PWCD_JOB=%s", subject.job);
    return count;
}

/* ---- writing --------------------------------------------------------------------------------- */

static bool write_to_journal(enum log_level level, const struct log_subject *about,
                             const char *format, va_list arguments)
{
    char fields[LOG_FIELDS_MAX][LOG_FIELD_BYTES], message[LINE_MAX_BYTES] = "MESSAGE=";
    struct iovec parts[LOG_FIELDS_MAX + 1];
    size_t count = log_fields(level, about, fields), used = strlen(message);

    vsnprintf(message + used, sizeof(message) - used, format, arguments);
    parts[0] = (struct iovec){message, strlen(message)};
    for (size_t i = 0; i < count; i++)
        parts[i + 1] = (struct iovec){fields[i], strlen(fields[i])};
    return sd_journal_sendv(parts, (int)count + 1) == 0;
}

/* Writes one line, which starts with `begin`, to the descriptor. */
static void write_line(const struct log *log, const char *begin, const char *format,
                       va_list arguments)
{
    char line[LINE_MAX_BYTES];
    int used = snprintf(line, sizeof(line), "%s", begin);
    int more = vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, arguments);
    size_t length;

    if (more < 0)
        return;
    length = strlen(line);
    line[length++] = '\n';
    (void)!write(log->descriptor, line, length);
}

/*
 * An error without a subject often is the last line of its process. For a message with fields, the
 * journal looks up the unit by the process, which may be gone by then, and `journalctl -u` would
 * not show the message. So such an error is written to standard error, a stream that belongs to the
 * unit; there a number in front is the level.
 */
static void write_somewhere(const struct log *log, enum log_level level,
                            const struct log_subject *about, const char *format, va_list arguments)
{
    bool stream = log->journal && level == LOG_LEVEL_ERROR && !about;
    char begin[32];
    va_list again;

    if (stream)
        snprintf(begin, sizeof(begin), "<%d>", LOG_ERR);
    else
        snprintf(begin, sizeof(begin), "pwcd: %s: ", level_names[level]);
    va_copy(again, arguments);
    if (!log->journal || stream || !write_to_journal(level, about, format, again))
        write_line(log, begin, format, arguments);
    va_end(again);
}

void log_line(const struct log *log, enum log_level level, const char *format, ...)
{
    va_list arguments;

    if (level > log->level)
        return;
    va_start(arguments, format);
    write_somewhere(log, level, NULL, format, arguments);
    va_end(arguments);
}

void log_start(const struct log *log, enum log_level level, const char *format, ...)
{
    va_list arguments;

    if (level > log->level)
        return;
    va_start(arguments, format);
    write_somewhere(log, LOG_LEVEL_INFO, NULL, format, arguments);
    va_end(arguments);
}

void log_about(const struct log *log, enum log_level level, const struct log_subject *about,
               const char *format, ...)
{
    va_list arguments;

    if (level > log->level)
        return;
    va_start(arguments, format);
    write_somewhere(log, level, about, format, arguments);
    va_end(arguments);
}

static enum log_level level_of(enum log_source source)
{
    return source == LOG_SOURCE_LEFT ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING;
}

static void write_left_out(const struct log *log, enum log_source source, struct log_limit *limit)
{
    static const char *const sources[LOG_SOURCES] = {[LOG_SOURCE_CONNECTION] = "connections",
                                                     [LOG_SOURCE_CLIENT] = "clients",
                                                     [LOG_SOURCE_NODE] = "other nodes",
                                                     [LOG_SOURCE_LEFT] =
                                                         "connections that ended unproven"};

    if (limit->left_out > 0)
        log_line(log, level_of(source), "%" PRIu32 " more lines about %s were left out",
                 limit->left_out, sources[source]);
    limit->left_out = 0;
}

/* The hash FNV-1a, but never 0. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    return hash | 1;
}

/* Finds the entry of a line: the entry that it has already, or a new one, in place of the line that
 * has not come for the longest time. */
static struct log_repeat *repeat_of(struct log *log, uint64_t hash, uint64_t now)
{
    struct log_repeat *oldest = log->repeats;

    for (struct log_repeat *r = log->repeats; r < log->repeats + LOG_REPEATS; r++) {
        if (r->hash == hash && now - r->last_ns < FORGOTTEN_S * SECOND_NS)
            return r;
        if (r->last_ns < oldest->last_ns)
            oldest = r;
    }
    *oldest = (struct log_repeat){.hash = hash, .first_ns = now};
    return oldest;
}

/* Counts a line that comes. False: it was written so short a time ago that it is not written
 * now. */
static bool repeat_comes(struct log_repeat *r, uint64_t now)
{
    r->last_ns = now;
    r->count++;
    return now - r->written_ns >= r->pause_s * SECOND_NS;
}

/* Notes that the line is written now. Writes how often it came, where that is more than once. */
static void repeat_written(struct log_repeat *r, char times[TIMES_BYTES], uint64_t now)
{
    r->written_ns = now;
    r->pause_s = r->pause_s == 0                     ? LOG_PAUSE_FIRST_S
                 : r->pause_s < LOG_PAUSE_MOST_S / 2 ? 2 * r->pause_s
                                                     : LOG_PAUSE_MOST_S;
    if (r->count > 1)
        snprintf(times, TIMES_BYTES, " (%" PRIu32 " times in %" PRIu64 " s)", r->count,
                 (now - r->first_ns) / SECOND_NS);
}

void log_hostile_at(struct log *log, enum log_source source, const struct log_subject *about,
                    const char *text, uint64_t now)
{
    struct log_limit *limit = &log->limits[source];
    struct log_repeat *repeat = NULL;
    char times[TIMES_BYTES] = "";

    if (log->level < level_of(source))
        return;
    /* Only lines about nodes are held back here. Each end of a client is written, or counted as
     * left out. */
    if (source == LOG_SOURCE_NODE || source == LOG_SOURCE_LEFT) {
        repeat = repeat_of(log, hash_of(text), now);
        if (!repeat_comes(repeat, now))
            return;
    }
    if (now - limit->since_ns > SECOND_NS) {
        limit->since_ns = now;
        limit->lines = 0;
    }
    if (limit->lines >= LOG_LINES_PER_SECOND) {
        limit->left_out++;
        return;
    }
    limit->lines++;
    if (repeat)
        repeat_written(repeat, times, now);
    write_left_out(log, source, limit);
    log_about(log, level_of(source), about, "%s%s", text, times);
}

void log_hostile(struct log *log, enum log_source source, const struct log_subject *about,
                 const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    log_hostile_at(log, source, about, text, clock_ns());
}

void log_end(struct log *log)
{
    for (int source = 0; source < LOG_SOURCES; source++)
        write_left_out(log, (enum log_source)source, &log->limits[source]);
}

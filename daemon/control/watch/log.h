/*
 * The log: one line a message, by level, to a descriptor or, where that is the journal's
 * (JOURNAL_STREAM), to the journal with its level and, where it is about somebody, fields. Lines
 * that clients, connections and other nodes cause are limited, each source on its own: strangers
 * hide no client's end. A line about other nodes that comes again and again is written ever more
 * seldom, with how often it came and in how long.
 *
 * Thread: log_line and log_about on any thread (one write a line); log_hostile on the control
 * thread only.
 */
#ifndef PWC_CONTROL_LOG_H
#define PWC_CONTROL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
    LOG_LEVEL_ERROR = 0,
    LOG_LEVEL_WARNING = 1,
    LOG_LEVEL_INFO = 2,
    LOG_LEVEL_DEBUG = 3,
};

/* The sources of limited lines. */
enum log_source {
    LOG_SOURCE_CONNECTION, /* to the socket, by a process that is not attached: anybody */
    LOG_SOURCE_CLIENT,     /* attached, or about to be */
    LOG_SOURCE_NODE,       /* another node, or a stranger at the port for nodes */
    LOG_SOURCES
};

/* The limit of one source. */
struct log_limit {
    uint64_t since_ns; /* start of the second in which lines are counted */
    uint32_t lines;    /* written in this second */
    uint32_t left_out; /* since the last one that was written */
};

/* A line about other nodes that comes again and again. */
struct log_repeat {
    uint64_t hash; /* of its text; 0: free */
    uint64_t first_ns, last_ns;
    uint64_t written_ns;
    uint32_t pause_s; /* from written_ns until it is written again; 0: it was never written */
    uint32_t count;   /* since the first one */
};

enum {
    LOG_LINES_PER_SECOND = 5,
    LOG_REPEATS = 16,        /* lines that are known; the one that came last longest ago goes */
    LOG_PAUSE_FIRST_S = 10,  /* doubles each time, up to */
    LOG_PAUSE_MOST_S = 3600, /* this */
};

struct log {
    int descriptor;
    bool journal; /* the descriptor leads to the journal */
    enum log_level level;
    struct log_limit limits[LOG_SOURCES];
    struct log_repeat repeats[LOG_REPEATS];
};

/* The subject of a line, as fields of the journal. Unknown values are -1 or NULL. */
struct log_subject {
    int64_t peer;    /* PWCD_PEER: another node's number */
    int64_t client;  /* PWCD_CLIENT: its number, as in pwcctl clients */
    int64_t rank;    /* PWCD_RANK */
    int64_t pid;     /* PWCD_PID: the client's */
    int64_t user;    /* PWCD_UID: the client's */
    const char *job; /* PWCD_JOB */
};

void log_open(struct log *log, int descriptor, enum log_level level);
__attribute__((format(printf, 3, 4))) void log_line(const struct log *log, enum log_level level,
                                                    const char *format, ...);
/* As log_line at level info, if the log shows lines of `level`. */
__attribute__((format(printf, 3, 4))) void log_start(const struct log *log, enum log_level level,
                                                     const char *format, ...);
/* As log_line, with fields. `about` NULL: none. */
__attribute__((format(printf, 4, 5))) void log_about(const struct log *log, enum log_level level,
                                                     const struct log_subject *about,
                                                     const char *format, ...);
/* As log_about at level warning, but only LOG_LINES_PER_SECOND of each source. The rest is counted,
 * and the count written before the next line of that source, or by log_end. A line about other
 * nodes that came before is written again LOG_PAUSE_FIRST_S later at the earliest, then after
 * longer pauses. */
__attribute__((format(printf, 4, 5))) void log_hostile(struct log *log, enum log_source source,
                                                       const struct log_subject *about,
                                                       const char *format, ...);
/* As log_hostile, of a line that is formatted and comes at `now`, a time of clock_ns. */
void log_hostile_at(struct log *log, enum log_source source, const struct log_subject *about,
                    const char *text, uint64_t now);
/* Writes the counts of lines that were left out. For the end of the process. */
void log_end(struct log *log);

/* All fields unknown, to fill in. */
struct log_subject log_nobody(void);
/* The subject for another node. */
struct log_subject log_node(uint32_t node);

#define LOG_FIELDS_MAX  8u
#define LOG_FIELD_BYTES 160u

/* Writes the journal's fields beside the text, "NAME=value" each. Returns their number. */
size_t log_fields(enum log_level level, const struct log_subject *about,
                  char fields[LOG_FIELDS_MAX][LOG_FIELD_BYTES]);

/* Makes foreign text fit for a line: what is not printable ASCII becomes '?'. */
void log_clean(char *text);

#endif

/*
 * The log: each message is a line with a level. It is written to a descriptor, or, where this leads
 * to the journal (JOURNAL_STREAM), to the journal, with fields for its level and its subject. Lines
 * that clients, connections and other nodes cause are limited for each source separately, so that
 * lines about strangers do not hide a client's end. A repeated line about other nodes is written
 * less and less often, and says how often it came in which time.
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

/* The sources whose lines are limited. */
enum log_source {
    LOG_SOURCE_CONNECTION, /* a process that has connected to the socket and is not attached:
                            * anybody */
    LOG_SOURCE_CLIENT,     /* a client that is attached, or is being attached */
    LOG_SOURCE_NODE,       /* another node, or a stranger at the port for nodes */
    LOG_SOURCE_LEFT,       /* a connection to that port that was closed at its other end before any
                            * proof, and without a reason: where two nodes dial each other, one of
                            * their two connections ends so */
    LOG_SOURCES
};

/* The limit of one source. */
struct log_limit {
    uint64_t since_ns; /* start of the second in which lines are counted */
    uint32_t lines;    /* written in this second */
    uint32_t left_out; /* lines left out since the last one that was written */
};

/* A line about other nodes that is repeated. */
struct log_repeat {
    uint64_t hash; /* of the line's text; 0: free */
    uint64_t first_ns, last_ns;
    uint64_t written_ns;
    uint32_t pause_s; /* from written_ns until it is written again; 0: it was never written */
    uint32_t count;   /* how often it came since the first time */
};

enum {
    LOG_LINES_PER_SECOND = 5,
    LOG_REPEATS = 16,        /* lines that are known; a new one replaces the one that has not come
                              * for the longest time */
    LOG_PAUSE_FIRST_S = 10,  /* the first pause; it doubles each time */
    LOG_PAUSE_MOST_S = 3600, /* the longest pause */
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
    int64_t client;  /* PWCD_CLIENT: the client's number, as in pwcctl clients */
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
/* As log_line, with fields about the subject. `about` NULL: no fields. */
__attribute__((format(printf, 4, 5))) void log_about(const struct log *log, enum log_level level,
                                                     const struct log_subject *about,
                                                     const char *format, ...);
/* As log_about at level warning, or info for LOG_SOURCE_LEFT, but at most LOG_LINES_PER_SECOND of
 * each source. The other lines are counted, and the count is written before the source's next line,
 * or by log_end. A repeated line about other nodes is written again after LOG_PAUSE_FIRST_S at the
 * earliest, and then after longer pauses. */
__attribute__((format(printf, 4, 5))) void log_hostile(struct log *log, enum log_source source,
                                                       const struct log_subject *about,
                                                       const char *format, ...);
/* As log_hostile, for a formatted line that comes at `now`, a time of clock_ns. */
void log_hostile_at(struct log *log, enum log_source source, const struct log_subject *about,
                    const char *text, uint64_t now);
/* Writes the counts of lines that were left out, at the end of the process. */
void log_end(struct log *log);

/* A subject with all fields unknown. */
struct log_subject log_nobody(void);
/* The subject that names another node. */
struct log_subject log_node(uint32_t node);

#define LOG_FIELDS_MAX  8u
#define LOG_FIELD_BYTES 160u

/* Writes the journal's fields other than the text, each "NAME=value". Returns their number. */
size_t log_fields(enum log_level level, const struct log_subject *about,
                  char fields[LOG_FIELDS_MAX][LOG_FIELD_BYTES]);

/* Makes text of others safe for a line: each byte that is not printable ASCII becomes '?'. */
void log_clean(char *text);

#endif

/*
 * Quotas: how much a client, and a user, may have of what the daemon makes for them.
 *
 *     client  held[MEMORY] ---> at most client-memory
 *     client  held[MEMORY] --\
 *                             +-> user  held[MEMORY] ---> at most user-memory
 *     client  held[MEMORY] --/
 *
 * A client's memory, contexts and other holdings count for its user, too, until the engine has
 * released them. So a user gets no more by ending clients that hold much. A refusal names the limit
 * and the key that raises it. Binds, pairs and queues, which the engine counts itself, are bounded
 * in engine/session/quota.h.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_QUOTA_H
#define PWC_CONTROL_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "daemon/control/clients/account.h"

struct client;
struct control;

enum quota_kind {
    QUOTA_CLIENTS = 0, /* clients of a user; each counts as one */
    QUOTA_CONTEXTS,
    QUOTA_SEGMENTS,
    QUOTA_REGIONS,
    QUOTA_TEAMS, /* memberships in teams */
    QUOTA_PROGRAMS,
    QUOTA_PROGRAM_BYTES,
    QUOTA_OFFLOADS, /* offloads, also while they are being made */
    QUOTA_PAIRS,    /* pairs of its contexts with neighbours (pairs.h) */
    QUOTA_MEMORY,   /* bytes of segments, rings, pairs and areas of teams */
    QUOTA_KINDS
};

/* A user, kept as long as the user has a connection, a view under way, or processor time to pay
 * for. */
struct quota_user {
    struct quota_user *next;
    uid_t uid;
    uint32_t connections;
    uint32_t strangers, lookers; /* connections in CLIENT_STRANGER, in CLIENT_LOOKING */
    uint64_t held[QUOTA_KINDS];
    uint64_t refused;
    uint64_t output;   /* bytes of replies that its connections have not read (client_stream.h) */
    uint32_t calls;    /* calls of its clients that are in engines */
    uint32_t pending;  /* requests of its clients in control.pending */
    uint32_t views;    /* views that are under way or not paid for; they keep the user
                        * (request_inspect.h) */
    uint64_t views_at; /* when the views so far will be paid for */
    struct account account;
    /* turns.h: `turn`: the loop's turn in which the next two are counted; `taken`: requests taken
     * from connections; `called`: connections that have left the line. */
    uint64_t turn;
    uint32_t taken, called;
    struct client *line, *line_last; /* connections that wait to be read */
};

/* The most pairs, where the kernel allows a process this many mappings. The daemon maps each pair,
 * so a quarter of the mappings stays free for contexts, segments and its own memory, and so does
 * their part of the table of ranges (shm_ring/sigbus.h). */
uint64_t quota_pairs_most(uint64_t mappings);
/* Sets the limits of users, also of their names in the store, and the most pairs of all users
 * together. `others`: users other than our own are served. */
void quota_open(struct control *control, bool others);
/* Counts a new connection of this user. NULL: the user has too many, or too many without Hello; or
 * there is no memory. */
struct quota_user *quota_enter(struct control *control, uid_t uid);
/* Counts an inherited connection, whatever the limits are now. NULL: no memory. */
struct quota_user *quota_inherit(struct control *control, uid_t uid);
void quota_leave(struct client *c);
/* Frees all users, after all connections are closed. */
void quota_close(struct control *control);
/* Counts that a view of this user has ended. */
void quota_release(struct control *control, struct quota_user *u);

/* Takes from the quotas of a client and its user. Returns 0, or -EDQUOT with the limit and its key
 * in `why` (may be NULL). Refusals are counted. */
int quota_take(struct client *c, enum quota_kind kind, uint64_t amount, char *why, size_t why_size);
/* As quota_take: takes one of `kind` and its memory, or neither. */
int quota_take_one(struct client *c, enum quota_kind kind, uint64_t bytes, char *why,
                   size_t why_size);
/* Takes without a limit, for what is inherited. */
void quota_charge(struct client *c, enum quota_kind kind, uint64_t amount);
void quota_give(struct client *c, enum quota_kind kind, uint64_t amount);
/* Counts a refusal by the engine. */
void quota_count_refused(struct client *c);

#endif

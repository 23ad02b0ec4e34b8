/*
 * Quotas: what clients and users may have of what the daemon makes for them.
 *
 *     client  held[MEMORY] ---> at most client-memory
 *     client  held[MEMORY] --\
 *                             +-> user  held[MEMORY] ---> at most user-memory
 *     client  held[MEMORY] --/
 *
 * All of a client's is its user's too, and stays so until the engine has let go of it: who dies
 * slowly does not get it twice. A refusal tells the limit and the key that raises it. What the
 * engine counts itself (binds, pairs, queues) is bounded in engine/session/quota.h.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_QUOTA_H
#define PWC_CONTROL_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct client;
struct control;

enum quota_kind {
    QUOTA_CLIENTS = 0, /* of a user; a client is one */
    QUOTA_CONTEXTS,
    QUOTA_SEGMENTS,
    QUOTA_REGIONS,
    QUOTA_MEMORY, /* bytes of segments, of rings, and of pairs */
    QUOTA_KINDS
};

/* There while it has a connection. */
struct quota_user {
    struct quota_user *next;
    uid_t uid;
    uint32_t connections;
    uint64_t held[QUOTA_KINDS];
    uint64_t refused;
};

/* The limits of users. `others`: not only our own user is served. */
void quota_open(struct control *control, bool others);
/* A connection of this user more, or one less. NULL: it has too many, or there is no memory. */
struct quota_user *quota_enter(struct control *control, uid_t uid);
/* The same of one that is taken over, which is past all limits. NULL: no memory. */
struct quota_user *quota_inherit(struct control *control, uid_t uid);
void quota_leave(struct client *c);

/* 0, or -EDQUOT with the limit and its key in `why` (NULL: nobody is told); counted. */
int quota_take(struct client *c, enum quota_kind kind, uint64_t amount, char *why, size_t why_size);
/* As quota_take: one of these, and its memory, or neither. */
int quota_take_one(struct client *c, enum quota_kind kind, uint64_t bytes, char *why,
                   size_t why_size);
/* What is taken over is held, whatever the limits are now. */
void quota_charge(struct client *c, enum quota_kind kind, uint64_t amount);
void quota_give(struct client *c, enum quota_kind kind, uint64_t amount);
/* Somebody else has refused it. */
void quota_count_refused(struct client *c);

#endif

/*
 * Requests that are answered later, after a notice of the engine or a frame of another node.
 *
 * Each has a cookie (generation and index), so that an answer finds nothing if it comes late or
 * twice, or if its sender has guessed the cookie. client->waiting counts a client's entries.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_PENDING_H
#define PWC_CONTROL_PENDING_H

#include <stdbool.h>
#include <stdint.h>
#include "daemon/engine/engine.h"
#include "daemon/peering/directory.h"

#define PENDING_MAX (1u << 16)

struct client;
struct control;
struct membership_name;

enum pending_kind {
    PENDING_ATTACH = 1,   /* a Hello, asked at the job's home */
    PENDING_WHERE,        /* a Bind, asked at the job's home */
    PENDING_BIND,         /* a Bind, asked at the engine */
    PENDING_REGION_CLOSE, /* at the engine */
    PENDING_EXCHANGE,     /* at the job's home */
    PENDING_TEAM,         /* at the job's home */
    PENDING_OFFLOAD,      /* at the engine, which binds its targets */
    PENDING_PUBLISH,      /* at the job's home */
    PENDING_LOOKUP,       /* at the job's home */
};

/* The request of a PENDING_PUBLISH or of a PENDING_LOOKUP. */
enum pending_how {
    PENDING_FRESH = 1,  /* to publish a name that the client had not published before */
    PENDING_REPLACES,   /* to publish a name that the client had published */
    PENDING_TAKES_BACK, /* to take a name back */
    PENDING_LOOKS,      /* to look once */
    PENDING_WAITS,      /* to look until the name is there */
};

struct pending {
    uint32_t kind; /* 0: free */
    uint32_t generation;
    uint32_t next, before; /* list links: index + 1, 0 at the ends */
    uint32_t request;      /* the client's id of the request */
    struct client *client;
    uint32_t node; /* the node that is asked; DIRECTORY_NOWHERE: none */
    /* The answer of the job's home, which knows the rank's node and engine, or -EHOSTDOWN of a home
     * that is given up. NULL: no home is asked, or it has answered. */
    void (*located)(struct control *control, struct pending *p, int status, uint32_t node,
                    uint32_t engine);
    uint32_t rank;     /* of a Hello: the rank that the home's answer gave */
    uint64_t instance; /* of a Hello: the job's instance in this answer */
    uint64_t region;   /* of a PENDING_REGION_CLOSE: generation in the high, slot in the low 32
                        * bits */
    /* of a bind */
    uint32_t session;
    uint64_t peer;
    uint32_t asked; /* the number of the engine that the key names, + 1; 0: there is no key */
    /* of an exchange */
    uint32_t sequence;
    uint64_t offset; /* of the next piece of the result */
    /* of a publication and a lookup */
    char name[DIRECTORY_PUBLISHED_NAME];
    enum pending_how how;
    struct membership_name *replaced; /* of PENDING_REPLACES: the name as it was before, which comes
                                       * back on a failure. Owned by the entry, from malloc; or
                                       * NULL */
};

struct pending_table {
    struct pending *entries;
    uint32_t size;
    uint32_t free;  /* list of free entries: index + 1 */
    uint32_t first; /* generation */
};

void pending_init(struct pending_table *t);
void pending_destroy(struct pending_table *t);
/* Adds an entry; all fields but kind, client and request are zero. NULL: there are too many
 * entries. Pointers to other entries become invalid. */
struct pending *pending_add(struct pending_table *t, enum pending_kind kind, struct client *client,
                            uint32_t request, uint64_t *cookie);
/* Finds the entry, if it still exists and is of this kind (0: any). */
struct pending *pending_find(struct pending_table *t, uint64_t cookie, uint32_t kind);
/* The cookie of an entry that waits. */
uint64_t pending_cookie(const struct pending_table *t, const struct pending *p);
void pending_remove(struct pending_table *t, struct pending *p);
/* The client's first entry, and the next one after an entry that still exists. NULL: there are no
 * more. */
struct pending *pending_of(struct pending_table *t, const struct client *client);
struct pending *pending_after(struct pending_table *t, const struct pending *p);
/* Iterates from *at = 0; NULL at the end. The entry that was returned last may be removed. */
struct pending *pending_next(struct pending_table *t, uint32_t *at);

#endif

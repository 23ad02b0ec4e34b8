/*
 * The store: descriptors that outlive this process. Each has a name that says what it is.
 *
 *     keeper                       hangs up when the keeper dies (keeper.h)
 *     lock, listen, inflight       the lock and the socket, and the requests under way (inflight.h)
 *     client.S, process.S          a connection and its process; S: its slot in inflight.h
 *     directory                    the jobs whose home this is (directory_table.h)
 *     members                      what clients are in their jobs (membership.h)
 *     guest.S                      a connection without Hello: only sent in a hand-over, not kept
 *     E.arena                      the arena of engine E of this node
 *     E.session.H.G, E.doorbell.H.G, E.wake.H.G    memory, eventfd, socket of its session H
 *     E.board.H.G                  the board of session H, for neighbours that reach it by pairs
 *     E.segment.H.G, E.reader.H.G  its segment H; the second descriptor can only read
 *     E.team.N                     the area of its part of team N
 *     roll.N                       members of team N (team_roll.h)
 *     pair.N.E.H.F.K.S             pair N from session H of engine E to session K of engine F, with
 *                                  slot S of its board; without S: none
 *
 * G is the generation of the handle H (engine.h): the engine may have given the handle again before
 * the earlier session or segment is taken out of the store.
 *
 * systemd, or the keeper (keeper.h), keeps duplicates of the descriptors. We send them in messages
 * of sd_notify(3), FDSTORE and FDSTOREREMOVE, and the next process gets them as sd_listen_fds(3)
 * says. In a hand-over (handover.h), the next process gets them from this one through a socket:
 * each message has one descriptor with its name. Names come from our own processes, and are
 * trusted.
 *
 * Where nobody keeps descriptors ($FDSTORE is not set), nothing is stored, and all clients end with
 * the daemon.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_STORE_H
#define PWC_CONTROL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_NOBODY   UINT32_MAX /* no user has this number */
#define STORE_NAME_MAX 48u
#define STORE_MAX      8192u   /* entries */
#define STORE_HASHES   4096u   /* a power of two */
#define STORE_BYTES    128000u /* of all names, which must fit into one environment variable */

struct stored {
    char name[STORE_NAME_MAX];
    int descriptor; /* the store closes it; once it is taken or added, its owner does */
    uint32_t uid;   /* of the user who is charged for the name; STORE_NOBODY: it is the daemon's */
    bool taken;
    uint32_t next; /* the number of the next entry whose name has the same hash; 0: none */
};

/* A user who is charged for names. */
struct store_user {
    uint32_t uid;
    uint32_t names, bytes;
};

struct store {
    bool kept;            /* systemd or a keeper keeps descriptors for us */
    struct stored *table; /* the entry with number n is at n - 1 */
    uint32_t count, room;
    uint32_t first[STORE_HASHES]; /* by a name's hash, the number of the first entry; 0: none */
    uint32_t bytes;               /* of all names, with their separators */
    struct store_user *users;
    uint32_t user_count, user_room;
    uint32_t user_names, user_bytes; /* one user's share; set by quota_open */
};

/* Takes the descriptors that were passed to this process at its start. -ENOMEM. */
int store_open(struct store *s);
/* Closes the descriptors that were not taken. The kept duplicates stay. */
void store_close(struct store *s);
/* Ends the keeping of all descriptors: no process will take over from this one. */
void store_clear(struct store *s);

/* Lets a descriptor of the daemon be kept under a name. The caller closes its own descriptor after
 * store_remove. False: there is no room, or the message cannot be sent, and what needs the
 * descriptor cannot be inherited. Where nobody keeps descriptors, does nothing and returns true. */
__attribute__((format(printf, 3, 4))) bool store_add(struct store *s, int descriptor,
                                                     const char *format, ...);
/* As store_add, for a descriptor that serves this user, who is charged for the name. False also
 * where the user has its share: then others, and the daemon, still have room. */
__attribute__((format(printf, 4, 5))) bool store_add_for(struct store *s, uint32_t uid,
                                                         int descriptor, const char *format, ...);
/* As store_add_for, for a descriptor that is not essential: half of the room, and half of the
 * user's share, is left for essential ones. This half is more than one user with default quotas
 * needs for essential names. */
__attribute__((format(printf, 4, 5))) bool store_add_spare(struct store *s, uint32_t uid,
                                                           int descriptor, const char *format, ...);
__attribute__((format(printf, 2, 3))) void store_remove(struct store *s, const char *format, ...);
/* Takes an inherited descriptor, which belongs to the caller from now on; -1: there is none. */
__attribute__((format(printf, 2, 3))) int store_take(struct store *s, const char *format, ...);
/* Takes an inherited descriptor that serves this user, and charges the user for its name, whatever
 * the user's share is now. */
__attribute__((format(printf, 3, 4))) int store_take_for(struct store *s, uint32_t uid,
                                                         const char *format, ...);
/* Charges a user for the name of a descriptor that was taken before the user was known. */
__attribute__((format(printf, 3, 4))) void store_charge(struct store *s, uint32_t uid,
                                                        const char *format, ...);
/* Gives a taken descriptor back: store_drop_rest closes it, unless it is taken again. */
__attribute__((format(printf, 2, 3))) void store_untake(struct store *s, const char *format, ...);
/* Whether there is an entry with this name. */
__attribute__((format(printf, 2, 3))) bool store_has(const struct store *s, const char *format,
                                                     ...);
/* Iterates from *at = 0 over inherited names that begin with `prefix` and have not been taken; NULL
 * at the end. */
const char *store_next(const struct store *s, uint32_t *at, const char *prefix);
/* Descriptors that no process of this daemon has named: sockets that systemd has made.
 * store_foreign counts them; store_next_foreign gives the name of the first one. */
uint32_t store_foreign(const struct store *s);
const char *store_next_foreign(const struct store *s);
/* Closes the inherited descriptors that were not taken, and ends their keeping. */
void store_drop_rest(struct store *s);

/* Sends all entries to another process; store_send_one sends a descriptor that is not in the store.
 * Returns 0 or a negative errno. */
int store_send(const struct store *s, int socket);
int store_send_one(int socket, const char *name, int descriptor);
/* Sends the mark of the end; after it the socket may be closed. */
int store_send_end(int socket);
/* Receives entries from another process, up to the mark of the end. -EPIPE: the other process ended
 * before. */
int store_receive(struct store *s, int socket);

#endif

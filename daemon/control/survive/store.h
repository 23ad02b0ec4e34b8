/*
 * The store: descriptors that outlive this process, each under a name that says what it is.
 *
 *     keeper                       hangs up when the keeper dies (keeper.h)
 *     lock, listen, inflight       the lock and the socket, and the requests under way (inflight.h)
 *     client.S, process.S          a connection and its process; S: its slot in inflight.h
 *     directory                    the jobs whose home this is (directory_table.h)
 *     members                      what clients are in their jobs (membership.h)
 *     guest.S                      a connection without Hello: handed over, but not kept
 *     E.arena                      of engine E of this node
 *     E.session.H, E.doorbell.H, E.wake.H      of its session H
 *     E.board.H                    its board, for neighbours that reach it by pairs
 *     E.segment.H, E.reader.H      of its segment H
 *     E.team.N                     area of what it has of team N
 *     roll.N                       members of team N (team_roll.h)
 *     pair.N.E.H.F.K.S             pair N from session H of engine E to session K of engine F, with
 *                                  slot S of its board; without S: none
 *
 * systemd, or the keeper (keeper.h), keeps duplicates of them. We send them in messages of
 * sd_notify(3), FDSTORE and FDSTOREREMOVE, and the next process gets them as sd_listen_fds(3) says.
 * A process that takes over while this one still lives gets them from it, through a socket: one
 * message a descriptor, with its name. Names come from our own processes, and are trusted.
 *
 * Where nobody keeps anything ($FDSTORE is not set) nothing is stored, and a daemon's end is its
 * clients' end.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_STORE_H
#define PWC_CONTROL_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_NAME_MAX 48u
#define STORE_MAX      8192u   /* names */
#define STORE_BYTES    120000u /* of all names: they have to fit one environment variable */

struct stored {
    char name[STORE_NAME_MAX];
    int descriptor; /* its owner closes it once it is taken or added; before, the store */
    bool taken;
};

struct store {
    bool kept; /* systemd or a keeper keeps what we name */
    struct stored *table;
    uint32_t count, room;
    uint32_t bytes; /* of all names, with their separators */
};

/* Reads the descriptors that were passed on at our start. -ENOMEM. */
int store_open(struct store *s);
/* Closes what was not taken. The duplicates that are kept stay. */
void store_close(struct store *s);
/* No process will take over from us: has nothing kept any more. */
void store_clear(struct store *s);

/* Has a descriptor kept. The caller closes its own after store_remove. False: there is no room, and
 * what needs the descriptor cannot be inherited. Does nothing (true) where nobody keeps anything.
 */
__attribute__((format(printf, 3, 4))) bool store_add(struct store *s, int descriptor,
                                                     const char *format, ...);
/* As store_add, for what is not essential: leaves half of the room to all else. That is more than
 * the essential names of one user with default quotas take. */
__attribute__((format(printf, 3, 4))) bool store_add_spare(struct store *s, int descriptor,
                                                           const char *format, ...);
__attribute__((format(printf, 2, 3))) void store_remove(struct store *s, const char *format, ...);
/* Takes an inherited descriptor, which is the caller's from now on; -1: there is none. */
__attribute__((format(printf, 2, 3))) int store_take(struct store *s, const char *format, ...);
/* Gives a taken descriptor back: store_drop_rest closes it, unless it is taken once more. */
__attribute__((format(printf, 2, 3))) void store_untake(struct store *s, const char *format, ...);
/* Whether there is an entry by this name. */
__attribute__((format(printf, 2, 3))) bool store_has(const struct store *s, const char *format,
                                                     ...);
/* The next inherited name that begins with `prefix` and has not been taken, from *at = 0 on. */
const char *store_next(const struct store *s, uint32_t *at, const char *prefix);
/* Descriptors that no earlier process of ours has named, that is sockets that systemd made: their
 * number, and the first one's name. */
uint32_t store_foreign(const struct store *s);
const char *store_next_foreign(const struct store *s);
/* Closes what was passed on and not taken, and has it not kept any longer. */
void store_drop_rest(struct store *s);

/* Sends all entries to another process, or one that is not in the store. 0 or a negative errno. */
int store_send(const struct store *s, int socket);
int store_send_one(int socket, const char *name, int descriptor);
/* Marks the end of what store_send sends; then the socket may be closed. */
int store_send_end(int socket);
/* Receives what another process sends, up to the mark of its end. -EPIPE: that process ended
 * before. */
int store_receive(struct store *s, int socket);

#endif

/*
 * The store: descriptors that outlive this process, each under a name that says what it is.
 *
 *     keeper                       hangs up when the keeper dies (keeper.h)
 *     lock, listen, inflight       the lock and the socket, and the requests under way (inflight.h)
 *     client.S, process.S          a connection and its process; S: its slot in inflight.h
 *     guest.S                      one without Hello: handed over, but not kept
 *     E.arena                      of engine E of this node
 *     E.session.H, E.doorbell.H, E.wake.H      of its session H
 *     E.board.H                    the same, of who reaches it by pairs
 *     E.segment.H, E.reader.H      of its segment H
 *     pair.N.E.H.F.K.S             pair N from session H of engine E to session K of engine F, with
 *                                  slot S of its board; without S: none
 *
 * Somebody keeps duplicates of them: systemd, or the keeper (keeper.h). We tell him by the messages
 * of sd_notify(3), FDSTORE and FDSTOREREMOVE, and he passes them to the next process as
 * sd_listen_fds(3) says. A process that takes over while this one still lives gets them from it, by
 * a socket: one message a descriptor, with its name. What is in a name is ours, and trusted.
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
#define STORE_BYTES    120000u /* of all of them: they have to fit one environment variable */

struct stored {
    char name[STORE_NAME_MAX];
    int descriptor; /* the owner's to close, once taken or added; before, ours */
    bool taken;
};

struct store {
    bool kept; /* somebody keeps what we name */
    struct stored *table;
    uint32_t count, room;
    uint32_t bytes; /* of all names, with what parts them */
};

/* What was passed on at our start. -ENOMEM. */
int store_open(struct store *s);
/* Closes what was not taken. What is kept stays so. */
void store_close(struct store *s);
/* Nobody takes over from us: nothing is kept any more. */
void store_clear(struct store *s);

/* Keeps a descriptor: the caller closes its own after store_remove. False: there is no room, and
 * whoever needs it cannot be taken over. Nothing (true) where nobody keeps anything. */
__attribute__((format(printf, 3, 4))) bool store_add(struct store *s, int descriptor,
                                                     const char *format, ...);
/* As store_add, for what can be done without: it leaves half of the room to all else, which is more
 * than the other names of one user with default quotas take. */
__attribute__((format(printf, 3, 4))) bool store_add_spare(struct store *s, int descriptor,
                                                           const char *format, ...);
__attribute__((format(printf, 2, 3))) void store_remove(struct store *s, const char *format, ...);
/* An inherited descriptor, the caller's from now on; -1: there is none. */
__attribute__((format(printf, 2, 3))) int store_take(struct store *s, const char *format, ...);
/* The store's again: store_drop_rest closes it, unless it is taken once more. */
__attribute__((format(printf, 2, 3))) void store_untake(struct store *s, const char *format, ...);
/* Whether there is one by that name. */
__attribute__((format(printf, 2, 3))) bool store_has(const struct store *s, const char *format,
                                                     ...);
/* The next inherited one that has not been taken and whose name begins so, from *at = 0 on. */
const char *store_next(const struct store *s, uint32_t *at, const char *prefix);
/* Of what is not ours, that is sockets that systemd made: how many, and the first one's name. */
uint32_t store_foreign(const struct store *s);
const char *store_next_foreign(const struct store *s);
/* Closes what was passed on and not taken, and has it kept no longer. */
void store_drop_rest(struct store *s);

/* Hands everything over, by a socket; `extra` under its name as well. 0 or a negative errno. */
int store_send(const struct store *s, int socket);
int store_send_one(int socket, const char *name, int descriptor);
/* The end of what store_send sends; then the socket may be closed. */
int store_send_end(int socket);
/* Takes over what another process sends, until its end. -EPIPE: it went away before that. */
int store_receive(struct store *s, int socket);

#endif

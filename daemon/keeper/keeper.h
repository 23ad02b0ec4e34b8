/*
 * The keeper: a process that starts the daemon, holds duplicates of descriptors for it, and, when
 * the daemon dies, starts it again with these descriptors. For pwcd the keeper is the same as
 * systemd with a descriptor store, and the protocol is the same: the daemon sends sd_notify(3)
 * messages, and gets descriptors as sd_listen_fds(3) describes.
 *
 *     keeper  --fork, exec: LISTEN_FDS, NOTIFY_SOCKET, FDSTORE-->  pwcd
 *        ^---------- FDSTORE, FDSTOREREMOVE, READY, MAINPID ---------/
 *
 * The keeper does not map or read what it holds. At SIGTERM and SIGINT the daemon ends orderly, and
 * the keeper exits with the daemon's status; SIGUSR2 is passed to the daemon. When the keeper is
 * killed, the daemon ends, too, and orderly, because nobody would watch it any more.
 *
 * A daemon that dies is started again at once; after each further death the delay grows, up to a
 * second. After five starts in a row that did not become ready, the held descriptors are closed,
 * and the daemon starts without them. A daemon that ends with EXIT_UNLOCKED (exit_status.h) is not
 * started again: the next one would end likewise.
 *
 * Thread: the keeper's only one.
 */
#ifndef PWC_KEEPER_KEEPER_H
#define PWC_KEEPER_KEEPER_H

/* Runs the daemon with these arguments, which contain --keep: keeper and daemon are one program.
 * Writes "ready" to ready_fd (-1: none) when the daemon first serves. Returns the exit status. */
int keeper_run(char *const *argv, int ready_fd);

#endif

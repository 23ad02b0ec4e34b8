/*
 * The keeper: a process that starts the daemon, holds duplicates of the descriptors that it names,
 * and starts it again with them when it dies. It is to pwcd what systemd with a descriptor store
 * is, and speaks the same words: sd_notify(3) one way, sd_listen_fds(3) the other.
 *
 *     keeper  --fork, exec: LISTEN_FDS, NOTIFY_SOCKET, FDSTORE-->  pwcd
 *        ^---------- FDSTORE, FDSTOREREMOVE, READY, MAINPID ---------/
 *
 * It maps nothing and reads nothing of what it holds. SIGTERM and SIGINT end the daemon in order,
 * and the keeper with its status; SIGUSR2 is passed on. A keeper that is killed takes the daemon
 * along, which ends in order: nobody would watch it any more.
 *
 * A daemon that dies is started again at once, one that keeps dying less and less often, up to once
 * a second; what it does not come up with five times in a row is given up, and it starts over.
 *
 * Thread: one.
 */
#ifndef PWC_KEEPER_KEEPER_H
#define PWC_KEEPER_KEEPER_H

/* Runs the daemon with these arguments, which contain --keep: keeper and daemon are one program.
 * Writes "ready" to ready_fd (-1: none) when the daemon first serves. Returns the exit status. */
int keeper_run(char *const *argv, int ready_fd);

#endif

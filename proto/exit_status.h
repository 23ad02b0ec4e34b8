/*
 * Exit statuses of the daemon that have a meaning for what starts it. systemd starts no other
 * daemon after either (RestartPreventExitStatus= in pwcd.service), and the keeper none after
 * EXIT_UNLOCKED. Thread: any.
 */
#ifndef PWC_EXIT_STATUS_H
#define PWC_EXIT_STATUS_H

enum exit_status {
    EXIT_USAGE = 2,    /* the command line, the environment or the file is wrong */
    EXIT_UNLOCKED = 3, /* the fabric does not register the memory for ledgers */
};

#endif

/* The commands of pwcctl about programs of handlers. */
#ifndef PWCCTL_PROGRAM_H
#define PWCCTL_PROGRAM_H

/* Asks the daemon whether it would take the object file, and prints the answer. 0, or a negative
 * errno after a message on stderr. */
int program_check(const char *socket_path, const char *file);
/* Prints the instructions of an object file, or of a program that the daemon has: "N", or
 * "ENGINE.N" as "pwcctl programs" shows it. */
int program_disassemble(const char *socket_path, const char *what);

#endif

/* Reads the secret that daemons share: from a file that only our user may read, or from our
 * environment, which the kernel shows to our user only. Thread: main, at start. */
#ifndef PWC_CONTROL_SECRET_H
#define PWC_CONTROL_SECRET_H

#include <stddef.h>
#include <stdint.h>

#define SECRET_KEY_BYTES 32u
#define SECRET_FILE_MIN  32u
#define SECRET_FILE_MAX  4096u

/* Reads `path` and hashes it into `key`. Refuses, with the reason and remedy in `why`, a file that
 * is not regular, is a symbolic link, does not belong to our user, has a mode other than 0600, or
 * is shorter than SECRET_FILE_MIN or longer than SECRET_FILE_MAX. */
int secret_load(const char *path, uint8_t key[SECRET_KEY_BYTES], char *why, size_t why_size);

/* Hashes a text (PWCD_SECRET) of 32 to 4096 characters. -EINVAL: it is shorter or longer. */
int secret_from_text(const char *text, uint8_t key[SECRET_KEY_BYTES], char *why, size_t why_size);

#endif

/* Owns the reading and the checks of the secret (secret.h). Thread: main. */
#include "daemon/control/start/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(const char *path, const struct stat *st, char *why, size_t why_size)
{
    if (!S_ISREG(st->st_mode)) {
        snprintf(why, why_size, "secret \"%s\" is not a regular file: name one", path);
        return -EINVAL;
    }
    if (st->st_uid != geteuid()) {
        snprintf(why, why_size, "secret \"%s\" belongs to user %u and pwcd runs as %u: chown it",
                 path, (unsigned)st->st_uid, (unsigned)geteuid());
        return -EPERM;
    }
    if ((st->st_mode & 07777) != 0600) {
        snprintf(why, why_size, "secret \"%s\" has mode %04o: chmod 0600 it", path,
                 (unsigned)(st->st_mode & 07777));
        return -EPERM;
    }
    return 0;
}

int secret_load(const char *path, uint8_t key[SECRET_KEY_BYTES], char *why, size_t why_size)
{
    uint8_t bytes[SECRET_FILE_MAX + 1];
    /* With O_NONBLOCK, open does not block where the path is a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat st;
    ssize_t got;
    int rc;

    if (fd < 0) {
        rc = -errno;
        snprintf(why, why_size, "secret \"%s\": %s%s", path, strerror(-rc),
                 rc == -ELOOP ? ": a symbolic link is not followed, name the file itself" : "");
        return rc;
    }
    rc = fstat(fd, &st) != 0 ? -errno : check(path, &st, why, why_size);
    if (rc < 0)
        goto out;
    got = read(fd, bytes, sizeof(bytes));
    if (got < 0) {
        rc = -errno;
        snprintf(why, why_size, "secret \"%s\": %s", path, strerror(-rc));
    } else if (got < (ssize_t)SECRET_FILE_MIN || got > (ssize_t)SECRET_FILE_MAX) {
        rc = -EINVAL;
        snprintf(why, why_size,
                 "secret \"%s\" has %s bytes: give %u to %u, as \"head -c 32 /dev/urandom\" does",
                 path, got < (ssize_t)SECRET_FILE_MIN ? "too few" : "too many", SECRET_FILE_MIN,
                 SECRET_FILE_MAX);
    } else {
        crypto_generichash(key, SECRET_KEY_BYTES, bytes, (size_t)got, NULL, 0);
    }
    sodium_memzero(bytes, sizeof(bytes));
out:
    close(fd);
    return rc;
}

int secret_from_text(const char *text, uint8_t key[SECRET_KEY_BYTES], char *why, size_t why_size)
{
    size_t length = strlen(text);

    if (length < SECRET_FILE_MIN || length > SECRET_FILE_MAX) {
        snprintf(why, why_size,
                 "PWCD_SECRET has %zu characters: give %u to %u, as \"head -c 32 /dev/urandom | "
                 "base64\" does",
                 length, SECRET_FILE_MIN, SECRET_FILE_MAX);
        return -EINVAL;
    }
    crypto_generichash(key, SECRET_KEY_BYTES, (const uint8_t *)text, length, NULL, 0);
    return 0;
}

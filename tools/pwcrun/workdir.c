/* Makes and removes the folder of a run. */
#include "tools/pwcrun/workdir.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "pwcrun.XXXXXX"

static int create_under(struct workdir *dir, const char *base)
{
    int length = snprintf(dir->path, sizeof(dir->path), "%s/" FOLDER, base);
    if (length < 0 || (size_t)length >= sizeof(dir->path)) /* socket paths hold 107 characters */
        return -ENAMETOOLONG;
    return mkdtemp(dir->path) == NULL ? -errno : 0;
}

/* The secret is written as text, so that it can be read and copied. */
static int write_secret(const char *path)
{
    unsigned char random[32];
    char text[2 * sizeof(random) + 1];
    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return -errno;
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    ssize_t written = write(fd, text, sizeof(text) - 1);
    int rc = written < 0 ? -errno : written == sizeof(text) - 1 ? 0 : -EIO;
    if (close(fd) < 0 && rc == 0)
        rc = -errno;
    return rc;
}

int workdir_create(struct workdir *out)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int rc = -ENOENT;
    if (runtime != NULL && runtime[0] == '/')
        rc = create_under(out, runtime);
    if (rc < 0)
        rc = create_under(out, "/tmp");
    if (rc < 0)
        return rc;
    snprintf(out->secret, sizeof(out->secret), "%s/secret", out->path);
    rc = write_secret(out->secret);
    if (rc < 0)
        workdir_remove(out);
    return rc;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    remove(path); /* an entry that stays is noticed when its folder cannot be removed */
    return 0;
}

void workdir_remove(const struct workdir *dir)
{
    nftw(dir->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

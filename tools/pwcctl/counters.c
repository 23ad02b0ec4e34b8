/* Maps the counters read-only, checks that their rows lie within the file, and prints them as JSON.
 */
#include "tools/pwcctl/counters.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/request.h"
#include "views/json.h"

struct counters {
    const struct counters_header *header;
    size_t size;
};

static int map(const char *path, struct counters *out)
{
    struct stat stat;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &stat) < 0 ? -errno : 0;
    if (rc == 0 && stat.st_size < (off_t)sizeof(struct counters_header))
        rc = -EBADMSG;
    if (rc == 0) {
        out->size = (size_t)stat.st_size;
        void *base = mmap(NULL, out->size, PROT_READ, MAP_SHARED, fd, 0);
        rc = base == MAP_FAILED ? -errno : 0;
        out->header = base;
    }
    close(fd);
    return rc;
}

int counters_read(const char *socket_path, char **out)
{
    char path[128];
    size_t length = strlen(socket_path);
    if (length > 5 && strcmp(socket_path + length - 5, ".sock") == 0)
        length -= 5;
    snprintf(path, sizeof(path), "%.*s.counters", (int)length, socket_path);

    struct counters counters = {0};
    int rc = map(path, &counters);
    if (rc == 0) {
        rc = counters_check(counters.header, counters.size);
        if (rc == 0) {
            json_t *document = json_object();
            json_put_daemon(document, counters.header);
            (void)json_put_sessions(document, "sessions", counters.header, SIZE_MAX, NULL, NULL);
            (void)json_put_peers(document, "peers", counters.header, SIZE_MAX);
            *out = json_dumps(document, JSON_COMPACT | JSON_PRESERVE_ORDER);
            json_decref(document);
            rc = *out != NULL ? 0 : -ENOMEM;
        }
        munmap((void *)counters.header, counters.size);
    }
    if (rc < 0)
        fprintf(stderr, "pwcctl: %s: %s%s\n", path, strerror(-rc),
                rc == -ENOENT            ? REQUEST_NO_DAEMON
                : rc == -EPROTONOSUPPORT ? ": pwcctl and the daemon are of different versions"
                                         : "");
    return rc;
}

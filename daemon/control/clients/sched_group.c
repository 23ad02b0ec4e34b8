/* Finds scheduler groups (sched_group.h). */
#include "daemon/control/clients/sched_group.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TEXT_MAX = 3 * PATH_MAX, /* of a file that is read; a longer one is not understood */
    FILE_MAX = 2 * PATH_MAX, /* of a name */
};

/* Reads a whole file into `text`, with a 0 behind it. */
static __attribute__((format(printf, 2, 3))) int read_text(char text[TEXT_MAX], const char *format,
                                                           ...)
{
    char name[FILE_MAX];
    ssize_t size;
    va_list list;
    int n, fd;

    va_start(list, format);
    n = vsnprintf(name, sizeof(name), format, list);
    va_end(list);
    if (n >= (int)sizeof(name))
        return -ENAMETOOLONG;
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size = read(fd, text, TEXT_MAX);
    n = size < 0 ? -errno : size == TEXT_MAX ? -EFBIG : 0;
    close(fd);
    text[n == 0 ? size : 0] = '\0';
    return n;
}

static bool there_is(const char *root, const char *path, const char *file)
{
    char name[FILE_MAX];
    int n = snprintf(name, sizeof(name), "%s/sys/fs/cgroup%s/%s", root, path, file);

    return n < (int)sizeof(name) && access(name, F_OK) == 0;
}

/* Whether `word` is in a list whose words are separated by any of `between`. Changes the list. */
static bool has_word(char *list, const char *between, const char *word)
{
    char *rest, *next = strtok_r(list, between, &rest);

    while (next && strcmp(next, word) != 0)
        next = strtok_r(NULL, between, &rest);
    return next != NULL;
}

/* Shortens the path of a control group (version 2) to that of the nearest group above it with the
 * cpu controller. Returns 1 if that is the root of the machine, else 0. */
static int climb(const char *root, struct sched_group *g)
{
    char text[TEXT_MAX];
    int rc;

    while ((rc = read_text(text, "%s/sys/fs/cgroup%s/cgroup.controllers", root, g->path)) == 0 &&
           !has_word(text, " \n", "cpu") && g->path[0] != '\0') {
        *strrchr(g->path, '/') = '\0';
        g->own = false;
    }
    if (rc < 0)
        return rc;
    /* A container may see its own group as the root. Only the machine's root has no such file. */
    return g->path[0] == '\0' && !there_is(root, "", "cgroup.events");
}

/* Finds the control group with the cpu controller: 1 if that is the root of the machine, else 0.
 * A line of `groups` is NUMBER:CONTROLLERS:PATH, in version 2 without a controller. */
static int find_control_group(const char *root, char *groups, struct sched_group *g)
{
    bool cpu = false, found = false;
    char *rest;

    for (char *line = strtok_r(groups, "\n", &rest); line && !cpu;
         line = strtok_r(NULL, "\n", &rest)) {
        char *controllers = strchr(line, ':');
        char *name = controllers ? strchr(controllers + 1, ':') : NULL;
        bool version_2;

        if (!name || name[1] != '/' || strlen(name) > PATH_MAX)
            return -EBADMSG;
        version_2 = name == controllers + 1;
        *name++ = '\0';
        cpu = has_word(controllers + 1, ",", "cpu");
        if (!cpu && !version_2)
            continue;
        found = true;
        strcpy(g->path, name[1] == '\0' ? "" : name);
    }
    /* This process does not see a group above the root of its own view. */
    if (!found || strncmp(g->path, "/..", 3) == 0)
        return -ENOENT;
    return cpu ? g->path[0] == '\0' && there_is(root, "/cpu", "release_agent") : climb(root, g);
}

/* The number of the group of the process's session; 0: sessions have no groups of their own. */
static int find_session(const char *root, pid_t pid, uint64_t *out)
{
    char text[TEXT_MAX];
    int rc = read_text(text, "%s/proc/sys/kernel/sched_autogroup_enabled", root);

    *out = 0;
    if (rc == -ENOENT || (rc == 0 && atoi(text) == 0))
        return 0;
    if (rc == 0)
        rc = read_text(text, "%s/proc/%d/autogroup", root, (int)pid);
    if (rc == 0 && text[0] != '\0' && sscanf(text, "/autogroup-%" SCNu64, out) != 1)
        rc = -EBADMSG;
    return rc;
}

int sched_group_find(const char *root, pid_t pid, struct sched_group *out)
{
    char text[TEXT_MAX];
    int rc = read_text(text, "%s/proc/%d/cgroup", root, (int)pid);

    *out = (struct sched_group){.known = false, .own = true};
    if (rc == 0)
        rc = find_control_group(root, text, out);
    if (rc == 1)
        rc = find_session(root, pid, &out->session);
    out->known = rc == 0;
    return rc;
}

static bool is_hidden(const char *root, pid_t pid)
{
    char name[FILE_MAX];
    int n = snprintf(name, sizeof(name), "%s/proc/%d", root, (int)pid);

    return n < (int)sizeof(name) && access(name, F_OK) < 0 && errno == ENOENT;
}

enum sched_relation sched_group_relation(const char *root, pid_t pid,
                                         const struct sched_group *ours)
{
    struct sched_group theirs;

    if (!ours->known || pid <= 0)
        return SCHED_UNKNOWN;
    if (is_hidden(root, pid))
        return ours->session != 0 || (ours->own && ours->path[0] != '\0') ? SCHED_APART
                                                                          : SCHED_UNKNOWN;
    if (sched_group_find(root, pid, &theirs) < 0)
        return SCHED_UNKNOWN;
    return theirs.session == ours->session && strcmp(theirs.path, ours->path) == 0 ? SCHED_BESIDE
                                                                                   : SCHED_APART;
}

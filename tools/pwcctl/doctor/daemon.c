/* Asks the daemon that runs, and the program that would be started (doctor.h). */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/pwcctl/doctor/doctor.h"
#include "tools/find_pwcd.h"
#include "tools/request.h"
#include "proto/session_abi.h"
#include "proto/clock.h"

#define PROGRAM_MS 10000

/* ---- the daemon that runs ----------------------------------------------------------------------
 */

static void copy(char *to, size_t size, const json_t *from, const char *key)
{
    const char *text = json_string_value(json_object_get(from, key));
    snprintf(to, size, "%s", text != NULL ? text : "");
}

static unsigned number(const json_t *from, const char *key)
{
    return (unsigned)json_integer_value(json_object_get(from, key));
}

static void take_status(struct doctor_daemon *d, const json_t *document)
{
    const char *progress = json_string_value(json_object_get(document, "progress"));
    d->stuck = progress != NULL && strcmp(progress, "stuck") == 0;
    d->pid = (pid_t)number(document, "pid");
    copy(d->version, sizeof(d->version), document, "version");
    d->session_version = number(document, "session_version");
    d->node = number(document, "node");
    d->nodes = number(document, "nodes");
    d->quarantined = number(document, "quarantined");
    d->rails = number(document, "rails");
    copy(d->provider, sizeof(d->provider), document, "provider");
}

/* Links are made when they are first needed, so an idle link is no fault, nor is one that is being
 * made. */
static void take_nodes(struct doctor_daemon *d, const json_t *document)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "nodes"), i, row)
    {
        const char *state = json_string_value(json_object_get(row, "state"));
        bool failed = json_is_string(json_object_get(row, "reason"));
        if (state == NULL ||
            (strcmp(state, "lost") != 0 && (strcmp(state, "dialling") != 0 || !failed)))
            continue;
        if (d->lost++ == 0) {
            d->lost_node = number(row, "node");
            copy(d->lost_why, sizeof(d->lost_why), row, "reason");
        }
    }
}

static void take_config(struct doctor_daemon *d, const json_t *document)
{
    size_t i;
    json_t *row;
    json_array_foreach(json_object_get(document, "config"), i, row)
    {
        const char *key = json_string_value(json_object_get(row, "key"));
        if (key == NULL)
            continue;
        if (strcmp(key, "progress") == 0)
            copy(d->progress, sizeof(d->progress), row, "value");
        else if (strcmp(key, "progress-threads") == 0)
            d->threads = number(row, "value");
        else if (strcmp(key, "clients-max") == 0)
            d->clients_max = number(row, "value");
        else if (strcmp(key, "allow-users") == 0 || strcmp(key, "allow-groups") == 0)
            d->serves_others |= json_is_string(json_object_get(row, "value"));
    }
}

/* Asks the daemon. 0 when it has answered; else `status` and `why` hold the reason. */
static int ask(struct doctor_daemon *d, const char *what,
               void (*take)(struct doctor_daemon *, const json_t *))
{
    json_t *document;
    d->status = request_document(d->socket, what, &document, d->why, sizeof(d->why));
    if (d->status == 0) {
        take(d, document);
        json_decref(document);
    }
    return d->status;
}

/* ---- its program -------------------------------------------------------------------------------
 */

/* Reads to the end of the stream. Returns false if the end does not come in time, or not within
 * `size`. */
static bool read_all(int from, char *to, size_t size)
{
    int64_t end = now_ms() + PROGRAM_MS;
    size_t used = 0;
    ssize_t got = 1;
    while (got > 0 && used + 1 < size) {
        struct pollfd readable = {.fd = from, .events = POLLIN};
        int64_t left = end - now_ms();
        if (left <= 0 || poll(&readable, 1, (int)left) != 1)
            break;
        got = read(from, to + used, size - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    to[used] = '\0';
    return got == 0;
}

/* Runs the program with a flag and keeps its output. Returns its status, or a negative errno. */
static int run(const char *program, const char *flag, char *said, size_t size)
{
    char *const argv[] = {(char *)program, (char *)flag, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], status = 0;
    pid_t pid;
    *said = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    int rc = -posix_spawnp(&pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (rc == 0) {
        if (!read_all(ends[0], said, size))
            kill(pid, SIGKILL);
        close(ends[0]);
        waitpid(pid, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
    }
    close(ends[0]);
    return rc;
}

static void take_providers(struct doctor_programs *p, char *said)
{
    char *rest = said;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;)
        if (*line != '\0' && p->provider_count < DOCTOR_PROVIDERS_MAX)
            snprintf(p->providers[p->provider_count++], sizeof(p->providers[0]), "%s", line);
}

static void ask_program(struct doctor_programs *p)
{
    const char *named = getenv("PWCD");
    char said[2048];
    if (named != NULL)
        snprintf(p->pwcd, sizeof(p->pwcd), "%s", named);
    else
        find_pwcd(p->pwcd, sizeof(p->pwcd));
    if (run(p->pwcd, "--version", said, sizeof(said)) != 0 ||
        sscanf(said, "pwcd %63s", p->pwcd_version) != 1)
        return;
    if (run(p->pwcd, "--providers", said, sizeof(said)) == 0) {
        take_providers(p, said);
    } else {
        said[strcspn(said, "\n")] = '\0';
        snprintf(p->providers_why, sizeof(p->providers_why), "%.*s",
                 (int)sizeof(p->providers_why) - 1, said);
    }
}

void doctor_look_at_daemon(struct doctor_facts *facts, const char *socket)
{
    struct doctor_daemon *d = &facts->daemon;
    snprintf(d->socket, sizeof(d->socket), "%s", socket);
    if (ask(d, "status", take_status) == 0 && ask(d, "nodes", take_nodes) == 0)
        (void)ask(d, "config", take_config);
    snprintf(facts->programs.version, sizeof(facts->programs.version), "%s", PWC_VERSION);
    facts->programs.session_version = SESSION_VERSION;
    ask_program(&facts->programs);
}

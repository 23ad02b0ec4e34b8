/* pwcctl: looks into a running daemon. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tools/pwcctl/counters.h"
#include "tools/pwcctl/doctor/doctor.h"
#include "tools/pwcctl/options.h"
#include "tools/pwcctl/program.h"
#include "tools/request.h"
#include "tools/pwcctl/top/top.h"
#include "tools/pwcctl/trace/trace.h"
#include "tools/pwcctl/view.h"

static_assert(OPTIONS_SOCKETS_MAX == VIEW_ANSWERS_MAX, "one answer of each socket");

static int ask(const char *socket, const char *what, char **out)
{
    /* The counters are in a file beside the socket; an abstract socket has no such file. */
    return strcmp(what, "counters") == 0 && socket[0] != '@' ? counters_read(socket, out)
                                                             : request_inspect(socket, what, out);
}

/* Shows what the daemons answer. A daemon that does not is named on stderr, and the others are
 * shown anyway. */
static int look(const struct options *options)
{
    struct view_answer answers[OPTIONS_SOCKETS_MAX];
    size_t count = 0;
    int rc = 0;
    for (size_t i = 0; i < options->socket_count; i++) {
        answers[count].socket = options->sockets[i];
        int asked = ask(options->sockets[i], options->what, &answers[count].json);
        count += asked == 0;
        rc = asked < 0 ? asked : rc;
    }
    if (options->json) {
        for (size_t i = 0; i < count; i++)
            puts(answers[i].json);
    } else if (count > 0) {
        int shown = view_print(view_find(options->what), answers, count, stdout);
        rc = shown < 0 ? shown : rc;
    }
    for (size_t i = 0; i < count; i++)
        free(answers[i].json);
    return rc;
}

/* On a terminal, each look replaces the last one. */
static void begin_look(const struct options *options)
{
    char now[16];
    time_t seconds = time(NULL);
    if (options->json || !isatty(STDOUT_FILENO))
        return;
    strftime(now, sizeof(now), "%H:%M:%S", localtime(&seconds));
    printf("\033[H\033[2J%s  %s  every %g s\n", options->what, now, options->watch);
}

static int watch(const struct options *options)
{
    struct timespec pause = {.tv_sec = (time_t)options->watch};
    pause.tv_nsec = (long)((options->watch - (double)pause.tv_sec) * 1e9);
    int rc;
    do {
        begin_look(options);
        rc = look(options);
        fflush(stdout);
    } while (rc == 0 && !ferror(stdout) && nanosleep(&pause, NULL) == 0);
    return rc;
}

static int upgrade(const struct options *options)
{
    unsigned pid = 0;
    int rc = request_upgrade(options->socket, options->program, &pid);
    if (rc == 0 && pid != 0)
        printf("process %u takes over\n", pid);
    return rc;
}

int main(int argc, char **argv)
{
    struct options options;
    int rc = options_parse(&options, argc, argv);
    if (rc != 0)
        return rc > 0 ? 0 : 2;
    if (options.upgrade)
        return upgrade(&options) < 0;
    if (options.check)
        return program_check(options.socket, options.program) < 0;
    if (options.disassemble)
        return program_disassemble(options.socket, options.program) < 0 || ferror(stdout);
    if (options.doctor)
        return doctor_run(options.sockets, options.socket_count, options.json) != 0;
    if (options.top)
        return top_run(&options) < 0;
    if (options.trace)
        return trace_run(&options) < 0;
    rc = options.watch > 0 ? watch(&options) : look(&options);
    return rc < 0 || ferror(stdout) ? 1 : 0;
}

/* pwcctl: looks into a running daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tools/pwcctl/counters.h"
#include "tools/pwcctl/doctor.h"
#include "tools/pwcctl/options.h"
#include "tools/request.h"
#include "tools/pwcctl/top/top.h"
#include "tools/pwcctl/trace.h"
#include "tools/pwcctl/view.h"

static int look(const struct options *options)
{
    char *json = NULL;
    /* An abstract socket has no file beside it. */
    int rc = strcmp(options->what, "counters") == 0 && options->socket[0] != '@'
                 ? counters_read(options->socket, &json)
                 : request_inspect(options->socket, options->what, &json);
    if (rc < 0)
        return rc;
    if (options->json)
        puts(json);
    else
        rc = view_print(view_find(options->what), json, stdout);
    free(json);
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
    if (options.doctor)
        return doctor_run(options.socket, options.json) != 0;
    if (options.top)
        return top_run(&options) < 0;
    if (options.trace)
        return trace_run(&options) < 0;
    rc = options.watch > 0 ? watch(&options) : look(&options);
    return rc < 0 || ferror(stdout) ? 1 : 0;
}

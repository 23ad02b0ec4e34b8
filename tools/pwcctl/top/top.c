/* Owns the loop of pwcctl top: looks, keys, the clock (top.h). */
#include "tools/pwcctl/top/top.h"
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tools/pwcctl/top/layout.h"
#include "tools/pwcctl/top/source.h"
#include "tools/request.h"
#ifdef PWCCTL_SCREEN
#include "tools/pwcctl/top/screen.h"
#endif

static_assert(OPTIONS_SOCKETS_MAX == TOP_DAEMONS_MAX, "one look at each socket");

#define ANSWER_SECONDS 5.0  /* after this time a look is given up */
#define FIRST_SECONDS  0.25 /* of --batch: from the first look, which has no rates, to the next */

struct top {
    const struct options *options;
    struct top_source sources[OPTIONS_SOCKETS_MAX]; /* as many as options->sockets */
    struct top_look come[OPTIONS_SOCKETS_MAX];      /* answers to the look under way, if has_come */
    bool has_come[OPTIONS_SOCKETS_MAX];
    char why[2 * TOP_TEXT_MAX]; /* why a daemon has not answered; "": all have answered so far */
    struct top_model model;
    struct top_view view;
    struct top_screen screen;
    bool terminal; /* the terminal is open */
    bool end;
    unsigned looks; /* how many were shown, for --batch */
    double next;    /* time of the next look, in seconds */
    double asked;   /* time of the look under way */
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void layout(struct top *top)
{
    char text[16];
    time_t seconds = time(NULL);
    struct tm local;
    strftime(text, sizeof(text), "%H:%M:%S", localtime_r(&seconds, &local));
    top_layout(&top->screen, &top->model, &top->view, text);
}

/* Prints for logs: no blanks at the ends of lines, and no hints. */
static void print(struct top *top)
{
    layout(top);
    for (size_t i = 0; i < top->screen.count; i++) {
        char *text = top->screen.lines[i].text;
        size_t length = strlen(text);
        while (length > 0 && text[length - 1] == ' ')
            text[--length] = '\0';
        puts(text);
    }
    fflush(stdout);
    top->looks++;
    top->end = top->end || ferror(stdout) ||
               (top->options->count > 0 && top->looks == top->options->count);
}

static void show(struct top *top)
{
#ifdef PWCCTL_SCREEN
    if (top->terminal) {
        top_terminal_size(&top->view.width, &top->view.height);
        layout(top);
        top_terminal_show(&top->screen);
    }
#endif
}

static void shown(struct top *top)
{
    if (top->options->batch)
        print(top);
    else
        show(top);
}

static size_t daemons(const struct top *top)
{
    return top->options->socket_count;
}

static bool is_asking(const struct top *top)
{
    for (size_t i = 0; i < daemons(top); i++)
        if (top->sources[i].fd >= 0)
            return true;
    return false;
}

static void drop_looks(struct top *top)
{
    for (size_t i = 0; i < daemons(top); i++) {
        if (top->has_come[i])
            top_look_free(&top->come[i]);
        top->has_come[i] = false;
    }
}

/* Notes that one of the daemons has not answered. The first look must succeed: without it there is
 * nothing to show. */
static int missed(struct top *top, size_t i, int rc)
{
    const char *socket = top->options->sockets[i], *why = top->sources[i].why;
    if (!top->model.seen) {
        const char *advice = rc == -ENOENT || rc == -ECONNREFUSED ? REQUEST_NO_DAEMON : "";
        fprintf(stderr, "pwcctl: %s: %s%s\n", socket, why, advice);
        return rc;
    }
    if (daemons(top) > 1)
        snprintf(top->why, sizeof(top->why), "%s: %s", socket, why);
    else
        snprintf(top->why, sizeof(top->why), "%s", why);
    return 0;
}

/* Shows the looks that have arrived, once no other is under way. */
static int complete(struct top *top)
{
    struct top_look looks[OPTIONS_SOCKETS_MAX];
    bool is_first = !top->model.seen;
    size_t count = 0;
    int rc = 0;
    if (is_asking(top))
        return 0;
    for (size_t i = 0; i < daemons(top); i++)
        if (top->has_come[i])
            looks[count++] = top->come[i];
    if (count > 0) {
        rc = top_model_take(&top->model, looks, count, now());
        if (rc < 0)
            snprintf(top->sources[0].why, sizeof(top->sources[0].why),
                     "its documents make no sense");
    }
    drop_looks(top);
    if (rc < 0) {
        rc = missed(top, 0, rc);
        count = 0;
    }
    if (rc < 0)
        return rc;
    if (top->why[0] != '\0' && count > 0)
        top_model_note(&top->model, top->why);
    else if (top->why[0] != '\0')
        top_model_miss(&top->model, top->why, now());
    if (is_first && top->options->batch) { /* rates need two looks */
        double soon = top->asked + FIRST_SECONDS;
        top->next = soon < top->next ? soon : top->next;
        return 0;
    }
    shown(top);
    return 0;
}

static int begin(struct top *top)
{
    int rc = 0;
    top->asked = now();
    top->next = top->asked + top->options->watch;
    top->why[0] = '\0';
    for (size_t i = 0; rc == 0 && i < daemons(top); i++) {
        int began = top_source_begin(&top->sources[i]);
        if (began < 0)
            rc = missed(top, i, began);
    }
    return rc == 0 ? complete(top) : rc;
}

/* Takes what has arrived from one of the daemons. */
static int take(struct top *top, size_t i)
{
    int rc = top_source_read(&top->sources[i], &top->come[i]);
    if (rc == 0)
        return 0;
    top->has_come[i] = rc > 0;
    if (rc < 0)
        rc = missed(top, i, rc);
    return rc < 0 ? rc : complete(top);
}

/* Gives the daemons up that have not answered in time. */
static int give_up(struct top *top)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < daemons(top); i++) {
        if (top->sources[i].fd < 0)
            continue;
        top_source_end(&top->sources[i], "it does not answer (pwcctl counters needs no answer)");
        rc = missed(top, i, -ETIMEDOUT);
    }
    return rc == 0 ? complete(top) : rc;
}

static void take_keys(struct top *top)
{
#ifdef PWCCTL_SCREEN
    int key;
    while (top->terminal && !top->end && (key = top_terminal_key()) != 0)
        top->end = !top_view_key(&top->view, &top->model, key);
    show(top);
#endif
}

static int wait_ms(const struct top *top)
{
    double until = is_asking(top) ? top->asked + ANSWER_SECONDS : top->next, left = until - now();
    return left < 0 ? 0 : left > 60 ? 60000 : (int)(left * 1000) + 1;
}

static int turn(struct top *top)
{
    struct pollfd wait[1 + OPTIONS_SOCKETS_MAX] = {
        {.fd = top->terminal ? STDIN_FILENO : -1, .events = POLLIN}};
    size_t count = daemons(top);
    for (size_t i = 0; i < count; i++)
        wait[1 + i] = (struct pollfd){.fd = top->sources[i].fd, .events = POLLIN};
    int ready = poll(wait, 1 + count, wait_ms(top));
    int rc = 0;
    if (ready < 0 && errno == EINTR) /* the size has changed, most likely */
        take_keys(top);
    if (ready > 0 && wait[0].revents & (POLLHUP | POLLERR))
        top->end = true;
    else if (ready > 0 && wait[0].revents)
        take_keys(top);
    for (size_t i = 0; rc == 0 && ready > 0 && i < count; i++)
        if (wait[1 + i].revents)
            rc = take(top, i);
    if (rc == 0 && is_asking(top) && now() >= top->asked + ANSWER_SECONDS)
        rc = give_up(top);
    if (rc == 0 && !top->end && !is_asking(top) && now() >= top->next)
        rc = begin(top);
    return rc;
}

/* The width of lines if nothing else sets it: that of an old terminal. */
static int batch_width(void)
{
    const char *columns = getenv("COLUMNS");
    long width = columns ? strtol(columns, NULL, 10) : 0;
    return width >= 20 && width < TOP_LINE_MAX ? (int)width : 80;
}

static int open_terminal(struct top *top)
{
#ifdef PWCCTL_SCREEN
    int rc = top_terminal_open();
    top->terminal = rc == 0;
    return rc;
#else
    fprintf(stderr, "pwcctl: this one was built without ncurses: give --batch\n");
    return -ENOTSUP;
#endif
}

static void close_all(struct top *top)
{
#ifdef PWCCTL_SCREEN
    if (top->terminal)
        top_terminal_close();
#endif
    drop_looks(top);
    for (size_t i = 0; i < daemons(top); i++)
        top_source_free(&top->sources[i]);
    top_model_free(&top->model);
    top_screen_free(&top->screen);
}

int top_run(const struct options *options)
{
    struct top top = {.options = options};
    int rc;
    for (size_t i = 0; i < options->socket_count; i++)
        top_source_init(&top.sources[i], options->sockets[i]);
    top_view_init(&top.view);
    if (options->batch) {
        top.view.width = batch_width();
        top.view.height = 0;
    }
    rc = begin(&top);
    while (rc == 0 && !top.model.seen)
        rc = turn(&top);
    if (rc == 0 && !options->batch) {
        rc = open_terminal(&top);
        show(&top);
    }
    while (rc == 0 && !top.end)
        rc = turn(&top);
    close_all(&top);
    return rc;
}

/* Owns the loop of pwcctl top: looks, keys, the clock (top.h). */
#include "tools/pwcctl/top/top.h"
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
#ifdef PWCCTL_SCREEN
#include "tools/pwcctl/top/screen.h"
#endif

#define ANSWER_SECONDS 5.0  /* then a look is given up */
#define FIRST_SECONDS  0.25 /* of --batch: from the first look, which has no rates, to the next */

struct top {
    const struct options *options;
    struct top_source source;
    struct top_model model;
    struct top_view view;
    struct top_screen screen;
    bool terminal; /* is open */
    bool end;
    unsigned looks; /* shown, of --batch */
    double next;    /* look, in seconds */
    double asked;   /* the one under way */
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

/* The first look must succeed: before it there is nothing to show. */
static int missed(struct top *top, int rc)
{
    if (!top->model.seen) {
        const char *advice = rc == -ENOENT || rc == -ECONNREFUSED
                                 ? ": no daemon serves there (name its socket with --socket)"
                                 : "";
        fprintf(stderr, "pwcctl: %s: %s%s\n", top->options->socket, top->source.why, advice);
        return rc;
    }
    top_model_miss(&top->model, top->source.why, now());
    shown(top);
    return 0;
}

static int begin(struct top *top)
{
    int rc = top_source_begin(&top->source);
    top->asked = now();
    top->next = top->asked + top->options->watch;
    return rc < 0 ? missed(top, rc) : 0;
}

static int take(struct top *top)
{
    struct top_look look;
    bool is_first = !top->model.seen;
    int rc = top_source_read(&top->source, &look);
    if (rc == 0)
        return 0;
    if (rc > 0) {
        rc = top_model_take(&top->model, &look, now());
        top_look_free(&look);
        if (rc < 0)
            snprintf(top->source.why, sizeof(top->source.why), "its documents make no sense");
    }
    if (rc < 0)
        return missed(top, rc);
    if (is_first && top->options->batch) { /* rates are of two looks */
        double soon = top->asked + FIRST_SECONDS;
        top->next = soon < top->next ? soon : top->next;
        return 0;
    }
    shown(top);
    return 0;
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

static bool is_asking(const struct top *top)
{
    return top->source.fd >= 0;
}

static int wait_ms(const struct top *top)
{
    double until = is_asking(top) ? top->asked + ANSWER_SECONDS : top->next, left = until - now();
    return left < 0 ? 0 : left > 60 ? 60000 : (int)(left * 1000) + 1;
}

static int turn(struct top *top)
{
    struct pollfd wait[2] = {{.fd = top->source.fd, .events = POLLIN},
                             {.fd = top->terminal ? STDIN_FILENO : -1, .events = POLLIN}};
    int ready = poll(wait, 2, wait_ms(top));
    int rc = 0;
    if (ready < 0 && errno == EINTR) /* the size has changed, most likely */
        take_keys(top);
    if (ready > 0 && wait[1].revents & (POLLHUP | POLLERR))
        top->end = true;
    else if (ready > 0 && wait[1].revents)
        take_keys(top);
    if (ready > 0 && wait[0].revents)
        rc = take(top);
    if (rc == 0 && is_asking(top) && now() >= top->asked + ANSWER_SECONDS) {
        top_source_end(&top->source, "it does not answer (pwcctl counters needs no answer)");
        rc = missed(top, -ETIMEDOUT);
    }
    if (rc == 0 && !top->end && !is_asking(top) && now() >= top->next)
        rc = begin(top);
    return rc;
}

/* The width of lines where nothing sets it: that of an old terminal. */
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
    top_source_free(&top->source);
    top_model_free(&top->model);
    top_screen_free(&top->screen);
}

int top_run(const struct options *options)
{
    struct top top = {.options = options};
    int rc;
    top_source_init(&top.source, options->socket);
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

/* Owns what a scrape is given: asks the daemon, and keeps the text for those who come at once. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "tools/pwc-exporter/exporter.h"
#include "tools/request.h"

#define FRESH_NS UINT64_C(250000000)
#define WHY_MAX  768

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* A view of the daemon; NULL with the reason. */
static json_t *ask(const char *socket, const char *view, char *why, size_t why_size)
{
    char *answer;
    json_t *document;

    if (request_try(socket, view, &answer, why, why_size) < 0)
        return NULL;
    document = json_loads(answer, 0, NULL);
    free(answer);
    if (!json_is_object(document)) {
        snprintf(why, why_size, "%s: the answer for \"%s\" is no JSON object", socket, view);
        json_decref(document);
        return NULL;
    }
    return document;
}

static bool ask_all(const struct exporter_options *o, struct documents *d, char *why,
                    size_t why_size)
{
    d->counters = ask(o->socket, "counters", why, why_size);
    d->latency = d->counters ? ask(o->socket, "latency", why, why_size) : NULL;
    d->clients = d->latency && o->clients ? ask(o->socket, "clients", why, why_size) : NULL;
    return d->latency && (d->clients || !o->clients);
}

/* Says once that the daemon does not answer, and once that it does again. */
static void note(struct scrape *s, bool down, const char *why)
{
    if (down && (!s->down || s->asked_ns == 0))
        fprintf(stderr, "pwc-exporter: %s\n", why);
    else if (!down && s->down)
        fprintf(stderr, "pwc-exporter: %s: the daemon answers again\n", s->options->socket);
    s->down = down;
}

static void read_daemon(struct scrape *s)
{
    struct documents d = {0};
    char why[WHY_MAX] = "";
    bool whole = ask_all(s->options, &d, why, sizeof(why));

    note(s, !whole, why);
    for (int i = 0; i < 2; i++) {
        free(s->text[i].text);
        s->text[i] = (struct openmetrics){.plain = i == 1};
        render(&s->text[i], whole ? &d : NULL);
    }
    json_decref(d.counters);
    json_decref(d.latency);
    json_decref(d.clients);
    s->asked_ns = now_ns();
}

const struct openmetrics *scrape_text(struct scrape *s, bool plain)
{
    if (s->asked_ns == 0 || now_ns() - s->asked_ns >= FRESH_NS)
        read_daemon(s);
    return s->text[plain].failed ? NULL : &s->text[plain];
}

void scrape_free(struct scrape *s)
{
    free(s->text[0].text);
    free(s->text[1].text);
}

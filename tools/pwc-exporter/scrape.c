/* Owns the text that a scrape gets: asks the daemon, and keeps the text for scrapes that come soon
 * after. */
#include <stdio.h>
#include <stdlib.h>
#include "tools/pwc-exporter/exporter.h"
#include "tools/request.h"
#include "proto/clock.h"

#define FRESH_NS UINT64_C(250000000)
#define WHY_MAX  768

static bool ask_all(const struct exporter_options *o, struct documents *d, char *why)
{
    return request_document(o->socket, "counters", &d->counters, why, WHY_MAX) == 0 &&
           request_document(o->socket, "latency", &d->latency, why, WHY_MAX) == 0 &&
           (!o->clients || request_document(o->socket, "clients", &d->clients, why, WHY_MAX) == 0);
}

/* Prints once that the daemon does not answer, and once that it does again. */
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
    bool whole = ask_all(s->options, &d, why);

    note(s, !whole, why);
    scrape_free(s);
    for (int plain = 0; plain < 2; plain++)
        s->text[plain] = render(whole ? &d : NULL, plain);
    json_decref(d.counters);
    json_decref(d.latency);
    json_decref(d.clients);
    s->asked_ns = now_ns();
}

const char *scrape_text(struct scrape *s, bool plain)
{
    if (s->asked_ns == 0 || now_ns() - s->asked_ns >= FRESH_NS)
        read_daemon(s);
    return s->text[plain];
}

void scrape_free(struct scrape *s)
{
    free(s->text[0]);
    free(s->text[1]);
}

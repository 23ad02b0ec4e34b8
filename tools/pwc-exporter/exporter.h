/*
 * pwc-exporter: serves the metrics of one daemon to Prometheus.
 *
 *     Prometheus --GET /metrics--> serve.c --> scrape.c --Inspect--> the daemon's socket
 *                <--text----------         <-- render.c <--JSON----
 *
 * Threads: main's reads the options and waits for a signal; libmicrohttpd's does the rest.
 */
#ifndef PWC_EXPORTER_H
#define PWC_EXPORTER_H

#include <jansson.h>
#include <stdbool.h>
#include "tools/pwc-exporter/openmetrics.h"

struct exporter_options {
    const char *socket; /* the daemon's */
    const char *listen; /* PORT or HOST:PORT */
    bool clients;       /* metrics of single clients, too */
};

/* The address to listen on. */
struct exporter_address {
    char host[256], port[8];
};

/* Parses PORT (of 127.0.0.1) or HOST:PORT; port 0 is any that is free. Returns false if the text is
 * neither. */
bool exporter_address_parse(const char *text, struct exporter_address *out);

/* Serves until SIGTERM or SIGINT. 0, or a negative errno after a message on stderr. */
int exporter_serve(const struct exporter_options *options, const struct exporter_address *at);

/* The text that scrapes get: the daemon is asked at most four times a second. */
struct scrape {
    const struct exporter_options *options;
    char *text[2];     /* OpenMetrics; plain */
    uint64_t asked_ns; /* when the texts were made; 0: they were not */
    bool down;         /* the daemon did not answer then */
};

/* Returns the text in this format; NULL without memory. */
const char *scrape_text(struct scrape *s, bool plain);
void scrape_free(struct scrape *s);

/* The daemon's documents. */
struct documents {
    json_t *counters, *latency;
    json_t *clients; /* NULL: no rows of clients */
};

/* Renders the metrics; the caller frees them. NULL without memory. `d` NULL: the daemon does not
 * answer. */
char *render(const struct documents *d, bool plain);

#endif

/*
 * Metrics over HTTP: "GET /metrics" where the key metrics says, and nothing else.
 *
 *     connection --head--> asks the progress threads to write their counters --(1 s at most)-->
 * text
 *          \--it is not older than 250 ms------------------------------------------------------/
 *
 * Who asks is a stranger: his head has a bound, his connection 5 s in all, there are 8 of them and
 * the oldest makes room for the ninth, and nobody has the counters written more than four times a
 * second. One text is shared by all who get it.
 *
 * Thread: control.
 */
#ifndef PWC_CONTROL_SCRAPE_H
#define PWC_CONTROL_SCRAPE_H

#include "daemon/control/control.h"

/* Listens, where the key is given. In a process that takes over, clients go before metrics: it says
 * what is wrong, and serves without. */
int scrape_open(struct control *control);
/* Ends what is under way; memory goes when the loop has run out and threads have ended. */
void scrape_close(struct control *control);
void scrape_free(struct control *control);
/* "host:port" with the port that it is, or NULL: it is off. */
const char *scrape_address(const struct control *control);

/* PORT (of 127.0.0.1) or host:port; port 0 is any that is free. -EINVAL with the reason. */
int scrape_parse(const char *text, struct node_address *out, char *why, size_t why_size);

#endif

/* Writes down each put before it is placed: its origin, place and length (the paper's transaction
 * log). The client reads entries from `read` on, and moves it; while the log is full, puts fail. */
#include <pwc/handler.h>

enum { ENTRIES = 64 };

struct entry {
    pwc_peer peer;
    uint64_t id, place, length;
};

struct transaction_log {
    uint64_t written, read; /* entries, since the beginning */
    struct entry entries[ENTRIES];
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct transaction_log *log)
{
    struct entry *e = &log->entries[log->written % ENTRIES];

    if (log->written - log->read >= ENTRIES)
        return PWC_H_FAIL;
    e->peer = p->peer;
    e->id = p->id;
    e->place = p->place;
    e->length = p->total;
    log->written++;
    return PWC_H_PROCEED;
}

/* Logs each put before it is placed, and, with PWC_OFFLOAD_OBSERVE, each get after its end: kind,
 * origin, place and length (the transaction log of the sPIN paper). The client reads entries from
 * `read` on, and advances `read`. While the log is full, puts fail, and `missed` counts gets. */
#include <pwc/handler.h>

enum { ENTRIES = 64 };

struct entry {
    pwc_peer peer;
    uint64_t id, place, length;
    uint64_t kind; /* PWC_H_PUT or PWC_H_OBSERVED */
};

struct transaction_log {
    uint64_t written, read; /* entries, since the beginning */
    uint64_t missed;
    struct entry entries[ENTRIES];
};

PWC_HANDLER int header(const struct pwc_h_packet *p, struct transaction_log *log)
{
    struct entry *e = &log->entries[log->written % ENTRIES];

    if (log->written - log->read >= ENTRIES) {
        if (p->kind == PWC_H_OBSERVED)
            log->missed++;
        return PWC_H_FAIL;
    }
    e->peer = p->peer;
    e->id = p->id;
    e->place = p->place;
    e->length = p->total;
    e->kind = p->kind;
    log->written++;
    return PWC_H_PROCEED;
}

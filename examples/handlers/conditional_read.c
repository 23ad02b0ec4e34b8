/* SELECT name FROM rows WHERE id = ...: a request says which id to look for, and in which rows; the
 * reply has only the names that match (conditional read in the sPIN paper). The region is an array
 * of rows. */
#include <pwc/handler.h>

struct row {
    uint64_t id;
    char name[24];
};

enum { REPLY_ROWS = 16 };

/* State: where the reply is put together. */
struct conditional_read {
    char names[REPLY_ROWS][24];
};

/* Arguments of a request: id, first row, number of rows. Arguments of the reply: how many rows
 * match, and the row to continue from. */
PWC_HANDLER int header(const struct pwc_h_packet *p, struct conditional_read *s)
{
    const uint64_t *args = p->header;
    const struct row *rows = pwc_h_host(0);
    uint64_t i = args[1], end = args[1] + args[2], found = 0, reply[2];

    for (; i < end && found < REPLY_ROWS; i++)
        if (rows[i].id == args[0])
            pwc_h_copy(s->names[found++], rows[i].name, sizeof(rows[i].name));
    reply[0] = found;
    reply[1] = i;
    if (pwc_h_reply(reply, 2, s->names, found * sizeof(s->names[0])) == PWC_H_EAGAIN)
        return PWC_H_AGAIN;
    return PWC_H_DROP; /* the client need not see the request */
}

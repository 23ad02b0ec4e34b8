/* Handlers that stay just below a limit of the daemon. The message's first argument chooses the
 * limit; rows_handlers.c sends these messages. */
#include <pwc/handler.h>

enum { COMPUTE, FAIL, REPLY, SEND, AGAIN, PAGES, SCATTER };
enum { TURNS = 1500, PAGES_EACH = 16, PAGE = 4096, PAGES_ALL = 256, SINGLE_BYTES = 128 };

struct limits {
    uint64_t page; /* the page that is touched next */
    uint8_t memory[];
};

static int compute(void)
{
    uint64_t value = 1;

    for (unsigned i = 0; i < TURNS; i++)
        value = value * 5 + i;
    return value ? PWC_H_DROP : PWC_H_FAIL;
}

/* Puts to the origin, which takes no events, so at some time there is no room for a put. */
static int send(const struct pwc_h_packet *p, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (pwc_h_put(0, 0, p->header, 8, i + 1, 0) == PWC_H_EAGAIN)
            return PWC_H_AGAIN;
    return PWC_H_DROP;
}

static int touch(struct limits *s)
{
    for (unsigned i = 0; i < PAGES_EACH; i++) {
        s->page = (s->page + 1) % (PAGES_ALL - 1);
        s->memory[s->page * PAGE]++;
    }
    return PWC_H_DROP;
}

/* Single bytes, each in a page of its own. */
static int scatter(struct limits *s)
{
    const struct pwc_h_vector pages = {.block = 1, .stride = PAGE};

    return pwc_h_scatter(s->memory, s->memory, SINGLE_BYTES, &pages) == 0 ? PWC_H_DROP : PWC_H_FAIL;
}

PWC_HANDLER int header(const struct pwc_h_packet *p, struct limits *s)
{
    const uint64_t *args = p->header;

    switch (args[0]) {
    case COMPUTE:
        return compute();
    case FAIL:
        return PWC_H_FAIL;
    case REPLY:
        return pwc_h_reply(args, 1, 0, 0) == PWC_H_EAGAIN ? PWC_H_AGAIN : PWC_H_DROP;
    case SEND:
        return send(p, 8);
    case AGAIN:
        return send(p, 32);
    case PAGES:
        return touch(s);
    case SCATTER:
        return scatter(s);
    }
    return PWC_H_DROP;
}

/* The operations of operations.h. */
#include "tests/clientlib/daemon/operations.h"

#include "pwc/am.h"
#include "pwc/atomic.h"
#include "pwc/signal.h"
#include "pwc/vector.h"
#include "tests/clientlib/daemon/two_contexts.h"
#include "tests/lib/message.h"

int operation_put(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    (void)w;
    return pwc_put(to, off, "12345678", 8, lid, PWC_CID_NONE, PWC_NO_RCE);
}

static int do_note(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    (void)w;
    return pwc_put(to, off, NULL, 0, lid, PWC_CID_NONE, 0);
}

static int do_get(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    return pwc_get(to, off, w->memory + BIG, 8, lid, PWC_CID_NONE, PWC_NO_RCE);
}

static int do_putv(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    const struct pwc_piece pieces[] = {{off, (void *)(uintptr_t) "1234", 4},
                                       {off + 16, (void *)(uintptr_t) "5678", 4}};

    (void)w;
    return pwc_putv(to, pieces, 2, lid, PWC_CID_NONE, PWC_NO_RCE);
}

static int do_atomic(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    const uint64_t one = 1;

    (void)w;
    return pwc_atomic(to, off, PWC_ADD, PWC_U64, &one, 1, lid, PWC_CID_NONE, PWC_NO_RCE);
}

static int do_signal(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    (void)w;
    return pwc_put_signal(to, 8, "1", 1, off, 1, PWC_ADD, lid, 0);
}

static int do_message(pwc_remote *to, int kind, uint64_t off, size_t len, pwc_cid lid)
{
    return message_request(
        kind, to, off,
        (struct pwc_am_send){
            .index = HANDLER, .src = "12345678", .len = len, .lid = lid, .flags = PWC_AM_NO_REPLY});
}

static int do_short(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    (void)w;
    return do_message(to, PWC_AM_SHORT, off, 0, lid);
}

static int do_medium(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    (void)w;
    return do_message(to, PWC_AM_MEDIUM, off, 8, lid);
}

static int do_long(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    (void)w;
    return do_message(to, PWC_AM_LONG, off, 8, lid);
}

static int do_prepared(struct world *w, pwc_remote *to, uint64_t off, pwc_cid lid)
{
    void *payload;
    int rc = pwc_am_prepare(to, 8, 0, lid, PWC_AM_NO_REPLY, &payload);

    (void)off;
    return rc < 0 ? rc : pwc_am_commit(w->ctx, HANDLER, 0, NULL);
}

const struct operation_case operations[OPERATIONS] = {
    {operation_put, true}, {do_note, true},      {do_get, true},    {do_putv, true},
    {do_atomic, true},     {do_signal, true},    {do_short, false}, {do_medium, false},
    {do_long, true},       {do_prepared, false},
};

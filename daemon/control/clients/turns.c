/* Owns the users' lines (turns.h). Thread: control. */
#include "daemon/control/clients/turns.h"

/* More would have the engines, or other nodes, work for this user alone. */
static bool has_enough(const struct quota_user *u)
{
    return u->calls >= TURN_CALLS_MAX || u->pending >= TURN_PENDING_MAX;
}

/* In a new turn of the loop nothing has been taken yet. */
static void begin(struct quota_user *u, uint64_t turn)
{
    if (u->turn == turn)
        return;
    u->turn = turn;
    u->taken = u->called = 0;
}

static void line_up(struct client *c)
{
    struct quota_user *u = c->user;

    c->in_line = true;
    c->behind = NULL;
    *(u->line ? &u->line_last->behind : &u->line) = c;
    u->line_last = c;
    c->control->in_line++;
}

bool turns_may(struct client *c)
{
    struct quota_user *u = c->user;

    begin(u, c->control->turn);
    if (u->taken < TURN_REQUESTS && !has_enough(u))
        return true;
    if (!c->in_line)
        line_up(c);
    return false;
}

void turns_count(struct client *c)
{
    c->user->taken++;
}

void turns_leave(struct client *c)
{
    struct quota_user *u = c->user;
    struct client **at = &u->line, *before = NULL;

    if (!c->in_line)
        return;
    for (; *at != c; at = &(*at)->behind)
        before = *at;
    *at = c->behind;
    if (u->line_last == c)
        u->line_last = before;
    c->in_line = false;
    c->control->in_line--;
}

struct client *turns_next(struct control *control)
{
    for (struct quota_user *u = control->users; u && control->in_line > 0; u = u->next) {
        struct client *c = u->line;

        begin(u, control->turn);
        if (!c || has_enough(u) || u->called == TURN_REQUESTS)
            continue;
        u->called++;
        turns_leave(c);
        return c;
    }
    return NULL;
}

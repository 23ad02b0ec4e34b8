/* Owns the users' lines (turns.h). Thread: control. */
#include "daemon/control/clients/turns.h"

static bool is_alone(const struct control *control, const struct quota_user *u)
{
    for (const struct quota_user *other = control->users; other; other = other->next)
        if (other != u && other->held[QUOTA_CLIENTS] > 0)
            return false;
    return true;
}

/* A timer runs before the loop polls, and the poll might block. So wake the poll: after it, the
 * loop looks at the lines. */
static void paid(uv_timer_t *timer)
{
    struct control *control = timer->data;

    uv_async_send(&control->resume);
}

/* Whether the user, while there are other users, has used more of this thread's time than it may.
 * The user has a turn again once its debt is paid. */
static bool owes(struct control *control, struct quota_user *u)
{
    uint64_t wait_ms = account_wait_ms(&u->account);
    uv_timer_t *paying = &control->paying;

    if (wait_ms == 0)
        return false;
    if (is_alone(control, u)) {
        account_forgive(&u->account);
        return false;
    }
    if (!uv_is_active((uv_handle_t *)paying) || uv_timer_get_due_in(paying) > wait_ms)
        uv_timer_start(paying, paid, wait_ms, 0);
    return true;
}

/* Whether the user has so much under way that with more, the engines, other nodes or this thread
 * would work for this user alone. */
static bool has_enough(struct control *control, struct quota_user *u)
{
    return u->calls >= TURN_CALLS_MAX || u->pending >= TURN_PENDING_MAX || owes(control, u);
}

/* Starts the user's counts anew in a new turn of the loop. */
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
    if (u->taken < TURN_REQUESTS && !has_enough(c->control, u))
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
        if (!c || u->called == TURN_REQUESTS || has_enough(control, u))
            continue;
        u->called++;
        turns_leave(c);
        return c;
    }
    return NULL;
}

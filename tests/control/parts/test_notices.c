/*
 * Notices of an engine: the control thread's time for a notice is charged to the user of the client
 * that the notice is about. The test plays the modules that handle notices.
 *
 * Thread: one.
 */
#include <string.h>
#include "daemon/control/clients/client.h"
#include "daemon/control/notices.h"
#include "tests/suite.h"

#define HANDLE 1u

static struct control control;
static struct quota_user user;
static struct client client;
static const struct account *charged; /* while the last notice was handled */
static uint32_t handled;

/* ---- in place of the modules ----------------------------------------------------------------- */

void __wrap_segment_ready(struct worker *w, uint32_t handle, int status);
void __wrap_segment_closed(struct worker *w, uint32_t handle);
void __wrap_region_closed(struct control *c, uint64_t cookie);
void __wrap_bind_ended(struct control *c, const struct engine_notice *notice);
void __wrap_session_closed(struct worker *w, uint32_t handle);
void __wrap_offload_ready(struct control *c, const struct engine_notice *notice);
void __wrap_offload_closed(struct worker *w, uint32_t session);
void __wrap_request_hello_rank_left(const struct client *left);
void __wrap_client_end(struct client *c, const char *reason);
void __wrap_team_closed(struct worker *w, uint32_t handle);

static void note(void)
{
    charged = control.charged;
    handled++;
}

void __wrap_segment_ready(struct worker *w, uint32_t handle, int status)
{
    note();
}

void __wrap_segment_closed(struct worker *w, uint32_t handle)
{
    note();
}

void __wrap_region_closed(struct control *c, uint64_t cookie)
{
    note();
}

void __wrap_bind_ended(struct control *c, const struct engine_notice *notice)
{
    note();
}

void __wrap_session_closed(struct worker *w, uint32_t handle)
{
    note();
}

void __wrap_offload_ready(struct control *c, const struct engine_notice *notice)
{
    note();
}

void __wrap_offload_closed(struct worker *w, uint32_t session)
{
    note();
}

void __wrap_request_hello_rank_left(const struct client *left)
{
    note();
}

void __wrap_client_end(struct client *c, const char *reason)
{
    note();
}

void __wrap_team_closed(struct worker *w, uint32_t handle)
{
    note();
}

/* ---- the test -------------------------------------------------------------------------------- */

/* Takes a notice of this kind. `known`: what it names is the client's. */
static void take(uint32_t kind, bool known)
{
    struct client_session session = {.client = &client};
    struct client_segment segment = {.client = &client};
    struct client *clients[HANDLE + 1] = {[HANDLE] = known ? &client : NULL};
    struct client_session *sessions[HANDLE + 1] = {[HANDLE] = known ? &session : NULL};
    struct client_segment *segments[HANDLE + 1] = {[HANDLE] = known ? &segment : NULL};
    struct worker w = {.control = &control,
                       .clients = 1,
                       .config = {.clients_max = HANDLE + 1,
                                  .sessions_max = HANDLE + 1,
                                  .segments_max = HANDLE + 1},
                       .by_handle = clients,
                       .sessions = sessions,
                       .segments = segments};
    struct engine_notice notice = {.kind = kind, .handle = HANDLE};
    struct pending *p;

    control = (struct control){0};
    user = (struct quota_user){.uid = 1};
    client = (struct client){.control = &control, .user = &user, .number = HANDLE, .worker = &w};
    pending_init(&control.pending);
    p = pending_add(&control.pending, PENDING_BIND, &client, 1, &notice.cookie);
    CU_ASSERT_PTR_NOT_NULL_FATAL(p);
    if (!known)
        pending_remove(&control.pending, p);
    charged = NULL;
    handled = 0;
    notice_take(&w, &notice);
    CU_ASSERT_PTR_NULL(control.charged);
    pending_destroy(&control.pending);
}

static void charged_to_the_user(void)
{
    static const uint32_t kinds[] = {
        ENGINE_SEGMENT_READY,  ENGINE_SEGMENT_CLOSED, ENGINE_REGION_CLOSED,
        ENGINE_BOUND,          ENGINE_SESSION_CLOSED, ENGINE_OFFLOAD_READY,
        ENGINE_OFFLOAD_CLOSED, ENGINE_CLIENT_CLOSED,  ENGINE_QUARANTINED,
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        take(kinds[i], true);
        CU_ASSERT_EQUAL(handled, 1);
        CU_ASSERT_PTR_EQUAL(charged, &user.account);
        if (kinds[i] == ENGINE_CLIENT_CLOSED) /* the engine's client is an earlier process's */
            continue;
        take(kinds[i], false);
        CU_ASSERT_PTR_NULL(charged);
    }
    take(ENGINE_TEAM_CLOSED, true); /* a team has members of several clients */
    CU_ASSERT_EQUAL(handled, 1);
    CU_ASSERT_PTR_NULL(charged);
}

int main(void)
{
    CU_TestInfo tests[] = {{"charged to the user", charged_to_the_user}, CU_TEST_INFO_NULL};

    return suite_run("notices", tests);
}

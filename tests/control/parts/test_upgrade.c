/*
 * Which users may ask for a hand-over to another program, and what they are answered. Also that a
 * request for a trace is passed on to the module for traces. The test replaces the hand-over by the
 * result in each row (test_handover tests the real one).
 *
 * Thread: one.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "tests/suite.h"
#include "daemon/control/clients/client.h"
#include "daemon/control/survive/handover.h"
#include "daemon/control/watch/tracing.h"
#include "daemon/control/requests/requests.h"

#define NOBODY   65534u /* any user who is not root */
#define OTHER    65533u
#define QUESTION 7u

static struct {
    int status; /* result of the next hand-over */
    const char *why;
    unsigned begun, traced, answers;
    int answer;
    char text[512];
} t;

int __wrap_handover_begin(struct control *control, const char *program, struct client *client,
                          uint32_t request, char *why, size_t why_size);
void __wrap_request_trace(struct client *c, uint32_t request);
void __wrap_client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                         uint32_t count);

int __wrap_handover_begin(struct control *control, const char *program, struct client *client,
                          uint32_t request, char *why, size_t why_size)
{
    CU_ASSERT_STRING_EQUAL(program, "/p");
    CU_ASSERT_EQUAL(request, QUESTION);
    t.begun++;
    snprintf(why, why_size, "%s", t.why);
    return t.status;
}

void __wrap_request_trace(struct client *c, uint32_t request)
{
    CU_ASSERT_EQUAL(request, QUESTION);
    t.traced++;
}

void __wrap_client_reply(struct client *c, const Pwc__ClientReply *reply, const int *descriptors,
                         uint32_t count)
{
    t.answers++;
    CU_ASSERT_EQUAL_FATAL(reply->body_case, PWC__CLIENT_REPLY__BODY_ERROR);
    t.answer = reply->error->status;
    snprintf(t.text, sizeof(t.text), "%s", reply->error->text);
}

static void upgrades(void)
{
    static const struct {
        unsigned user, daemon; /* daemon 0: the user that runs the test */
        enum client_state state;
        int status;
        const char *why;
        int answer; /* status of the answer; 0: no answer yet */
        const char *says;
    } rows[] = {
        {0, 0, CLIENT_LOOKING, 0, "", 0, ""},
        {0, 0, CLIENT_SERVED, 0, "", 0, ""},
        {0, NOBODY, CLIENT_LOOKING, 0, "", 0, ""},
        {NOBODY, NOBODY, CLIENT_LOOKING, 0, "", 0, ""},
        {OTHER, NOBODY, CLIENT_LOOKING, 0, "", -EPERM, "user 65533 may not do that"},
        {OTHER, 0, CLIENT_SERVED, 0, "", -EPERM, "root and the daemon's user may"},
        {0, 0, CLIENT_LOOKING, -ENOENT, "no such program", -ENOENT, "no such program"},
        {0, 0, CLIENT_LOOKING, -ENOMEM, "", -ENOMEM, "Cannot allocate memory"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct client c = {.uid = rows[i].user, .state = rows[i].state};
        Pwc__Upgrade upgrade = PWC__UPGRADE__INIT;
        Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;

        if (rows[i].daemon != 0 && geteuid() != 0) {
            printf("row %zu left out: only root can be another ", i);
            continue;
        }
        memset(&t, 0, sizeof(t));
        t.status = rows[i].status;
        t.why = rows[i].why;
        upgrade.program = (char *)(uintptr_t) "/p";
        request.id = QUESTION;
        request.body_case = PWC__CLIENT_REQUEST__BODY_UPGRADE;
        request.upgrade = &upgrade;
        if (rows[i].daemon != 0)
            CU_ASSERT_EQUAL_FATAL(seteuid(rows[i].daemon), 0);
        request_handle(&c, &request);
        if (rows[i].daemon != 0)
            CU_ASSERT_EQUAL_FATAL(seteuid(0), 0);
        CU_ASSERT_EQUAL(t.begun, rows[i].answer != -EPERM);
        CU_ASSERT_EQUAL(t.answers, rows[i].answer != 0);
        CU_ASSERT_EQUAL(t.answer, rows[i].answer);
        CU_ASSERT_PTR_NOT_NULL(strstr(t.text, rows[i].says));
    }
}

static void traces(void)
{
    struct client c = {.state = CLIENT_LOOKING};
    Pwc__Trace trace = PWC__TRACE__INIT;
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;

    memset(&t, 0, sizeof(t));
    request.id = QUESTION;
    request.body_case = PWC__CLIENT_REQUEST__BODY_TRACE;
    request.trace = &trace;
    request_handle(&c, &request);
    CU_ASSERT_EQUAL(t.traced, 1);
    CU_ASSERT_EQUAL(t.answers, 0);
}

int main(void)
{
    CU_TestInfo tests[] = {{"upgrades", upgrades}, {"traces", traces}, CU_TEST_INFO_NULL};

    return suite_run("upgrade", tests);
}

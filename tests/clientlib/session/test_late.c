/* Answers that arrive after their caller gave up, and the requests that undo what the daemon made
 * for them (clientlib/attach/late.h). One thread. */
#include <CUnit/CUnit.h>
#include "clientlib/attach/late.h"
#include "tests/suite.h"

/* Each kind of late answer leads to the request that undoes it, with the right number. An error
 * leads to none, and each answer counts once. */
static void test_ends_of_late_answers(void)
{
    Pwc__Bind bind = PWC__BIND__INIT;
    Pwc__OffloadCreate create = PWC__OFFLOAD_CREATE__INIT;
    Pwc__ProgramLoaded loaded = PWC__PROGRAM_LOADED__INIT;
    Pwc__OffloadCreated created = PWC__OFFLOAD_CREATED__INIT;
    Pwc__Bound bound = PWC__BOUND__INIT;
    Pwc__Pair pair = PWC__PAIR__INIT;
    Pwc__TeamJoin join = PWC__TEAM_JOIN__INIT;
    Pwc__TeamFormed formed = PWC__TEAM_FORMED__INIT;
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__ClientReply reply = PWC__CLIENT_REPLY__INIT;
    struct late *list = NULL;
    struct late_end end;

    bind.session = 3;
    create.session = 4;
    bound.remote = 5;
    loaded.program = 6;
    created.offload = 7;
    join.session = 8;
    formed.number = 9;

    request.id = reply.id = 1;
    request.body_case = PWC__CLIENT_REQUEST__BODY_BIND;
    request.bind = &bind;
    late_note(&list, &request);
    reply.body_case = PWC__CLIENT_REPLY__BODY_BOUND;
    reply.bound = &bound;
    CU_ASSERT_TRUE_FATAL(late_answer(&list, &reply, &end));
    CU_ASSERT_EQUAL(end.request.body_case, PWC__CLIENT_REQUEST__BODY_UNBIND);
    CU_ASSERT_TRUE(end.request.unbind->session == 3 && end.request.unbind->remote == 5);
    CU_ASSERT_EQUAL(end.request.unbind->pair, 0);
    CU_ASSERT_FALSE(late_answer(&list, &reply, &end));

    /* A fresh pair ends with the remote; one that the library has already stays. */
    bound.pair = &pair;
    pair.number = 8;
    for (unsigned fresh = 0; fresh < 2; fresh++) {
        pair.fresh = fresh;
        late_note(&list, &request);
        CU_ASSERT_TRUE_FATAL(late_answer(&list, &reply, &end));
        CU_ASSERT_EQUAL(end.request.unbind->pair, fresh ? 8 : 0);
    }

    request.body_case = PWC__CLIENT_REQUEST__BODY_PROGRAM_LOAD;
    late_note(&list, &request);
    reply.body_case = PWC__CLIENT_REPLY__BODY_PROGRAM_LOADED;
    reply.program_loaded = &loaded;
    CU_ASSERT_TRUE_FATAL(late_answer(&list, &reply, &end));
    CU_ASSERT_EQUAL(end.request.body_case, PWC__CLIENT_REQUEST__BODY_PROGRAM_UNLOAD);
    CU_ASSERT_EQUAL(end.request.program_unload->program, 6);

    request.body_case = PWC__CLIENT_REQUEST__BODY_OFFLOAD_CREATE;
    request.offload_create = &create;
    late_note(&list, &request);
    reply.id = 2;
    CU_ASSERT_FALSE(late_answer(&list, &reply, &end)); /* answers another request */
    reply.id = 1;
    reply.body_case = PWC__CLIENT_REPLY__BODY_OFFLOAD_CREATED;
    reply.offload_created = &created;
    CU_ASSERT_TRUE_FATAL(late_answer(&list, &reply, &end));
    CU_ASSERT_EQUAL(end.request.body_case, PWC__CLIENT_REQUEST__BODY_OFFLOAD_DESTROY);
    CU_ASSERT_TRUE(end.request.offload_destroy->session == 4 &&
                   end.request.offload_destroy->offload == 7);

    request.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_JOIN;
    request.team_join = &join;
    late_note(&list, &request);
    reply.body_case = PWC__CLIENT_REPLY__BODY_TEAM_FORMED;
    reply.team_formed = &formed;
    CU_ASSERT_TRUE_FATAL(late_answer(&list, &reply, &end));
    CU_ASSERT_EQUAL(end.request.body_case, PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE);
    CU_ASSERT_TRUE(end.request.team_leave->session == 8 && end.request.team_leave->number == 9 &&
                   end.request.team_leave->broken);
    late_note(&list, &request);
    formed.number = 0; /* the member is in no team */
    CU_ASSERT_FALSE(late_answer(&list, &reply, &end));

    late_note(&list, &request);
    reply.body_case = PWC__CLIENT_REPLY__BODY_ERROR;
    CU_ASSERT_FALSE(late_answer(&list, &reply, &end));
    request.body_case = PWC__CLIENT_REQUEST__BODY_EXCHANGE;
    late_note(&list, &request);
    CU_ASSERT_PTR_NULL(list);
    late_destroy(&list);
}

int main(void)
{
    CU_TestInfo tests[] = {{"how late answers are ended", test_ends_of_late_answers},
                           CU_TEST_INFO_NULL};

    return suite_run("late", tests);
}

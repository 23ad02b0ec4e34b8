/* Builds requests for teams, and reads answers (team.h). Thread: one at a time for each socket. */
#include "tests/lib/raw/team.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include "proto/team_abi.h"
#include "tests/lib/daemon.h"
#include "tests/lib/raw/ask.h"

Pwc__TeamJoin raw_team_call(uint32_t session, uint64_t parent, uint32_t call)
{
    Pwc__TeamJoin join = PWC__TEAM_JOIN__INIT;

    join.session = join.member = session;
    join.parent = parent;
    join.call = call;
    join.window = 64;
    join.area = TEAM_VERSION;
    return join;
}

bool raw_team_join(int socket, const Pwc__TeamJoin *join)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;

    r.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_JOIN;
    r.team_join = (Pwc__TeamJoin *)(uintptr_t)join;
    return raw_request(socket, 9, &r);
}

int raw_team_formed(int socket, struct raw_team *out)
{
    Pwc__ClientReply *reply;
    int fds[3], count = 0;

    *out = (struct raw_team){.status = -ECONNRESET, .area = -1};
    reply = raw_reply(socket, fds, &count);
    if (!reply)
        return out->status;
    for (int i = 0; i < count; i++)
        out->area = fds[i];
    if (reply->body_case == PWC__CLIENT_REPLY__BODY_ERROR) {
        out->status = reply->error->status;
        snprintf(out->text, sizeof(out->text), "%s", reply->error->text);
    } else if (reply->body_case == PWC__CLIENT_REPLY__BODY_TEAM_FORMED) {
        const Pwc__TeamFormed *formed = reply->team_formed;

        out->status = 0;
        out->number = formed->number;
        out->handle = formed->handle;
        out->rank = formed->rank;
        out->member = formed->member;
        out->window = formed->window;
        out->small_max = formed->small_max;
        for (size_t i = 0; i < formed->n_runs; i++)
            for (uint32_t j = 0; j < formed->runs[i]->count; j++, out->size++)
                if (out->size < sizeof(out->ranks) / sizeof(out->ranks[0]))
                    out->ranks[out->size] = formed->runs[i]->rank + j;
    }
    pwc__client_reply__free_unpacked(reply, NULL);
    return out->status;
}

int raw_team_leave(int socket, uint32_t session, uint64_t number)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__TeamLeave leave = PWC__TEAM_LEAVE__INIT;
    struct answer answer;

    leave.session = session;
    leave.number = number;
    r.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE;
    r.team_leave = &leave;
    return ask(socket, &r, &answer);
}

bool raw_team_withdraw(int socket, const Pwc__TeamJoin *join)
{
    Pwc__ClientRequest r = PWC__CLIENT_REQUEST__INIT;
    Pwc__TeamLeave leave = PWC__TEAM_LEAVE__INIT;

    leave.session = join->session;
    leave.broken = true;
    leave.join = (Pwc__TeamJoin *)(uintptr_t)join;
    r.body_case = PWC__CLIENT_REQUEST__BODY_TEAM_LEAVE;
    r.team_leave = &leave;
    return raw_request(socket, 10, &r);
}

void raw_team_close(struct raw_team *team)
{
    if (team->area >= 0)
        close(team->area);
    team->area = -1;
}

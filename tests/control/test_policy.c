/*
 * The users that a daemon serves: by default its own user alone, else the users and groups of its
 * configuration. One user cannot affect another's connections and jobs. The test needs root, to run
 * as other users.
 *
 *     test_policy PWCD
 */
#include <errno.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/raw/ask.h"
#include "tests/lib/raw/look.h"
#include "tests/lib/raw/program.h"
#include "tests/lib/raw/team.h"
#include "proto/trace_abi.h"
#include "tests/suite.h"

/* Numbers of users and groups that exist on no machine, and the user nobody. */
#define DAEMON 61001u
#define ALICE  61002u
#define BOB    61003u
#define GROUP  61010u
#define NOBODY 65534u

enum { SKIPPED = 77 };

static const char *program;
static struct daemon d;

/* ---- other users ----------------------------------------------------------------------------- */

struct user {
    uid_t uid;
    gid_t gid;
    gid_t more; /* a supplementary group; 0: none */
};

/* The outcome of a child that ran as another user. */
struct outcome {
    int connected; /* result of connect: 0 or a negative errno */
    int status;    /* result of Hello, and then of opening a context */
    char text[512];
};

/* Runs in a child as another user; the socket stays open until the child ends. */
typedef void (*user_deed)(int socket, struct outcome *out, void *context);

static bool become(const struct user *user)
{
    return setgroups(user->more ? 1 : 0, &user->more) == 0 &&
           setresgid(user->gid, user->gid, user->gid) == 0 &&
           setresuid(user->uid, user->uid, user->uid) == 0;
}

static struct outcome as_user(const struct user *user, user_deed deed, void *context)
{
    struct outcome out = {.connected = -ECHILD};
    int report[2];
    pid_t pid;

    CU_ASSERT_EQUAL_FATAL(pipe(report), 0);
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int s = become(user) ? raw_connect(&d) : -ENOTSUP;

        out.connected = s < 0 ? s : 0;
        if (s >= 0)
            deed(s, &out, context);
        (void)!write(report[1], &out, sizeof(out));
        _exit(0);
    }
    close(report[1]);
    CU_ASSERT_EQUAL(read(report[0], &out, sizeof(out)), sizeof(out));
    close(report[0]);
    waitpid(pid, NULL, 0);
    return out;
}

/* Attaches and opens a context. Returns the daemon's refusal if it does not serve us. */
static void attach(int s, struct outcome *out, void *context)
{
    struct answer a = {0};
    char job[32];

    snprintf(job, sizeof(job), "policy%d", (int)getpid()); /* earlier ones may still end */
    out->status = raw_hello(s, job, 0, 1);
    if (out->status == 0)
        out->status = ask_context(s, 8192, &a);
    snprintf(out->text, sizeof(out->text), "%s", a.text);
}

/* Only reads: the daemon's refusal comes right after the connect, without a Hello. */
static void listen_only(int s, struct outcome *out, void *context)
{
    struct answer a;

    out->status = ask_nothing(s, &a);
    snprintf(out->text, sizeof(out->text), "%s", a.text);
}

/* Counts the rows that Inspect shows, and the rows of clients and users that are not our own. */
struct seen {
    int clients, queues, regions, users, foreign;
};

static int rows_of(int s, const char *what, const char *rows, int *foreign)
{
    json_t *document = look_on(s, what), *array = json_object_get(document, rows);
    int count = document ? (int)json_array_size(array) : -1;

    for (int i = 0; foreign && i < count; i++)
        *foreign += json_integer_value(json_object_get(json_array_get(array, (size_t)i), "uid")) !=
                    (json_int_t)geteuid();
    json_decref(document);
    return count;
}

static void look(int s, struct outcome *out, void *context)
{
    struct seen seen = {0};

    seen.clients = rows_of(s, "clients", "clients", &seen.foreign);
    seen.users = rows_of(s, "clients", "users", &seen.foreign);
    seen.queues = rows_of(s, "queues", "queues", NULL);
    seen.regions = rows_of(s, "regions", "regions", NULL);
    out->status = seen.clients < 0 ? -EPROTO : 0;
    memcpy(out->text, &seen, sizeof(seen));
}

/* ---- users ---------------------------------------------------------------------------------- */

enum verdict { SERVED, REFUSED, LOOKS, UNREACHABLE };

static void expect(const struct user *user, enum verdict verdict)
{
    struct outcome out = as_user(user, verdict == REFUSED ? listen_only : attach, NULL);
    unsigned failures = CU_get_number_of_failures();

    switch (verdict) {
    case SERVED:
        CU_ASSERT_EQUAL(out.connected, 0);
        CU_ASSERT_EQUAL(out.status, 0);
        break;
    case REFUSED:
        CU_ASSERT_EQUAL(out.connected, 0);
        CU_ASSERT_EQUAL(out.status, -EACCES);
        CU_ASSERT_PTR_NOT_NULL(strstr(out.text, "does not serve your user: see --allow-users"));
        break;
    case LOOKS: /* but may not be a rank */
        CU_ASSERT_EQUAL(out.connected, 0);
        CU_ASSERT_EQUAL(out.status, -EACCES);
        out = as_user(user, look, NULL);
        CU_ASSERT_EQUAL(out.status, 0);
        break;
    case UNREACHABLE:
        CU_ASSERT_EQUAL(out.connected, -EACCES);
        break;
    }
    if (CU_get_number_of_failures() != failures)
        fprintf(stderr, "user %u, group %u: connect %d, status %d, \"%s\"\n", user->uid, user->gid,
                out.connected, out.status, out.text);
}

static void start_with(uid_t uid, const char *users, const char *groups, const char *inspect)
{
    const char *arguments[7] = {NULL};
    int n = 0;

    if (users) {
        arguments[n++] = "--allow-users";
        arguments[n++] = users;
    }
    if (groups) {
        arguments[n++] = "--allow-groups";
        arguments[n++] = groups;
    }
    if (inspect) {
        arguments[n++] = "--inspect-groups";
        arguments[n++] = inspect;
    }
    CU_ASSERT_EQUAL_FATAL(daemon_start_as(&d, uid, program, arguments), 0);
    CU_ASSERT_EQUAL_FATAL(chmod(d.directory, 0755), 0);
}

static void start(uid_t uid, const char *users, const char *groups)
{
    start_with(uid, users, groups, NULL);
}

static unsigned socket_mode(void)
{
    struct stat st = {0};

    CU_ASSERT_EQUAL(stat(d.socket, &st), 0);
    return st.st_mode & 07777;
}

static const struct user root = {0, 0, 0}, its_own = {DAEMON, DAEMON, 0}, alice = {ALICE, ALICE, 0},
                         bob = {BOB, BOB, 0}, nobody = {NOBODY, NOBODY, 0};

/* The socket's mode keeps other users out; where somebody has widened the mode, the daemon refuses
 * them. */
static void own_user_only(void)
{
    start(DAEMON, NULL, NULL);
    CU_ASSERT_EQUAL(socket_mode(), 0600);
    expect(&its_own, SERVED);
    expect(&alice, UNREACHABLE);
    expect(&root, LOOKS); /* modes do not keep root out */
    CU_ASSERT_EQUAL(chmod(d.socket, 0666), 0);
    expect(&alice, REFUSED);
    CU_ASSERT_TRUE(daemon_says(&d, "user 61002 (pid "));
    CU_ASSERT_TRUE(daemon_says(&d, "is not served: --allow-users would"));
    expect(&its_own, SERVED);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

static void allowed_users(void)
{
    start(DAEMON, "61002,nobody", NULL);
    CU_ASSERT_EQUAL(socket_mode(), 0666);
    expect(&its_own, SERVED);
    expect(&alice, SERVED);
    expect(&nobody, SERVED);
    expect(&bob, REFUSED);
    expect(&root, LOOKS); /* as a rank, root must be allowed, too */
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    start(DAEMON, "root,61003", NULL);
    expect(&root, SERVED);
    expect(&bob, SERVED);
    expect(&alice, REFUSED);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    start(0, "61002", NULL); /* a daemon that root runs */
    expect(&root, SERVED);
    expect(&alice, SERVED);
    expect(&bob, REFUSED);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

static void allowed_groups(void)
{
    start(DAEMON, NULL, "61010,nogroup");
    expect(&its_own, SERVED);
    expect(&(struct user){ALICE, GROUP, 0}, SERVED);
    expect(&nobody, SERVED); /* allowed by its main group */
    expect(&alice, REFUSED);
    expect(&(struct user){BOB, BOB, GROUP}, SERVED);
    expect(&(struct user){BOB, BOB, GROUP + 1}, REFUSED);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
    start(DAEMON, "61003", "61010");
    expect(&bob, SERVED);
    expect(&(struct user){ALICE, GROUP, 0}, SERVED);
    expect(&alice, REFUSED);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* ---- apart from one another ------------------------------------------------------------------ */

/* This user opens as many connections as the daemon accepts, ranks and looking ones, while another
 * user attaches. */
static void take_all(int s, struct outcome *out, void *context)
{
    enum { MANY = 80 };
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Inspect inspect = PWC__INSPECT__INIT;
    struct answer a;
    int *report = context;
    char byte;

    inspect.what = "status";
    request.body_case = PWC__CLIENT_REQUEST__BODY_INSPECT;
    request.inspect = &inspect;
    for (int i = 0; i < MANY; i++)
        out->status += raw_connect(&d) >= 0;
    (void)ask(s, &request, &a);
    (void)!write(report[1], "x", 1);
    (void)!read(report[2], &byte, 1);
}

static void connections_apart(void)
{
    int here[2], there[2], ends[3];
    char byte;
    pid_t pid;

    start(DAEMON, "61002,61003", NULL);
    CU_ASSERT_EQUAL_FATAL(pipe(here), 0);
    CU_ASSERT_EQUAL_FATAL(pipe(there), 0);
    ends[0] = here[0];
    ends[1] = here[1];
    ends[2] = there[0];
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct outcome out = {0};

        close(there[1]);
        if (become(&alice))
            take_all(raw_connect(&d), &out, ends);
        _exit(0);
    }
    close(there[0]);
    CU_ASSERT_EQUAL(read(here[0], &byte, 1), 1);
    expect(&bob, SERVED);
    expect(&its_own, SERVED);
    close(there[1]);
    waitpid(pid, NULL, 0);
    close(here[0]);
    close(here[1]);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* Jobs and ranks of two users are different, even with the same name and number, and a key of one
 * user's job cannot be bound in the other's. */
static void bind_theirs(int s, struct outcome *out, void *context)
{
    struct answer *key = context, mine, bound;

    out->status = raw_hello(s, "policy", 0, 1);
    if (out->status == 0)
        out->status = ask_context(s, 8192, &mine);
    if (out->status == 0)
        out->status = ask_bind(s, mine.handle, 0, key, &bound);
    snprintf(out->text, sizeof(out->text), "%s", bound.text);
}

static void jobs_apart(void)
{
    struct answer segment, key;
    struct outcome out;
    int s;

    start(0, "61002", NULL);
    s = raw_connect(&d);
    CU_ASSERT_FATAL(s >= 0);
    CU_ASSERT_EQUAL(raw_hello(s, "policy", 0, 1), 0);
    CU_ASSERT_EQUAL(ask_segment(s, 4096, &segment), 0);
    answer_close(&segment);
    CU_ASSERT_EQUAL(ask_region(s, segment.handle, 0, 4096, 3, &key), 0);
    out = as_user(&alice, bind_theirs, &key);
    CU_ASSERT_EQUAL(out.status, -EKEYREJECTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(out.text, "not for this job"));
    close(s);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* Opens a context for this client, and makes teams of it alone. Returns their number, and stores
 * the refusal of a further one. */
static unsigned make_teams(int s, unsigned most, struct raw_team *refusal)
{
    struct answer context;

    CU_ASSERT_EQUAL_FATAL(ask_context(s, 8192, &context), 0);
    answer_close(&context);
    for (unsigned made = 0; made < most; made++) {
        const Pwc__TeamJoin join = raw_team_call(context.handle, 0, made);

        CU_ASSERT_TRUE_FATAL(raw_team_join(s, &join));
        if (raw_team_formed(s, refusal) < 0)
            return made;
        raw_team_close(refusal);
    }
    return most;
}

/* Guards that one user leaves an eighth of an engine's teams to others: Alice's clients may
 * together have 896, and Bob still gets one. */
static void teams_apart(void)
{
    enum { CLIENTS = 15, CLIENT_TEAMS = 64, USER_TEAMS = 896 };
    struct raw_team refusal = {.area = -1};
    int of_alice[CLIENTS], of_bob;
    unsigned made = 0;

    start(0, "61002,61003", NULL);
    for (int i = 0; i < CLIENTS; i++) {
        char job[16];

        snprintf(job, sizeof(job), "teams%d", i);
        of_alice[i] = raw_connect_as(&d, ALICE);
        CU_ASSERT_EQUAL_FATAL(raw_hello(of_alice[i], job, 0, 1), 0);
        made += make_teams(of_alice[i], CLIENT_TEAMS, &refusal);
    }
    CU_ASSERT_EQUAL(made, USER_TEAMS);
    CU_ASSERT_EQUAL(refusal.status, -EDQUOT);
    CU_ASSERT_PTR_NOT_NULL(strstr(refusal.text, "are 896 of its engine's 1024"));
    of_bob = raw_connect_as(&d, BOB);
    CU_ASSERT_EQUAL_FATAL(raw_hello(of_bob, "teams", 0, 1), 0);
    CU_ASSERT_EQUAL(make_teams(of_bob, 1, &refusal), 1);
    close(of_bob);
    for (int i = 0; i < CLIENTS; i++)
        close(of_alice[i]);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* ---- views of others ------------------------------------------------------------------------ */

/* Asks for the traced records. Stores their number, and how many of them are Alice's. */
static void trace(int s, int *all, int *of_alice)
{
    Pwc__ClientRequest request = PWC__CLIENT_REQUEST__INIT;
    Pwc__Trace question = PWC__TRACE__INIT;
    Pwc__ClientReply *reply;
    struct trace_record r;
    int count, fds[3];

    *all = *of_alice = 0;
    request.body_case = PWC__CLIENT_REQUEST__BODY_TRACE;
    request.trace = &question;
    CU_ASSERT_TRUE_FATAL(raw_request(s, 1, &request));
    reply = raw_reply(s, fds, &count);
    CU_ASSERT_FATAL(reply && reply->body_case == PWC__CLIENT_REPLY__BODY_TRACED);
    for (size_t e = 0; e < reply->traced->n_engines; e++) {
        const ProtobufCBinaryData *records = &reply->traced->engines[e]->records;

        for (size_t at = 0; at + sizeof(r) <= records->len; at += sizeof(r)) {
            memcpy(&r, records->data + at, sizeof(r));
            ++*all;
            *of_alice += r.uid == ALICE && r.kind == TRACE_CLIENT_ATTACHED;
        }
    }
    pwc__client_reply__free_unpacked(reply, NULL);
}

/* Users see what their own clients do; root and the daemon's user see everything. A trace begins
 * when it is asked for. */
static void traces_apart(void)
{
    static const uid_t users[] = {ALICE, BOB, DAEMON, 0};
    static const int seen[] = {1, 0, 1, 1};
    int sockets[4], late, rank, all, of_alice;

    start(DAEMON, "0,61002,61003", NULL);
    for (int i = 0; i < 4; i++) {
        sockets[i] = raw_connect_as(&d, users[i]);
        trace(sockets[i], &all, &of_alice);
        CU_ASSERT_EQUAL(of_alice, 0);
    }
    rank = raw_connect_as(&d, ALICE);
    CU_ASSERT_EQUAL(raw_hello(rank, "traced", 0, 1), 0);
    for (int i = 0; i < 4; i++) {
        trace(sockets[i], &all, &of_alice);
        CU_ASSERT_EQUAL(of_alice, seen[i]);
        CU_ASSERT(seen[i] || all == 0);
        trace(sockets[i], &all, &of_alice);
        CU_ASSERT_EQUAL(of_alice, 0); /* each record once */
    }
    late = raw_connect_as(&d, ALICE);
    trace(late, &all, &of_alice);
    CU_ASSERT_EQUAL(of_alice, 0);
    for (int i = 0; i < 4; i++)
        close(sockets[i]);
    close(late);
    close(rank);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* ---- programs of handlers -------------------------------------------------------------------- */

/* Loads a program as this user, over a connection that stays open. Returns the status. */
static int load_as(uid_t uid, int *socket, struct answer *out)
{
    struct raw_image image;

    raw_image_plain(&image, 0);
    *socket = raw_connect_as(&d, uid);
    CU_ASSERT_EQUAL(raw_hello(*socket, "programs", 0, 1), 0);
    return ask_program_load(*socket, image.words, image.size, out);
}

/* By default the daemon accepts programs of its own user only. Where it accepts all, a user sees
 * and reads only his own. */
static void programs_apart(void)
{
    static const char *const all[] = {"--allow-users", "61002,61003", "--handlers", "on", NULL};
    static const uid_t users[] = {ALICE, BOB, 0};
    struct answer own, hers, refused;
    struct raw_image back;
    int one, other, s;

    start(DAEMON, "61002,61003", NULL);
    CU_ASSERT_EQUAL(load_as(DAEMON, &one, &own), 0);
    CU_ASSERT_EQUAL(load_as(ALICE, &other, &refused), -EPERM);
    CU_ASSERT_PTR_NOT_NULL(strstr(refused.text, "(handlers = own), and not of user 61002"));
    close(one);
    close(other);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);

    CU_ASSERT_EQUAL_FATAL(daemon_start_as(&d, DAEMON, program, all), 0);
    CU_ASSERT_EQUAL_FATAL(chmod(d.directory, 0755), 0);
    CU_ASSERT_EQUAL(load_as(ALICE, &one, &hers), 0);
    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        bool sees = users[i] != BOB;

        s = raw_connect_as(&d, users[i]);
        CU_ASSERT_EQUAL(rows_of(s, "programs", "programs", NULL), sees);
        CU_ASSERT_EQUAL(ask_program_read(s, 0, hers.handle, &back, NULL) > 0, sees);
        close(s);
    }
    close(one);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

/* Attaches a rank with a context and a region, which stay while others look. */
static void stay(int s, struct outcome *out, void *context)
{
    struct answer segment, key;
    int *ends = context;
    char byte;

    attach(s, out, NULL);
    if (out->status == 0)
        out->status = ask_segment(s, 4096, &segment);
    if (out->status == 0)
        out->status = ask_region(s, segment.handle, 0, 4096, 3, &key);
    (void)!write(ends[1], out->status == 0 ? "y" : "n", 1);
    (void)!read(ends[2], &byte, 1);
}

static pid_t stay_as(const struct user *user, int ends[3], int keep)
{
    pid_t pid;
    char byte = 0;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        struct outcome out = {0};

        close(keep);
        if (become(user))
            stay(raw_connect(&d), &out, ends);
        _exit(0);
    }
    CU_ASSERT_EQUAL(read(ends[0], &byte, 1), 1);
    CU_ASSERT_EQUAL(byte, 'y');
    return pid;
}

/* Ranks of two users are attached at once; a user who looks sees his own, or all. */
static void lookers_apart(void)
{
    static const struct {
        struct user user;
        int clients;
        bool all;
    } rows[] = {
        {{ALICE, ALICE, 0}, 1, false},
        {{BOB, BOB, 0}, 1, false},
        {{NOBODY, NOBODY, 0}, 0, false}, /* served, but has no rank */
        {{0, 0, 0}, 2, true},
        {{DAEMON, DAEMON, 0}, 2, true},
        {{BOB + 1, GROUP, 0}, 2, true}, /* in the inspect group; not served */
    };
    int here[2], there[2], ends[3];
    pid_t pids[2];

    start_with(DAEMON, "61002,61003,nobody", NULL, "61010");
    CU_ASSERT_EQUAL_FATAL(pipe(here), 0);
    CU_ASSERT_EQUAL_FATAL(pipe(there), 0);
    ends[0] = here[0];
    ends[1] = here[1];
    ends[2] = there[0];
    pids[0] = stay_as(&alice, ends, there[1]);
    pids[1] = stay_as(&bob, ends, there[1]);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned failures = CU_get_number_of_failures();
        struct outcome out = as_user(&rows[i].user, look, NULL);
        struct seen seen;

        memcpy(&seen, out.text, sizeof(seen));
        CU_ASSERT_EQUAL(out.status, 0);
        CU_ASSERT_EQUAL(seen.clients, rows[i].clients);
        CU_ASSERT_EQUAL(seen.queues, rows[i].clients);
        CU_ASSERT_EQUAL(seen.regions, rows[i].clients);
        CU_ASSERT_EQUAL(seen.foreign > 0, rows[i].all);
        CU_ASSERT_TRUE(rows[i].all ? seen.users >= 3 : seen.users == 1);
        if (CU_get_number_of_failures() != failures)
            fprintf(stderr, "user %u: %d clients (%d foreign), %d queues, %d regions, %d users\n",
                    rows[i].user.uid, seen.clients, seen.foreign, seen.queues, seen.regions,
                    seen.users);
    }
    expect(&(struct user){BOB + 1, GROUP, 0}, LOOKS);
    expect(&(struct user){BOB + 1, BOB + 1, 0}, REFUSED);
    close(there[1]);
    for (int i = 0; i < 2; i++)
        waitpid(pids[i], NULL, 0);
    for (int i = 0; i < 2; i++)
        close(here[i]);
    close(there[0]);
    CU_ASSERT_EQUAL(daemon_stop(&d), 0);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"own user only", own_user_only},   {"allowed users", allowed_users},
        {"allowed groups", allowed_groups}, {"connections apart", connections_apart},
        {"jobs apart", jobs_apart},         {"teams apart", teams_apart},
        {"traces apart", traces_apart},     {"programs apart", programs_apart},
        {"lookers apart", lookers_apart},   CU_TEST_INFO_NULL};

    signal(SIGPIPE, SIG_IGN);
    if (argc < 2)
        return 2;
    if (geteuid() != 0) {
        printf("left out: only root can be other users, to be refused as them\n");
        return SKIPPED;
    }
    program = argv[1];
    return suite_run("policy", tests);
}

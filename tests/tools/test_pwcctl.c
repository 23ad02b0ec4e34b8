/* pwcctl: options, answers of all kinds, and a missing daemon. Argument: the path of pwcctl. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/command.h"
#include "tests/suite.h"
#include "proto/counters_abi.h"
#include "tests/tools/fake_daemon.h"
#include "proto/job_socket.h"

#define END_S 30 /* a test's server ends by itself after this time */

/* The path of pwcctl, which main sets once. */
static const char *pwcctl_path;
static char folder[] = "/tmp/test_pwcctl.XXXXXX";
static char socket_path[64];

static struct command *run(const char *what, const char *option)
{
    const char *argv[] = {pwcctl_path, "--socket", socket_path, what, option, NULL};
    struct command *command = command_start(argv, NULL);
    command_finish(command);
    return command;
}

/* Runs pwcctl against a fake daemon with this answer. */
static struct command *ask(const char *what, const char *option, const void *answer, size_t size)
{
    struct fake_daemon daemon;
    CU_ASSERT_EQUAL_FATAL(fake_daemon_start(&daemon, socket_path, answer, size), 0);
    struct command *command = run(what, option);
    fake_daemon_finish(&daemon);
    CU_ASSERT_STRING_EQUAL(daemon.asked, what);
    return command;
}

static void test_bad_options(void)
{
    static const struct {
        const char *words[6];
        const char *said;
    } cases[] = {
        {{NULL}, "give one view"},
        {{"everything"}, "no view \"everything\""},
        {{"status", "nodes"}, "give one view"},
        {{"--watch=0", "status"}, "--watch \"0\""},
        {{"--watch=x", "status"}, "--watch \"x\""},
        {{"--colour", "status"}, "unrecognized option"},
        {{"--socket=a", "--socket=b", "upgrade"}, "2 sockets: upgrade asks one daemon"},
        {{"--socket=a", "--socket=b", "trace", "--out=/dev/null", "--client=1"},
         "2 sockets: --client names a client of one daemon"},
        {{"trace", "--out=/dev/null", "--client=x"}, "--client \"x\""},
        {{"trace", "--out=/dev/null", "--client=1."}, "--client \"1.\""},
        {{"trace", "--out=/dev/null", "--client=1.2.3"}, "--client \"1.2.3\""},
        {{"trace", "--out=/dev/null", "--client=-1"}, "--client \"-1\""},
        {{"trace", "--out=/dev/null", "--client=1.4294967296"}, "give a number"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *argv[8] = {pwcctl_path};
        memcpy(argv + 1, cases[i].words, sizeof(cases[i].words));
        struct command *command = command_start(argv, NULL);
        CU_ASSERT_EQUAL(command_finish(command), 2);
        CU_ASSERT(command_said(command, cases[i].said));
        command_free(command);
    }
}

static void test_no_daemon(void)
{
    struct command *command = run("status", NULL);
    CU_ASSERT_EQUAL(command->status, 1);
    CU_ASSERT(command_said(command, socket_path));
    CU_ASSERT(command_said(command, "no daemon serves there"));
    command_free(command);
}

/* The socket was left by a daemon that has died. */
static void test_stale_socket(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", socket_path);
    CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    close(fd);
    struct command *command = run("status", NULL);
    CU_ASSERT_EQUAL(command->status, 1);
    CU_ASSERT(command_said(command, "no daemon serves there"));
    command_free(command);
    unlink(socket_path);
}

/* Starts a process of another user that listens, and hangs up as soon as pwcctl connects. */
static pid_t serve_as_another(const char *socket_name)
{
    int ready[2];
    char byte;
    CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct sockaddr_un name;
        socklen_t size = job_socket_address(socket_name, &name);
        int s = socket(AF_UNIX, SOCK_STREAM, 0);
        if (setresuid(65534, 65534, 65534) == 0 && bind(s, (struct sockaddr *)&name, size) == 0 &&
            listen(s, 1) == 0 && write(ready[1], "x", 1) == 1)
            close(accept(s, NULL, NULL));
        _exit(0);
    }
    close(ready[1]);
    CU_ASSERT_EQUAL(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

/* Any process may take an abstract name, so pwcctl accepts only a server of our own user, of root,
 * or of the user in the name. */
static void test_foreign_daemon(void)
{
    static const struct {
        const char *name, *words[3], *said;
    } rows[] = {
        {"@pwcd-test/%d",
         {"status"},
         "user 65534, neither this user nor root nor the one in its name"},
        {"@pwcd/0/%d",
         {"trace", "--out=/dev/null"},
         "user 65534, neither this user nor root nor the one in its name"},
        {"@pwcd-test/%d", {"top", "--batch", "--count=1"}, "Permission denied"},
        {"@pwcd/65534/%d", {"status"}, "the daemon closed the connection"},
    };
    if (geteuid() != 0) {
        printf("left out: only root can be another ");
        return;
    }
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), rows[i].name, (int)getpid());
        const char *argv[] = {pwcctl_path,      "--socket",       name, rows[i].words[0],
                              rows[i].words[1], rows[i].words[2], NULL};
        pid_t pid = serve_as_another(name);
        struct command *command = command_start(argv, NULL);
        CU_ASSERT_EQUAL(command_finish(command), 1);
        CU_ASSERT(command_said(command, rows[i].said));
        command_free(command);
        CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
    }
}

/* The daemon ends between the connection and its first answer: pwcctl reports at once that there is
 * no trace. */
static void test_trace_of_an_end(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status = -1;
    snprintf(name.sun_path, sizeof(name.sun_path), "%s", socket_path);
    CU_ASSERT_EQUAL_FATAL(bind(s, (struct sockaddr *)&name, sizeof(name)), 0);
    CU_ASSERT_EQUAL_FATAL(listen(s, 2), 0);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(END_S);
        int first = accept(s, NULL, NULL), second = accept(s, NULL, NULL);
        close(second);
        close(first);
        _exit(0);
    }
    struct command *command = run("trace", "--out=/dev/null");
    CU_ASSERT_EQUAL(command->status, 1);
    CU_ASSERT(command_said(command, "the daemon ended as the trace began"));
    command_free(command);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT_EQUAL(status, 0);
    close(s);
    unlink(socket_path);
}

/* Guards that a trace which fails leaves an earlier file as it was, and no file where there was
 * none. */
static void test_trace_without_a_daemon(void)
{
    static const char *const earlier[] = {NULL, "an earlier trace"};
    for (size_t i = 0; i < sizeof(earlier) / sizeof(earlier[0]); i++) {
        char path[] = "/tmp/pwcctl-trace.XXXXXX", option[64], kept[64] = "";
        int file = mkstemp(path);
        CU_ASSERT_FATAL(file >= 0);
        if (earlier[i] == NULL)
            unlink(path);
        else if (write(file, earlier[i], strlen(earlier[i])) < 0)
            CU_FAIL("the earlier trace is not written");
        snprintf(option, sizeof(option), "--out=%s", path);
        struct command *command = run("trace", option);
        CU_ASSERT_EQUAL(command->status, 1);
        command_free(command);
        CU_ASSERT_EQUAL(access(path, F_OK), earlier[i] != NULL ? 0 : -1);
        CU_ASSERT(pread(file, kept, sizeof(kept) - 1, 0) >= 0);
        CU_ASSERT_STRING_EQUAL(kept, earlier[i] != NULL ? earlier[i] : "");
        close(file);
        unlink(path);
    }
}

static void test_daemon_refuses(void)
{
    size_t size;
    void *answer = fake_error(-EACCES, "user 7 is not served: add it to allowed_users", &size);
    struct command *command = ask("clients", NULL, answer, size);
    CU_ASSERT_EQUAL(command->status, 1);
    CU_ASSERT(command_said(command, "add it to allowed_users"));
    command_free(command);
    free(answer);
}

static void test_answers_that_make_no_sense(void)
{
    size_t size;
    void *not_json = fake_inspected("{\"clients\": [", &size);
    const size_t not_json_size = size;
    void *no_rows = fake_inspected("{\"clients\": 3}", &size);
    const struct {
        const void *answer;
        size_t size;
        const char *said;
    } cases[] = {
        {"", 0, "closed the connection"},
        {"\x08\x00\x00", 3, "closed the connection"},
        {"\x08\x00\x00\x00half", 8, "closed the connection"},
        {"\x04\x00\x00\x00\xff\xff\xff\xff", 8, "Bad message"},
        {"\xff\xff\xff\xff", 4, "Message too long"},
        {not_json, not_json_size, "not what \"clients\" should be"},
        {no_rows, size, "not what \"clients\" should be"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct command *command = ask("clients", NULL, cases[i].answer, cases[i].size);
        CU_ASSERT_EQUAL(command->status, 1);
        if (!command_said(command, cases[i].said))
            fprintf(stderr, "case %zu: %s\n", i, command->err_text);
        CU_ASSERT(command_said(command, cases[i].said));
        command_free(command);
    }
    free(not_json);
    free(no_rows);
}

static const char clients[] =
    "{\"clients\":[{\"client\":0,\"job\":\"a\",\"rank\":0,\"size\":2,\"uid\":0,\"pid\":17,"
    "\"sessions\":1,\"segments\":1,\"regions\":2,\"quarantine\":null},"
    "{\"client\":12,\"job\":\"a-longer-job\",\"rank\":1,\"size\":2,\"uid\":0,\"pid\":4194304,"
    "\"sessions\":1,\"segments\":3,\"regions\":12345,\"quarantine\":\"submit record: size 3\"}],"
    "\"users\":[{\"uid\":7,\"clients\":2,\"contexts\":2,\"segments\":4,\"regions\":12347,"
    "\"bytes\":4096,\"refused\":3}],\"quarantined\":[]}";

static void test_table(void)
{
    size_t size;
    void *answer = fake_inspected(clients, &size);
    struct command *command = ask("clients", NULL, answer, size);
    CU_ASSERT_EQUAL(command->status, 0);
    /* the columns of all lines are aligned */
    char *first = strtok(command->out_text, "\n"), *second = strtok(NULL, "\n"),
         *third = strtok(NULL, "\n"), *users = strtok(NULL, "\n"), *user = strtok(NULL, "\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(third);
    char *quarantine = strstr(first, "quarantine");
    CU_ASSERT_PTR_NOT_NULL_FATAL(quarantine);
    CU_ASSERT_EQUAL(strcmp(second + (quarantine - first), "-"), 0);
    CU_ASSERT_EQUAL(strcmp(third + (quarantine - first), "submit record: size 3"), 0);
    CU_ASSERT_EQUAL(strstr(third, "a-longer-job") - third, strstr(first, "job") - first);
    CU_ASSERT_PTR_NOT_NULL_FATAL(user);
    CU_ASSERT_EQUAL(strlen(user), strlen(users)); /* right-aligned, as it is a number */
    CU_ASSERT_EQUAL(user[strlen(user) - 1], '3');
    command_free(command);
    free(answer);
}

static void test_json_as_it_came(void)
{
    size_t size;
    void *answer = fake_inspected(clients, &size);
    struct command *command = ask("clients", "--json", answer, size);
    CU_ASSERT_EQUAL(command->status, 0);
    CU_ASSERT_EQUAL(strlen(command->out_text), strlen(clients) + 1);
    CU_ASSERT_EQUAL(strncmp(command->out_text, clients, strlen(clients)), 0);
    command_free(command);
    free(answer);
}

/* Two daemons in one table, and as two documents; where one does not answer, the other's rows are
 * still shown. */
static void test_several_sockets(void)
{
    static const char node[] = "{\"what\":\"jobs\",\"node\":%d,\"jobs\":[{\"job\":\"a\",\"uid\":7,"
                               "\"size\":2,\"live\":%d}],\"exchanges\":[]}";
    static const struct {
        const char *option;
        bool second_there;
        int status;
        const char *lines[2]; /* lines that the output must have */
    } rows[] = {
        {NULL, true, 0, {" 3  a       7     2     5", " 4  a       7     2     6"}},
        {"--json", true, 0, {"{\"what\":\"jobs\",\"node\":3,", "\n{\"what\":\"jobs\",\"node\":4,"}},
        {NULL, false, 1, {"a       7     2     5", NULL}},
        {"--json", false, 1, {"{\"what\":\"jobs\",\"node\":3,", NULL}},
    };
    char paths[2][80];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct fake_daemon daemons[2];
        void *answers[2];
        int count = rows[i].second_there ? 2 : 1;
        for (int d = 0; d < 2; d++)
            snprintf(paths[d], sizeof(paths[d]), "%s/%d.sock", folder, d);
        for (int d = 0; d < count; d++) {
            char text[sizeof(node)];
            size_t size;
            snprintf(text, sizeof(text), node, 3 + d, 5 + d);
            answers[d] = fake_inspected(text, &size);
            CU_ASSERT_EQUAL_FATAL(fake_daemon_start(&daemons[d], paths[d], answers[d], size), 0);
        }
        const char *argv[] = {pwcctl_path, "--socket", paths[0],       "--socket",
                              paths[1],    "jobs",     rows[i].option, NULL};
        struct command *command = command_start(argv, NULL);
        CU_ASSERT_EQUAL(command_finish(command), rows[i].status);
        for (int d = 0; d < count; d++) {
            CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, rows[i].lines[d]));
            fake_daemon_finish(&daemons[d]);
            free(answers[d]);
        }
        CU_ASSERT(rows[i].second_there || command_said(command, "1.sock: No such file"));
        command_free(command);
    }
}

/* Writes the paths of `count` sockets at which no daemon serves, as pwcrun --hold does. */
static void name_sockets(char *out, size_t size, unsigned count)
{
    size_t used = 0;
    for (unsigned i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, size - used, "%s/no/%u", i > 0 ? ":" : "", i);
}

/* Guards which daemons pwcctl asks where the command line names none: that of PWC_SOCKET, else all
 * of PWC_SOCKETS, which are as many as pwcrun starts nodes, 256. */
static void test_sockets_of_the_environment(void)
{
    char most[4096], over[4096];
    const struct {
        const char *one, *held, *word, *said[2];
        int status;
    } rows[] = {
        {NULL, "/no/0.sock:/no/1.sock", "status", {"/no/0.sock", "/no/1.sock"}, 1},
        {"/no/2.sock", "/no/0.sock:/no/1.sock", "status", {"/no/2.sock", ""}, 1},
        {"", "/no/0.sock", "upgrade", {"/no/0.sock", ""}, 1},
        {NULL, "/no/0.sock:/no/1.sock", "upgrade", {"2 sockets: upgrade asks one daemon", ""}, 2},
        {NULL, most, "status", {"/no/0: No such file", "/no/255: No such file"}, 1},
        {NULL, over, "status", {"--socket \"/no/256\": 256 sockets are as many", ""}, 2},
    };
    name_sockets(most, sizeof(most), 256);
    name_sockets(over, sizeof(over), 257);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *argv[] = {pwcctl_path, rows[i].word, NULL};
        if (rows[i].one != NULL)
            setenv("PWC_SOCKET", rows[i].one, 1);
        setenv("PWC_SOCKETS", rows[i].held, 1);
        struct command *command = command_start(argv, NULL);
        CU_ASSERT_EQUAL(command_finish(command), rows[i].status);
        CU_ASSERT(command_said(command, rows[i].said[0]) && command_said(command, rows[i].said[1]));
        command_free(command);
        unsetenv("PWC_SOCKET");
        unsetenv("PWC_SOCKETS");
    }
}

/* ---- counters: a file of our own making ----------------------------------------------------- */

struct counters_file {
    struct counters_header header;
    struct counters_session sessions[2];
    struct counters_peer peers[2];
};

static struct counters_file good_counters(void)
{
    struct counters_file file = {
        .header = {.magic = COUNTERS_MAGIC,
                   .version = COUNTERS_VERSION,
                   .bytes = sizeof(file),
                   .session_offset = offsetof(struct counters_file, sessions),
                   .session_row_bytes = sizeof(struct counters_session),
                   .session_rows = 2,
                   .peer_offset = offsetof(struct counters_file, peers),
                   .peer_row_bytes = sizeof(struct counters_peer),
                   .peer_rows = 2,
                   .node = 3,
                   .nodes = 4,
                   .pid = 4321,
                   .provider = "net",
                   .heartbeat = 77},
        .sessions[1] = {.session = 6, .rank = 2, .put_ops = 1234567},
        .peers[0] = {.node = 1, .records_in = 99},
    };
    return file;
}

/* Runs pwcctl on a counters file of `size` bytes. */
static struct command *count(const struct counters_file *file, size_t size, const char *option)
{
    char path[80];
    snprintf(path, sizeof(path), "%s/pwcd.counters", folder);
    FILE *to = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    fwrite(file, 1, size, to);
    fclose(to);
    struct command *command = run("counters", option);
    unlink(path);
    return command;
}

static void test_counters(void)
{
    static const char *const keys[] = {
        "\"pid\":4321",     "\"node\":3", "\"provider\":\"net\"", "\"heartbeat\":77",
        "\"session\":5",    "\"rank\":2", "\"put_ops\":1234567",  "\"peers\":[{\"node\":0,",
        "\"records_in\":99"};
    struct counters_file file = good_counters();
    struct command *command = count(&file, sizeof(file), "--json");
    CU_ASSERT_EQUAL(command->status, 0);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, keys[i]));
    command_free(command);

    command = count(&file, sizeof(file), NULL);
    CU_ASSERT_EQUAL(command->status, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, "1.2M"));
    command_free(command);
}

static void test_counters_that_make_no_sense(void)
{
    static const struct {
        size_t offset; /* offset of a 32-bit word in the header */
        uint32_t value;
        size_t size;
        const char *said;
    } cases[] = {
        {offsetof(struct counters_header, magic), 1, sizeof(struct counters_file), "different"},
        {offsetof(struct counters_header, version), 9, sizeof(struct counters_file), "different"},
        {offsetof(struct counters_header, session_rows), UINT32_MAX, sizeof(struct counters_file),
         "Bad message"},
        {offsetof(struct counters_header, session_offset), UINT32_MAX - 7,
         sizeof(struct counters_file), "Bad message"},
        {offsetof(struct counters_header, session_offset), 4, sizeof(struct counters_file),
         "Bad message"},
        {offsetof(struct counters_header, session_row_bytes), 0, sizeof(struct counters_file),
         "Bad message"},
        {offsetof(struct counters_header, peer_rows), 3, sizeof(struct counters_file),
         "Bad message"},
        {offsetof(struct counters_header, pid), 1, sizeof(struct counters_header) - 1,
         "Bad message"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct counters_file file = good_counters();
        memcpy((char *)&file + cases[i].offset, &cases[i].value, sizeof(cases[i].value));
        struct command *command = count(&file, cases[i].size, NULL);
        CU_ASSERT_EQUAL(command->status, 1);
        CU_ASSERT(command_said(command, cases[i].said));
        command_free(command);
    }
}

static void test_no_counters(void)
{
    struct command *command = run("counters", NULL);
    CU_ASSERT_EQUAL(command->status, 1);
    CU_ASSERT(command_said(command, "no daemon serves there"));
    command_free(command);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"bad options", test_bad_options},
                           {"no daemon", test_no_daemon},
                           {"a stale socket", test_stale_socket},
                           {"a foreign daemon", test_foreign_daemon},
                           {"a trace of a daemon that ends", test_trace_of_an_end},
                           {"a trace without a daemon", test_trace_without_a_daemon},
                           {"a daemon that refuses", test_daemon_refuses},
                           {"answers that make no sense", test_answers_that_make_no_sense},
                           {"a table", test_table},
                           {"JSON as it came", test_json_as_it_came},
                           {"several sockets", test_several_sockets},
                           {"sockets of the environment", test_sockets_of_the_environment},
                           {"counters", test_counters},
                           {"counters that make no sense", test_counters_that_make_no_sense},
                           {"no counters", test_no_counters},
                           CU_TEST_INFO_NULL};
    int status;

    if (argc != 2 || mkdtemp(folder) == NULL)
        return 2;
    pwcctl_path = argv[1];
    snprintf(socket_path, sizeof(socket_path), "%s/pwcd.sock", folder);

    status = suite_run("pwcctl", tests);
    rmdir(folder);
    return status;
}

/*
 * pwcrun with a stand-in for the daemon: exit statuses, signals, output, and that no process or
 * file is left. Arguments: the path of pwcrun, the path of the stand-in.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/lib/command.h"
#include "tests/suite.h"

#define WORDS_MAX 24

/* Paths of pwcrun and of the stand-in, which main sets once. */
static const char *pwcrun_path, *daemon_path;
static char runtime_dir[] = "/tmp/test_pwcrun.XXXXXX";

/* Starts pwcrun with `words` (NULL-terminated) after --daemon. */
static struct command *start(const char *const *words, const char *setting)
{
    const char *argv[WORDS_MAX + 4] = {pwcrun_path, "--daemon", daemon_path};
    for (size_t i = 0; words[i] != NULL && i < WORDS_MAX; i++)
        argv[3 + i] = words[i];
    return command_start(argv, setting);
}

/* Runs pwcrun to its end, and checks the status and a text in the output. A wrong status is printed
 * with the output. */
static void expect(const char *const *words, const char *setting, int status, const char *said)
{
    struct command *command = start(words, setting);
    int got = command_finish(command);
    if (got != status || !command_said(command, said))
        fprintf(stderr, "pwcrun %s ...: status %d, said: %s\n", words[0], got, command->err_text);
    CU_ASSERT_EQUAL(got, status);
    CU_ASSERT(command_said(command, said));
    command_free(command);
}

static void test_bad_options(void)
{
    static const struct {
        const char *words[8];
        const char *said;
    } cases[] = {
        {{NULL}, "no program given"},
        {{"--nodes", "0", "--", "true"}, "--nodes \"0\""},
        {{"--nodes", "257", "--", "true"}, "--nodes \"257\""},
        {{"--nodes", "2x", "--", "true"}, "--nodes \"2x\""},
        {{"--nodes", "-1", "--", "true"}, "--nodes \"-1\""},
        {{"-n", "0", "--", "true"}, "--ranks \"0\""},
        {{"-n", "4097", "--", "true"}, "--ranks \"4097\""},
        {{"-n", "99999999999999999999", "--", "true"}, "give a number from 1 to 4096"},
        {{"-np", "0", "--", "true"}, "--ranks \"0\""},
        {{"-np", "4x", "--", "true"}, "--ranks \"4x\""},
        {{"-np"}, "--ranks \"p\""},
        {{"--bind", "core", "--", "true"}, "give share, one or none"},
        {{"--grace", "soon", "--", "true"}, "--grace \"soon\""},
        {{"--grace", "-1", "--", "true"}, "--grace \"-1\""},
        {{"--netns", "--provider", "shm", "--", "true"}, "shared memory has no network"},
        {{"--hold", "-n", "2", "--", "true"}, "--hold with --ranks"},
        {{"--hold", "--netns", "--", "true"}, "--hold with --netns"},
        {{"--hold", "--place", "--", "true"}, "--hold with --place"},
        {{"--place"}, "no program given"},
        {{"--unknown", "--", "true"}, "unrecognized option"},
        {{"--nodes"}, "requires an argument"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(cases[i].words, NULL, 125, cases[i].said);
}

static void test_status(void)
{
    static const struct {
        const char *script;
        int status;
        const char *said;
    } cases[] = {
        {"exit 0", 0, ""},
        {"test $PWC_RANK != 1 || exit 7", 7, "rank 1 ended with status 7"},
        {"test $PWC_RANK != 1 || exit 7; sleep 100", 7, "ending the others in 0.1 s"},
        {"exit 255", 255, "ended with status 255"},
        {"test $PWC_RANK != 0 || kill -SEGV $$", 128 + SIGSEGV, "ended by signal 11"},
        {"test $PWC_RANK != 0 || kill -KILL $$; sleep 100", 128 + SIGKILL, "signal 9"},
        /* pwcrun ignores SIGPIPE itself; its ranks do not. */
        {"test $PWC_RANK != 0 || kill -PIPE $$", 128 + SIGPIPE, "ended by signal 13"},
        /* pwcrun ends the other ranks; the status is the same where SIGTERM does not end them. */
        {"test $PWC_RANK != 2 || exit 9; trap '' TERM; while :; do sleep 1; done", 9, "rank 2"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *words[] = {"--nodes",       "2", "-n", "4", "--grace", "0.1", "--", "sh", "-c",
                               cases[i].script, NULL};
        expect(words, NULL, cases[i].status, cases[i].said);
    }
}

/* pwcrun writes each of its lines by one call, so that lines of ranks, which have the same stderr,
 * are not mixed in. The packet pipe keeps calls apart. */
static void test_lines_are_whole(void)
{
    char *argv[] = {(char *)pwcrun_path,
                    "--daemon",
                    (char *)daemon_path,
                    "--nodes",
                    "2",
                    "-n",
                    "4",
                    "--grace",
                    "0.1",
                    "--",
                    "sh",
                    "-c",
                    "exit 7",
                    NULL};
    posix_spawn_file_actions_t actions;
    char line[4096];
    int ends[2], status, lines = 0;
    ssize_t got;
    pid_t pid;

    CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC | O_DIRECT), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    CU_ASSERT_EQUAL_FATAL(posix_spawn(&pid, pwcrun_path, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    for (; (got = read(ends[0], line, sizeof(line))) > 0; lines++) {
        CU_ASSERT_EQUAL(memcmp(line, "pwcrun: ", 8), 0);
        CU_ASSERT_EQUAL(line[got - 1], '\n');
    }
    CU_ASSERT(lines > 0);
    close(ends[0]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    CU_ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void test_program_that_cannot_run(void)
{
    expect((const char *[]){"--", "./no-such-program", NULL}, NULL, 127, "No such file");
    expect((const char *[]){"--", "/tmp", NULL}, NULL, 126, "Permission denied");
}

static void test_daemon_fails(void)
{
    const char *const sleeping[] = {"--nodes", "2", "--grace", "0.1", "--", "sleep", "100", NULL};
    expect(sleeping, "FAKE_PWCD=fail", 125, "no such fabric");
    expect(sleeping, "FAKE_PWCD=fail", 125, "ended with status 3");
    expect(sleeping, "FAKE_PWCD=die", 125, "ended with status 4");
    expect((const char *[]){"--", "true", NULL}, "FAKE_PWCD=stubborn", 125, "killed");
    const char *argv[] = {pwcrun_path, "--daemon", "/no/such/pwcd", "--", "true", NULL};
    struct command *command = command_start(argv, NULL);
    CU_ASSERT_EQUAL(command_finish(command), 125);
    CU_ASSERT(command_said(command, "/no/such/pwcd"));
    command_free(command);
}

/* Only the daemon that has failed is reported, and not those that were stopped before they served.
 */
static void test_daemons_that_were_stopped(void)
{
    const char *const words[] = {"--nodes", "2", "-n", "2", "--", "true", NULL};
    struct command *command = start(words, "FAKE_PWCD=first fails");
    CU_ASSERT_EQUAL(command_finish(command), 125);
    CU_ASSERT(command_said(command, "node 0 ended with status 3"));
    CU_ASSERT_FALSE(command_said(command, "node 1"));
    command_free(command);
}

/* The caller has closed some standard streams; pwcrun's children have all three nevertheless. */
static void test_closed_streams(void)
{
    static const char *const closed[] = {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"};
    for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++) {
        char script[64];
        snprintf(script, sizeof(script), "exec \"$@\" %s", closed[i]);
        const char *argv[] = {"sh",
                              "-c",
                              script,
                              "sh",
                              pwcrun_path,
                              "--daemon",
                              daemon_path,
                              "--",
                              "sh",
                              "-c",
                              "cd /proc/$$/fd && test -e 0 -a -e 1 -a -e 2",
                              NULL};
        struct command *command = command_start(argv, NULL);
        CU_ASSERT_EQUAL(command_finish(command), 0);
        command_free(command);
        command = command_start(argv, "FAKE_PWCD=fail"); /* this daemon fails: it is not ready */
        CU_ASSERT_EQUAL(command_finish(command), 125);
        command_free(command);
    }
}

static void test_environment_and_labels(void)
{
    struct command *command = start(
        (const char *[]){
            "--nodes", "2", "-n", "5", "--label", "--", "sh", "-c",
            "echo $PWC_RANK of $PWC_SIZE on $PWC_NODE of $PWC_NODES; test -e $PWC_SOCKET", NULL},
        "PWC_RANK=99");
    CU_ASSERT_EQUAL(command_finish(command), 0);
    /* in blocks: the first node has one rank more */
    static const char *const lines[] = {"[0] 0 of 5 on 0 of 2\n", "[1] 1 of 5 on 0 of 2\n",
                                        "[2] 2 of 5 on 0 of 2\n", "[3] 3 of 5 on 1 of 2\n",
                                        "[4] 4 of 5 on 1 of 2\n"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, lines[i]));
    command_free(command);
}

/* Checks that each of a run's ranks prints this line. */
static void expect_lines(const char *const *words, const char *line, unsigned count)
{
    struct command *command = start(words, NULL);
    unsigned lines = 0;
    CU_ASSERT_EQUAL(command_finish(command), 0);
    for (const char *at = command->out_text; (at = strstr(at, line)) != NULL; at += strlen(line))
        lines++;
    if (lines != count)
        fprintf(stderr, "%u lines \"%s\" in: %s\n", lines, line, command->out_text);
    CU_ASSERT_EQUAL(lines, count);
    command_free(command);
}

/* The number of ranks without -n: one for each node, except for pwcperf, which needs pairs. */
static void test_ranks(void)
{
    char program[64];
    snprintf(program, sizeof(program), "%s/pwcperf", runtime_dir);
    FILE *file = fopen(program, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("#!/bin/sh\necho of $PWC_SIZE\n", file);
    fchmod(fileno(file), 0700);
    fclose(file);
    expect_lines((const char *[]){"--nodes", "3", "--", "sh", "-c", "echo of $PWC_SIZE", NULL},
                 "of 3\n", 3);
    expect_lines((const char *[]){"-np", "3", "--", "sh", "-c", "echo of $PWC_SIZE", NULL},
                 "of 3\n", 3);
    expect_lines((const char *[]){program, NULL}, "of 2\n", 2);
    expect_lines((const char *[]){"--nodes", "2", program, NULL}, "of 2\n", 2);
    expect_lines((const char *[]){"--nodes", "3", program, NULL}, "of 4\n", 4);
    unlink(program);
}

/* With --bind each of two nodes gets its own half of our processors, if there are two or more. */
static void test_bind(void)
{
    static const char script[] = "echo n$PWC_NODE=$(taskset -cp $$ | sed 's/.*: //')=";
    cpu_set_t ours;
    char all[256];
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(ours), &ours), 0);
    struct command *command =
        start((const char *[]){"--bind", "none", "--", "sh", "-c", script, NULL}, NULL);
    CU_ASSERT_EQUAL(command_finish(command), 0);
    snprintf(all, sizeof(all), "%.*s", (int)strcspn(command->out_text + 3, "="),
             command->out_text + 3);
    command_free(command);
    for (int shared = 0; shared < 2; shared++) {
        const char *words[] = {"--nodes", "2",    "--bind", shared ? "share" : "none", "--", "sh",
                               "-c",      script, NULL};
        char zero[264], one[264];
        command = start(words, NULL);
        CU_ASSERT_EQUAL(command_finish(command), 0);
        snprintf(zero, sizeof(zero), "n0=%s=", all);
        snprintf(one, sizeof(one), "n1=%s=", all);
        bool bound = shared && CPU_COUNT(&ours) >= 2;
        CU_ASSERT_EQUAL(strstr(command->out_text, zero) == NULL, bound);
        CU_ASSERT_EQUAL(strstr(command->out_text, one) == NULL, bound);
        const char *at0 = strstr(command->out_text, "n0="), *at1 = strstr(command->out_text, "n1=");
        CU_ASSERT_FATAL(at0 != NULL && at1 != NULL);
        CU_ASSERT_EQUAL(strncmp(at0 + 3, at1 + 3, strcspn(at0 + 3, "=") + 1) != 0, bound);
        command_free(command);
    }
    expect_lines(
        (const char *[]){"--pin", "--nodes", "2", "--", "sh", "-c", "echo has $(nproc)", NULL},
        "has 1\n", 2);
}

/* Ranks of another launcher (--hold, --place): each gets its number from that launcher's variables,
 * and its node in blocks. Variables of one launcher do not reach ranks of the other. */
static void test_hold_and_place(void)
{
    static const char script[] =
        "place() { $0 --place -- sh -c 'test -e $PWC_SOCKET && test -z \"$PWC_SOCKETS\" && "
        "echo $PWC_RANK of $PWC_SIZE on $PWC_NODE of $PWC_NODES in $PWC_JOB'; }; "
        "test -z \"$PWC_RANK\" && "
        "PMI_RANK=0 PMI_SIZE=3 place && PMI_RANK=2 PMI_SIZE=3 place && "
        "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=mpi place && "
        "SLURM_PROCID=3 SLURM_STEP_NUM_TASKS=4 place && "
        "export SLURM_JOB_ID=70 SLURM_STEP_ID=2 && " /* each rank has a shell of its own */
        "(SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 place; true) && "
        "(SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 place; true) && "
        "PWC_RANK=1 PWC_SIZE=4 PWC_JOB=own place && echo job is placed-$$";
    struct command *command = start(
        (const char *[]){"--nodes", "2", "--hold", "--", "sh", "-c", script, pwcrun_path, NULL},
        "PWC_RANK=99");
    CU_ASSERT_EQUAL(command_finish(command), 0);
    const char *job = strstr(command->out_text, "job is ");
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    job += strlen("job is ");
    const struct {
        const char *text, *job;
    } lines[] = {{"0 of 3 on 0 of 2 in ", job},
                 {"2 of 3 on 1 of 2 in ", job},
                 {"1 of 2 on 1 of 2 in ", "mpi\n"},
                 {"3 of 4 on 1 of 2 in ", job},
                 {"0 of 2 on 0 of 2 in ", "slurm-70-2\n"},
                 {"1 of 2 on 1 of 2 in ", "slurm-70-2\n"},
                 {"1 of 4 on 0 of 2 in ", "own\n"}};
    const char *at = command->out_text;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char line[128];
        snprintf(line, sizeof(line), "%s%.*s", lines[i].text, (int)strcspn(lines[i].job, "\n") + 1,
                 lines[i].job);
        CU_ASSERT_EQUAL(strncmp(at, line, strlen(line)), 0);
        at += strcspn(at, "\n") + 1;
    }
    command_free(command);
    expect((const char *[]){"--hold", "--grace", "0.1", "--", "sh", "-c", "exit 6", NULL}, NULL, 6,
           "launcher 0 ended with status 6");
}

/* Without a program the daemons serve until a signal comes; then the status is 0. */
static void test_hold_alone(void)
{
    struct command *command = start((const char *[]){"--nodes", "2", "--hold", NULL}, NULL);
    CU_ASSERT(command_await(command, "/1.sock\n"));
    CU_ASSERT_EQUAL(strncmp(command->out_text, "PWC_SOCKETS=/", 13), 0);
    char first[128];
    snprintf(first, sizeof(first), "%.*s", (int)strcspn(command->out_text + 12, ":"),
             command->out_text + 12);
    CU_ASSERT_EQUAL(access(first, F_OK), 0);
    kill(command->pid, SIGTERM);
    CU_ASSERT_EQUAL(command_finish(command), 0);
    CU_ASSERT_EQUAL(access(first, F_OK), -1);
    command_free(command);
}

/* Environments from which a rank's place cannot be derived. */
static void test_place_refuses(void)
{
    static const struct {
        const char *setting, *said;
    } cases[] = {
        {"", "none of OMPI_COMM_WORLD_RANK"},
        {"PMI_RANK=0", "PMI_SIZE is \"\""},
        {"PMI_RANK=4 PMI_SIZE=4", "PMI_RANK is \"4\": it must be a number from 0 to 3"},
        {"PMI_RANK=-1 PMI_SIZE=4", "PMI_RANK is \"-1\""},
        {"PMI_RANK=0 PMI_SIZE=4097", "PMI_SIZE is \"4097\""},
        {"PMI_RANK=0 PMI_SIZE=0", "PMI_SIZE is \"0\": it must be a number from 1"},
        {"PMI_RANK=0 PMI_SIZE=1", "PWC_SOCKETS is not set"},
        {"PMI_RANK=1 PMI_SIZE=2 PWC_SOCKETS=/a:", "socket 1 of PWC_SOCKETS has 0 characters"},
        {"PMI_RANK=0 PMI_SIZE=1 PWC_SOCKETS=/a", "no-such-program"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char script[256];
        snprintf(script, sizeof(script), "%s exec $0 --place ./no-such-program", cases[i].setting);
        struct command *command =
            command_start((const char *[]){"sh", "-c", script, pwcrun_path, NULL}, NULL);
        int status = i + 1 < sizeof(cases) / sizeof(cases[0]) ? 125 : 127;
        CU_ASSERT_EQUAL(command_finish(command), status);
        CU_ASSERT(command_said(command, cases[i].said));
        if (!command_said(command, cases[i].said))
            fprintf(stderr, "%s: %s\n", cases[i].setting, command->err_text);
        command_free(command);
    }
}

static void test_signals_are_forwarded(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    static const char script[] = "trap 'echo got; exit 3' INT TERM HUP QUIT USR1 USR2; echo up; "
                                 "while :; do sleep 100 & wait $!; done";
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        struct command *command = start((const char *[]){"--", "sh", "-c", script, NULL}, NULL);
        CU_ASSERT(command_await(command, "up\n"));
        kill(command->pid, signals[i]);
        CU_ASSERT_EQUAL(command_finish(command), 3);
        CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, "got\n"));
        command_free(command);
    }
}

static void test_signal_ends_ranks(void)
{
    struct command *command =
        start((const char *[]){"-n", "2", "--", "sh", "-c", "echo up; exec sleep 100", NULL}, NULL);
    CU_ASSERT(command_await(command, "up\nup\n"));
    kill(command->pid, SIGTERM);
    CU_ASSERT_EQUAL(command_finish(command), 128 + SIGTERM);
    command_free(command);

    /* a second signal ends even ranks that ignore the first one */
    command = start(
        (const char *[]){"--", "sh", "-c",
                         "trap 'echo no' INT; echo up; while :; do sleep 100 & wait; done", NULL},
        NULL);
    CU_ASSERT(command_await(command, "up\n"));
    kill(command->pid, SIGINT);
    CU_ASSERT(command_await(command, "no\n"));
    kill(command->pid, SIGINT);
    CU_ASSERT_EQUAL(command_finish(command), 128 + SIGINT);
    command_free(command);
}

/* A signal that pwcrun's parent ignores, as nohup(1) ignores SIGHUP, is not passed on. The rank
 * takes SIGHUP, which comes before SIGUSR1 where both are sent. */
static void test_signals_that_are_ignored(void)
{
    static const char script[] =
        "trap '' HUP; exec \"$0\" --daemon \"$1\" -- env --default-signal=HUP sh -c '"
        "trap \"exit 5\" USR1; kill -HUP $PPID; kill -USR1 $PPID; "
        "while :; do sleep 100 & wait $!; done'";
    struct command *command =
        command_start((const char *[]){"sh", "-c", script, pwcrun_path, daemon_path, NULL}, NULL);
    CU_ASSERT_EQUAL(command_finish(command), 5);
    command_free(command);
}

/* While the daemons start, a signal that ends the ranks ends the start. Others find no rank. */
static void test_signals_before_the_start(void)
{
    static const char *const words[] = {"--", "true", NULL};
    expect(words, "FAKE_PWCD=signal USR1", 0, "");
    expect(words, "FAKE_PWCD=signal USR2", 0, "");
    expect(words, "FAKE_PWCD=signal TERM", 128 + SIGTERM, "before the daemons were ready");
}

/* A rank that prints without end does not keep pwcrun from taking a signal. The lines are short, so
 * pwcrun takes longer for each than the rank does. */
static void test_chatty_rank(void)
{
    struct command *command = start(
        (const char *[]){"--label", "--", "sh", "-c", "yes '' & yes '' & yes '' & yes ''", NULL},
        NULL);
    CU_ASSERT(command_await(command, "[0] \n"));
    kill(command->pid, SIGTERM);
    CU_ASSERT_EQUAL(command_finish(command), 128 + SIGTERM);
    command_free(command);
}

/* A process that has left its rank's group, and prints without end, does not keep pwcrun from
 * ending. SIGPIPE ends that process then. */
static void test_chatty_descendant(void)
{
    static const char script[] =
        "trap 'exit 3' USR1; setsid sh -c \"kill -USR1 $$; yes '' & yes ''\" & "
        "while :; do wait; done";
    expect((const char *[]){"--label", "--", "sh", "-c", script, NULL}, NULL, 3, "rank 0");
}

/* Where nobody reads what pwcrun prints any more, a rank that prints gets SIGPIPE, as without
 * --label; but a daemon may go on to log. */
static void test_unread_output(void)
{
    struct command *command =
        start((const char *[]){"--label", "--", "sh", "-c", "exec yes ''", NULL}, NULL);
    CU_ASSERT(command_await(command, "[0] \n"));
    close(command->out);
    command->out = -1;
    CU_ASSERT_EQUAL(command_finish(command), 128 + SIGPIPE);
    CU_ASSERT(command_said(command, "rank 0 was ended by signal 13"));
    command_free(command);
    command = start((const char *[]){"--", "echo", "ran", NULL}, "FAKE_PWCD=chatty");
    close(command->err);
    command->err = -1;
    CU_ASSERT_EQUAL(command_finish(command), 0);
    CU_ASSERT_STRING_EQUAL(command->out_text, "ran\n");
    command_free(command);
}

/* ---- nothing is left ------------------------------------------------------------------------ */

static int count_entries(const char *folder, const char *prefix)
{
    DIR *open_folder = opendir(folder);
    if (open_folder == NULL)
        return 0;
    int count = 0;
    struct dirent *entry;
    while ((entry = readdir(open_folder)) != NULL)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(open_folder);
    return count;
}

/* Finds the pid that a script printed as "NAME pid\n". */
static pid_t printed_pid(const struct command *command, const char *name)
{
    const char *at = strstr(command->out_text, name);
    return at != NULL ? (pid_t)atoi(at + strlen(name)) : -1;
}

static bool ends(pid_t pid)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return errno == ESRCH;
    struct pollfd polled = {.fd = pidfd, .events = POLLIN};
    bool ended = poll(&polled, 1, 10000) == 1;
    close(pidfd);
    return ended;
}

/*
 * A rank starts a process of its own, which leaves a file of a shared-memory fabric as a keeper's
 * daemon does: however the run ends, both are removed. Rank, child and reaper have our stdout, so
 * the end of that stream shows that all of them have ended.
 */
static void check_nothing_left(const char *const *options, int ending, int status)
{
    static const char script[] = "sleep 100 & echo child $!; echo self $$; echo up; "
                                 "kill -0 $$; wait";
    const char *words[WORDS_MAX] = {"--nodes", "2"};
    size_t count = 2;
    for (size_t i = 0; options[i] != NULL; i++)
        words[count++] = options[i];
    const char *const program[] = {"-n", "1", "--", "sh", "-c", script};
    memcpy(words + count, program, sizeof(program));

    struct command *command = start(words, NULL);
    CU_ASSERT(command_await(command, "up\n"));
    CU_ASSERT_EQUAL(count_entries(runtime_dir, "pwcrun."), 1);
    pid_t child = printed_pid(command, "child "), self = printed_pid(command, "self ");
    char shm[64], namespaces[64];
    snprintf(shm, sizeof(shm), "/dev/shm/pwcd-%d.%d.00000000", (int)child, (int)self);
    snprintf(namespaces, sizeof(namespaces), "pwcrun-%d-", (int)command->pid);
    FILE *file = fopen(shm, "w");
    if (file != NULL)
        fclose(file);
    kill(command->pid, ending);
    CU_ASSERT_EQUAL(command_finish(command), status);
    CU_ASSERT(ends(child));
    CU_ASSERT(ends(self));
    CU_ASSERT_EQUAL(count_entries(runtime_dir, "pwcrun."), 0);
    CU_ASSERT_EQUAL(count_entries("/run/netns", namespaces), 0);
    if (ending == SIGKILL)
        CU_ASSERT_NOT_EQUAL(access(shm, F_OK), 0);
    unlink(shm);
    command_free(command);
}

static void test_nothing_left(void)
{
    static const char *const plain[] = {NULL};
    check_nothing_left(plain, SIGTERM, 128 + SIGTERM);
    check_nothing_left(plain, SIGKILL, 128 + SIGKILL);
}

/* The run ends as it does otherwise, and pwcrun removes what the reaper would have removed. The
 * rank ends when pwcrun has taken notice of the reaper's end. */
static void test_reaper_killed(void)
{
    static const char script[] =
        "for p in $(cat /proc/$PPID/task/$PPID/children); do "
        "  read name < /proc/$p/comm; test $name = pwcrun-reaper || continue; "
        "  kill -KILL $p; while test -e /proc/$p; do :; done; "
        "done; exit 3";

    expect((const char *[]){"-n", "1", "--", "sh", "-c", script, NULL}, NULL, 3,
           "the reaper, process");
    CU_ASSERT_EQUAL(count_entries(runtime_dir, "pwcrun."), 0);
}

static void test_nothing_left_of_namespaces(void)
{
    static const char *const netns[] = {"--netns", NULL};
    if (geteuid() != 0) {
        expect((const char *[]){"--netns", "--", "true", NULL}, NULL, 125, "needs root");
        return;
    }
    check_nothing_left(netns, SIGTERM, 128 + SIGTERM);
    check_nothing_left(netns, SIGKILL, 128 + SIGKILL);
}

/* A stand-in for ip(8) kills pwcrun before it makes a namespace. Without the reaper's patience, the
 * run's folder would be gone before, and the namespace would stay. */
static void test_killed_while_namespaces_are_made(void)
{
    static const char script[] =
        "#!/bin/sh\n"
        "PATH=${PATH#*:}\n"
        "if [ \"$1 $2\" = 'netns add' ]; then\n"
        "    kill -KILL $PPID\n"
        "    i=0\n"
        "    while [ $i -lt 20 ] && ls -d \"$XDG_RUNTIME_DIR\"/pwcrun.* >/dev/null 2>&1; do\n"
        "        sleep 0.05\n"
        "        i=$((i + 1))\n"
        "    done\n"
        "fi\n"
        "exec ip \"$@\"\n";
    char program[64], setting[4096], namespaces[64];
    if (geteuid() != 0)
        return;
    snprintf(program, sizeof(program), "%s/ip", runtime_dir);
    FILE *file = fopen(program, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(script, file);
    fchmod(fileno(file), 0700);
    fclose(file);
    snprintf(setting, sizeof(setting), "PATH=%s:%s", runtime_dir, getenv("PATH"));
    struct command *command = start((const char *[]){"--netns", "--", "true", NULL}, setting);
    snprintf(namespaces, sizeof(namespaces), "pwcrun-%d-", (int)command->pid);
    CU_ASSERT_EQUAL(command_finish(command), 128 + SIGKILL);
    CU_ASSERT_EQUAL(count_entries("/run/netns", namespaces), 0);
    CU_ASSERT_EQUAL(count_entries(runtime_dir, "pwcrun."), 0);
    command_free(command);
    unlink(program);
}

/* Two runs at once, each with namespaces of its own. */
static void test_side_by_side(void)
{
    const char *const words[] = {
        geteuid() == 0 ? "--netns" : "--label",  "--nodes", "3", "--", "sh", "-c",
        "echo up; read line </dev/null; exit 0", NULL};
    struct command *one = start(words, NULL), *other = start(words, NULL);
    CU_ASSERT_EQUAL(command_finish(one), 0);
    CU_ASSERT_EQUAL(command_finish(other), 0);
    command_free(one);
    command_free(other);
}

static void test_secret_is_private(void)
{
    struct command *command =
        start((const char *[]){"--", "sh", "-c",
                               "stat -c '%a %s' $(dirname $PWC_SOCKET)/secret; "
                               "stat -c %a $(dirname $PWC_SOCKET)",
                               NULL},
              NULL);
    CU_ASSERT_EQUAL(command_finish(command), 0);
    CU_ASSERT_STRING_EQUAL(command->out_text, "600 64\n700\n");
    command_free(command);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {
        {"bad options", test_bad_options},
        {"the first failure's status", test_status},
        {"lines are whole", test_lines_are_whole},
        {"a program that cannot run", test_program_that_cannot_run},
        {"a daemon that fails", test_daemon_fails},
        {"daemons that were stopped", test_daemons_that_were_stopped},
        {"closed streams", test_closed_streams},
        {"environment and labels", test_environment_and_labels},
        {"ranks of pwcperf, and by -np", test_ranks},
        {"processors", test_bind},
        {"ranks of another launcher", test_hold_and_place},
        {"daemons that are held", test_hold_alone},
        {"what cannot be placed", test_place_refuses},
        {"signals are forwarded", test_signals_are_forwarded},
        {"a signal ends the ranks", test_signal_ends_ranks},
        {"signals that the parent ignores", test_signals_that_are_ignored},
        {"signals before the start", test_signals_before_the_start},
        {"a rank that prints without end", test_chatty_rank},
        {"a descendant that prints without end", test_chatty_descendant},
        {"output that nobody reads", test_unread_output},
        {"nothing is left", test_nothing_left},
        {"the reaper is killed", test_reaper_killed},
        {"nothing is left of namespaces", test_nothing_left_of_namespaces},
        {"killed while namespaces are made", test_killed_while_namespaces_are_made},
        {"two runs side by side", test_side_by_side},
        {"the secret is private", test_secret_is_private},
        CU_TEST_INFO_NULL};
    int status;

    if (argc != 3 || mkdtemp(runtime_dir) == NULL)
        return 2;
    pwcrun_path = argv[1];
    daemon_path = argv[2];
    setenv("XDG_RUNTIME_DIR", runtime_dir, 1);

    status = suite_run("pwcrun", tests);
    rmdir(runtime_dir);
    return status;
}

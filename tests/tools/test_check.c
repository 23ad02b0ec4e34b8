/* pwcd --check-config and --providers: both report everything that would stop a start. Argument:
 * the path of pwcd. */
#include <CUnit/Basic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/lib/command.h"
#include "tests/suite.h"

#define TWO "127.0.0.1:23101,127.0.0.1:23102"

/* Paths of pwcd and of the odd daemon, which main sets once. */
static const char *pwcd_path, *odd_path;
static char folder[] = "/tmp/test_check.XXXXXX";
static char secret[64], open_secret[64], file[64], other_file[64], odd_copy[64];
static char unmade[64]; /* path of a socket that no check makes */

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *to = fopen(path, "we");
    if (to == NULL || fputs(text, to) < 0 || fclose(to) != 0 || chmod(path, mode) < 0) {
        perror(path);
        abort();
    }
}

static struct command *run_program(const char *program, const char *const *arguments,
                                   const char *setting)
{
    const char *argv[16] = {program};
    for (int i = 0; i < 14 && arguments[i] != NULL; i++)
        argv[1 + i] = arguments[i];
    struct command *command = command_start(argv, setting);
    command_finish(command);
    return command;
}

static struct command *run(const char *const *arguments, const char *setting)
{
    return run_program(pwcd_path, arguments, setting);
}

static void test_what_a_start_would_find(void)
{
    const struct {
        const char *arguments[12];
        int status;
        const char *said[2];
    } rows[] = {
        {{"--socket", unmade}, 0, {NULL}},
        {{"--nodes", TWO, "--node", "0", "--secret", secret, "--socket", unmade}, 0, {NULL}},
        {{"--nodes", TWO, "--node", "0", "--secret", open_secret, "--socket", unmade},
         1,
         {"mode 0644: chmod 0600 it"}},
        {{"--nodes", TWO, "--node", "0", "--secret", "/none", "--socket", unmade},
         1,
         {"secret \"/none\""}},
        {{"--nodes", TWO, "--node", "2", "--secret", secret, "--socket", unmade},
         1,
         {"node 2 is not in the list"}},
        {{"--nodes", "127.0.0.1:1,127.0.0.1", "--node", "0", "--socket", unmade},
         1,
         {"give host:port"}},
        {{"--nodes", "192.0.2.7:1,127.0.0.1:1", "--node", "0", "--secret", secret, "--socket",
          unmade},
         1,
         {"which is no address of this machine"}},
        {{"--nodes", TWO, "--node", "0", "--secret", secret, "--address", "nowhere", "--socket",
          unmade},
         1,
         {"cannot bind to 'nowhere'"}},
        {{"--provider", "no-such", "--socket", unmade}, 1, {"no provider no-such"}},
        {{"--ledger-start", "5000", "--socket", unmade}, 1, {"sizes do not fit"}},
        /* all errors are reported, not only the first */
        {{"--allow-users", "nobody-here", "--nodes", TWO, "--node", "0", "--socket", unmade},
         1,
         {"need a secret", "user \"nobody-here\" is unknown"}},
        {{"--provder", "net"}, 2, {"did you mean --provider?"}},
        {{"--log", "loud"}, 2, {"give one of error|warning|info|debug"}},
        {{"--config", "/none/at/all"}, 2, {"/none/at/all"}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *arguments[16] = {"--config", "none", "--check-config"};
        memcpy(arguments + 3, rows[i].arguments, sizeof(rows[i].arguments));
        struct command *command = run(arguments, NULL);
        CU_ASSERT_EQUAL(command->status, rows[i].status);
        for (int s = 0; s < 2 && rows[i].said[s] != NULL; s++)
            CU_ASSERT(command_said(command, rows[i].said[s]));
        CU_ASSERT(rows[i].status != 0 || command->err_text[0] == '\0');
        if (command->status != rows[i].status || rows[i].status == 0)
            fputs(command->err_text, stderr);
        CU_ASSERT_EQUAL(access(unmade, F_OK), -1); /* no socket was made */
        command_free(command);
    }
}

/* A flag has precedence over the environment, and the environment over the file. */
static void test_what_holds(void)
{
    static const char *const lines[] = {
        "\n[pwcd]",       "\nrails = 2 ",          "; file ", ":3\n", "; environment PWCD_NODE\n",
        "; flag --log\n", "\naddress = 127.0.0.1 "};
    write_file(file, "[pwcd]\naddress = 127.0.0.1\nrails = 2\nnode = 1\nlog = info\n", 0644);
    const char *const arguments[] = {"--config", file,       "--check-config", "--log",
                                     "debug",    "--socket", unmade,           "--nodes",
                                     TWO,        "--secret", secret,           NULL};
    struct command *command = run(arguments, "PWCD_NODE=0");
    char text[COMMAND_TEXT_MAX + 1] = "\n";
    CU_ASSERT_EQUAL(command->status, 0);
    fputs(command->err_text, stderr);
    strcat(text, command->out_text);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        CU_ASSERT_PTR_NOT_NULL(strstr(text, lines[i]));
    write_file(file, command->out_text, 0644);
    const char *const again[] = {"--config", file, "--check-config", NULL};
    command_free(command);
    command = run(again, NULL);
    CU_ASSERT_EQUAL(command->status, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, "node = 0 "));
    command_free(command);
}

static struct command *run_as_other(const char *const *arguments, const char *setting)
{
    const char *words[16] = {"--reuid=65534", "--clear-groups", odd_copy};
    memcpy(words + 3, arguments, 5 * sizeof(*arguments));
    return run_program("setpriv", words, setting);
}

/* A daemon that root runs reads the system's file, unless --config names another; daemons of other
 * users do not read it. */
static void test_which_file(void)
{
    enum { AS_ROOT, AS_OTHER };
    const struct {
        const char *arguments[5];
        int who;
        bool there; /* whether the system's file exists */
        bool read;
    } rows[] = {
        {{"--check-config"}, AS_ROOT, true, true},
        {{"--check-config"}, AS_ROOT, false, false},
        {{"--check-config"}, AS_OTHER, true, false},
        {{"--check-config", "--config", "none"}, AS_ROOT, true, false},
        {{"--check-config", "--config", other_file}, AS_ROOT, true, false},
        {{"--check-config", "--config", file}, AS_OTHER, true, true},
    };
    char setting[96];
    snprintf(setting, sizeof(setting), "PWCD_ODD_CONFIG=%s", file);
    write_file(other_file, "[pwcd]\nrails = 4\nsocket = /tmp/x\n", 0644);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (geteuid() != 0 && rows[i].who == AS_ROOT)
            continue;
        unlink(file);
        if (rows[i].there)
            write_file(file, "[pwcd]\nrails = 2\nsocket = /tmp/x\n", 0644);
        struct command *command = geteuid() == 0 && rows[i].who == AS_OTHER
                                      ? run_as_other(rows[i].arguments, setting)
                                      : run_program(odd_path, rows[i].arguments, setting);
        CU_ASSERT_EQUAL(strstr(command->out_text, "rails = 2") != NULL, rows[i].read);
        CU_ASSERT_EQUAL(strstr(command->out_text, "conf:2\n") != NULL, rows[i].read);
        if ((strstr(command->out_text, "rails = 2") != NULL) != rows[i].read)
            fprintf(stderr, "row %zu: %s%s", i, command->out_text, command->err_text);
        command_free(command);
    }
}

/* The named provider is selected, or otherwise the first one; the list begins with the selected
 * one. */
static void test_providers(void)
{
    const char *const all[] = {"--config", "none", "--providers", NULL};
    const char *const named[] = {"--config", "none", "--providers", "--provider", "net", NULL};
    const char *const unknown[] = {"--config",   "none",    "--providers",
                                   "--provider", "no-such", NULL};
    struct command *command = run(all, NULL);
    CU_ASSERT_EQUAL(command->status, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, "tcp;ofi_rxm\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(command->out_text, "\nshm\n"));
    command_free(command);
    command = run(named, NULL);
    CU_ASSERT_EQUAL(command->status, 0);
    CU_ASSERT_EQUAL(strncmp(command->out_text, "net\n", 4), 0);
    CU_ASSERT_PTR_NULL(strstr(command->out_text + 4, "\nnet\n"));
    command_free(command);
    command = run(unknown, NULL);
    CU_ASSERT_EQUAL(command->status, 1);
    CU_ASSERT(command_said(command, "no provider no-such"));
    command_free(command);
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"what a start would find", test_what_a_start_would_find},
                           {"what holds", test_what_holds},
                           {"which file", test_which_file},
                           {"providers", test_providers},
                           CU_TEST_INFO_NULL};
    int failed;

    if (argc != 3 || mkdtemp(folder) == NULL || chmod(folder, 0755) < 0)
        return 2;
    pwcd_path = argv[1];
    odd_path = argv[2];
    snprintf(secret, sizeof(secret), "%s/secret", folder);
    snprintf(open_secret, sizeof(open_secret), "%s/open", folder);
    snprintf(file, sizeof(file), "%s/conf", folder);
    snprintf(unmade, sizeof(unmade), "%s/socket", folder);
    write_file(secret, "0123456789abcdef0123456789abcdef", 0600);
    write_file(open_secret, "0123456789abcdef0123456789abcdef", 0644);
    snprintf(other_file, sizeof(other_file), "%s/other", folder);
    snprintf(odd_copy, sizeof(odd_copy), "%s/pwcd", folder); /* others may not reach ours */
    const char *const copy[] = {"-p", odd_path, odd_copy, NULL};
    command_free(run_program("cp", copy, NULL));
    failed = suite_run("check", tests);
    unlink(secret);
    unlink(open_secret);
    unlink(file);
    unlink(other_file);
    unlink(odd_copy);
    rmdir(folder);
    return failed;
}

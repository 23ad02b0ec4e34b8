/*
 * Programs of handlers in a real daemon, through the library: load, refusals, quota, unload.
 * Programs stay when the daemon dies or hands over, and are unloaded when their client dies. pwcctl
 * shows them.
 *
 *     test_programs PWCD PWCCTL OBJECT LONGEST
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "proto/handler_code.h"
#include "pwc/offload.h"
#include "tests/lib/cluster.h"
#include "tests/lib/command.h"
#include "tests/lib/rank.h"
#include "tests/lib/raw/look.h"
#include "tests/suite.h"
#include "tests/system/lib/offload.h"

enum { LIMIT_S = 30, QUOTA = 4, ELF_MAX = 1 << 20 };

static struct cluster cluster;
static const char *pwcctl, *object, *longest;
static uint8_t elf[ELF_MAX];
static size_t elf_bytes;

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
}

static void attach(struct rank *r, const char *job)
{
    CU_ASSERT_EQUAL_FATAL(rank_attach(r, cluster.nodes[0].socket, job, 0, 1, 4096), 0);
}

static int load(struct rank *r, pwc_program **out)
{
    return pwc_program_load(r->client, elf, elf_bytes, NULL, out);
}

static bool says(struct rank *r, const char *words)
{
    char text[256];

    pwc_error_text(r->client, text, sizeof(text));
    if (!strstr(text, words))
        printf("\n  \"%s\" instead of \"%s\"\n", text, words);
    return strstr(text, words) != NULL;
}

/* Returns the number of programs that the daemon has; *last is the last one's number. */
static int programs(unsigned *last)
{
    int s = raw_connect_to(cluster.nodes[0].socket);
    json_t *document = s >= 0 ? look_on(s, "programs") : NULL;
    const json_t *rows = json_object_get(document, "programs");
    int n = json_is_array(rows) ? (int)json_array_size(rows) : -1;

    if (n > 0 && last)
        *last = (unsigned)json_integer_value(
            json_object_get(json_array_get(rows, (size_t)n - 1), "program"));
    json_decref(document);
    if (s >= 0)
        close(s);
    return n;
}

static bool programs_become(int wanted)
{
    for (time_t end = time(NULL) + LIMIT_S; time(NULL) < end; nap())
        if (programs(NULL) == wanted)
            return true;
    return false;
}

/* Runs pwcctl with two arguments, and checks its exit status and that its output has these
 * words. */
static void ctl(const char *what, const char *argument, int status, const char *words)
{
    const char *const argv[] = {pwcctl, "--socket", cluster.nodes[0].socket, what, argument, NULL};
    struct command *command = command_start(argv, NULL);

    CU_ASSERT_PTR_NOT_NULL_FATAL(command);
    CU_ASSERT_EQUAL(command_finish(command), status);
    CU_ASSERT(strstr(command->out_text, words) || strstr(command->err_text, words));
    if (!strstr(command->out_text, words) && !strstr(command->err_text, words))
        printf("\n  %s %s: %s%s\n", what, argument, command->out_text, command->err_text);
    command_free(command);
}

/* ---- the library ----------------------------------------------------------------------------- */

static void loaded(void)
{
    struct pwc_handler_limits limits;
    pwc_program *all[QUOTA], *more;
    struct rank r;

    attach(&r, "loaded");
    CU_ASSERT_EQUAL(pwc_handler_limits(r.client, &limits), 0);
    CU_ASSERT(limits.hpus == 1 && limits.instructions == 4096 && limits.packet == 4096);
    for (int i = 0; i < QUOTA; i++)
        CU_ASSERT_EQUAL_FATAL(load(&r, &all[i]), 0);
    CU_ASSERT_EQUAL(programs(NULL), QUOTA);
    CU_ASSERT_EQUAL(load(&r, &more), -EDQUOT);
    CU_ASSERT(says(&r, "the quota (client-programs) is 4"));
    CU_ASSERT_EQUAL(pwc_program_unload(all[0]), 0);
    CU_ASSERT_EQUAL(load(&r, &all[0]), 0);
    for (int i = 0; i < QUOTA; i++)
        CU_ASSERT_EQUAL(pwc_program_unload(all[i]), 0);
    CU_ASSERT_EQUAL(programs(NULL), 0);
    rank_detach(&r);
}

/* The longest program that docs/handlers.md allows. */
static void loaded_longest(void)
{
    pwc_program *program;
    struct rank r;

    attach(&r, "longest");
    ctl("check", longest, 0, "4096 instructions");
    CU_ASSERT_EQUAL_FATAL(offload_load(&r, longest, &program), 0);
    CU_ASSERT_EQUAL(programs(NULL), 1);
    CU_ASSERT_EQUAL(pwc_program_unload(program), 0);
    rank_detach(&r);
}

/* Files that must be refused: the object with each byte of its code changed, and files without a
 * program. */
static void refused(void)
{
    static const struct pwc_program_names nobody = {.payload = "nobody"}, later = {.reserved = {1}};
    static uint8_t bent[ELF_MAX];
    char why[256], long_name[300];
    struct pwc_program_names long_names = {.header = long_name};
    unsigned accepted = 0, by_daemon = 0, by_library = 0;
    pwc_program *program;
    struct rank r;

    attach(&r, "refused");
    CU_ASSERT_EQUAL(pwc_program_load(r.client, "none", 4, NULL, &program), -ENOEXEC);
    CU_ASSERT(says(&r, "this is no ELF file"));
    CU_ASSERT_EQUAL(pwc_program_load(r.client, elf, elf_bytes, &nobody, &program), -ENOEXEC);
    CU_ASSERT(says(&r, "there is no function nobody in the file"));
    CU_ASSERT_EQUAL(pwc_program_load(r.client, elf, elf_bytes, &later, &program), -EINVAL);
    memset(long_name, 'x', sizeof(long_name) - 1);
    long_name[sizeof(long_name) - 1] = '\0';
    CU_ASSERT_EQUAL(pwc_program_load(r.client, elf, elf_bytes, &long_names, &program), -EINVAL);
    CU_ASSERT(says(&r, "longer than 255"));
    memcpy(bent, elf, elf_bytes);
    for (size_t i = 0; i < elf_bytes; i += 3) {
        int rc;

        bent[i] ^= 0xff;
        rc = pwc_program_load(r.client, bent, elf_bytes, NULL, &program);
        bent[i] = elf[i];
        CU_ASSERT(rc == 0 || rc == -ENOEXEC);
        if (rc == 0) {
            accepted++;
            CU_ASSERT_EQUAL(pwc_program_unload(program), 0);
            continue;
        }
        pwc_error_text(r.client, why, sizeof(why));
        CU_ASSERT_NOT_EQUAL(why[0], '\0');
        *(strncmp(why, "function ", 9) == 0 ? &by_daemon : &by_library) += 1;
    }
    printf("\n    %u accepted, %u refused with an instruction, %u otherwise ", accepted, by_daemon,
           by_library);
    CU_ASSERT(by_daemon > 0 && by_library > 0);
    CU_ASSERT_EQUAL(programs(NULL), 0);
    rank_detach(&r);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

static pid_t next_daemon(pid_t than)
{
    time_t end = time(NULL) + LIMIT_S;
    pid_t pid;

    while (((pid = cluster_kept(&cluster, 0)) == 0 || pid == than) && time(NULL) < end)
        nap();
    return pid;
}

static void killed(void)
{
    pid_t pid = cluster_kept(&cluster, 0);

    CU_ASSERT_FATAL(pid > 0);
    kill(pid, SIGKILL);
    CU_ASSERT_NOT_EQUAL(next_daemon(pid), 0);
}

static void handed_over(void)
{
    pid_t pid = cluster_kept(&cluster, 0);

    CU_ASSERT_EQUAL(kill(cluster.nodes[0].pid, SIGUSR2), 0);
    for (time_t end = time(NULL) + LIMIT_S; kill(pid, 0) == 0 && time(NULL) < end;)
        nap();
}

/* The next daemon still has the program, under the same number, and counts it in the quota. */
static void survives(struct rank *r, void (*daemon_goes)(void))
{
    pwc_program *all[QUOTA], *more;
    unsigned before = 0, after = 0;
    char number[16];

    for (int i = 0; i < QUOTA; i++)
        CU_ASSERT_EQUAL_FATAL(load(r, &all[i]), 0);
    CU_ASSERT_EQUAL(programs(&before), QUOTA);
    daemon_goes();
    CU_ASSERT(programs_become(QUOTA));
    (void)programs(&after);
    CU_ASSERT_EQUAL(before, after);
    snprintf(number, sizeof(number), "%u", after);
    ctl("disassemble", number, 0, ": exit");
    CU_ASSERT_EQUAL(load(r, &more), -EDQUOT);
    CU_ASSERT(says(r, "the quota (client-programs) is 4"));
    for (int i = 0; i < QUOTA; i++)
        CU_ASSERT_EQUAL(pwc_program_unload(all[i]), 0);
    CU_ASSERT_EQUAL(programs(NULL), 0);
}

static void restarts(void)
{
    struct rank r;

    attach(&r, "restarts");
    for (int i = 0; i < 3; i++) {
        survives(&r, killed);
        survives(&r, handed_over);
    }
    rank_detach(&r);
}

/* Programs of a killed client are unloaded, also where a daemon takes over meanwhile. */
static void client_dies(void)
{
    for (int i = 0; i < 4; i++) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            pwc_program *program;
            struct rank r;

            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (rank_attach(&r, cluster.nodes[0].socket, "dies", 0, 1, 4096) == 0 &&
                load(&r, &program) == 0 && load(&r, &program) == 0)
                for (;;)
                    pause();
            _exit(1);
        }
        CU_ASSERT(programs_become(2));
        kill(pid, SIGKILL);
        CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
        CU_ASSERT(WIFSIGNALED(status));
        if (i % 2)
            killed();
        CU_ASSERT(programs_become(0));
    }
}

/* ---- pwcctl ---------------------------------------------------------------------------------- */

static void shown(void)
{
    pwc_program *program;
    unsigned number = 0;
    char text[16];
    struct rank r;

    ctl("check", object, 0, "the daemon takes it: ");
    CU_ASSERT_EQUAL(programs(NULL), 0);
    ctl("check", "/no/such.o", 1, "No such file");
    ctl("check", pwcctl, 1, "the file is not for bpf");
    ctl("disassemble", object, 0, "(header handler)");
    ctl("disassemble", "12345", 1, "there is none that is shown to you");
    attach(&r, "shown");
    CU_ASSERT_EQUAL_FATAL(load(&r, &program), 0);
    CU_ASSERT_EQUAL(programs(&number), 1);
    snprintf(text, sizeof(text), "0.%u", number);
    ctl("disassemble", text, 0, "header:  (header handler)\n       0: r");
    CU_ASSERT_EQUAL(pwc_program_unload(program), 0);
    ctl("disassemble", text, 1, "there is none that is shown to you");
    rank_detach(&r);
}

int main(int argc, char **argv)
{
    static const char *const more[] = {"--keep", "--client-programs", "4", NULL};
    struct cluster_options options = {.nodes = 1, .more = more};
    CU_TestInfo tests[] = {{"loaded, and over the quota", loaded},
                           {"the longest program", loaded_longest},
                           {"hostile files", refused},
                           {"pwcctl", shown},
                           {"restarts and hand-overs", restarts},
                           {"a client is killed", client_dies},
                           CU_TEST_INFO_NULL};
    int status = 1;
    FILE *file;

    if (argc != 5) {
        fprintf(stderr, "usage: %s PWCD PWCCTL OBJECT LONGEST\n", argv[0]);
        return 2;
    }
    options.pwcd = argv[1];
    pwcctl = argv[2];
    object = argv[3];
    longest = argv[4];
    file = fopen(object, "rbe");
    if (!file) {
        perror(object);
        return 2;
    }
    elf_bytes = fread(elf, 1, sizeof(elf), file);
    fclose(file);
    if (cluster_open(&cluster, &options) == 0)
        status = suite_run("programs", tests);
    return cluster_end(&cluster, status);
}

/* How attributes and environment give a process's identity (job, rank, size) and the daemon's
 * socket. Also the texts of errors. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "clientlib/attach/environment.h"
#include "tests/suite.h"

static const char *const names[] = {
    "PWC_SOCKET",      "PWC_JOB",      "PWC_RANK",      "PWC_SIZE",
    "PMIX_RANK",       "SLURM_PROCID", "SLURM_NTASKS",  "SLURM_STEP_NUM_TASKS",
    "PMIX_NAMESPACE",  "SLURM_JOB_ID", "SLURM_STEP_ID", "OMPI_COMM_WORLD_SIZE",
    "XDG_RUNTIME_DIR",
};

static void clear_environment(void)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

/* Sets the environment to these strings, each "NAME=value". */
static void set_environment(const char *const *settings, size_t count)
{
    clear_environment();
    for (size_t i = 0; i < count && settings[i]; i++) {
        char name[64];
        const char *equals = strchr(settings[i], '=');

        memcpy(name, settings[i], (size_t)(equals - settings[i]));
        name[equals - settings[i]] = '\0';
        CU_ASSERT_EQUAL_FATAL(setenv(name, equals + 1, 1), 0);
    }
}

#define NOBODY  65534 /* a user who is not root */
#define LONG_60 "123456789012345678901234567890123456789012345678901234567890"

static void test_environment(void)
{
    static const struct {
        const char *settings[6];
        struct pwc_attr attr;
        int result;
        const char *socket, *job;
        uint32_t rank, size;
    } rows[] = {
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=3", "PWC_SIZE=4"}, {0}, 0, "/s", "j", 3, 4},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=4", "PWC_SIZE=4"}, {0}, -EINVAL, 0, 0, 0, 0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=", "PWC_SIZE=4"}, {0}, -ENODATA, 0, 0, 0, 0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=-1", "PWC_SIZE=4"}, {0}, -EINVAL, 0, 0, 0, 0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK= 1", "PWC_SIZE=4"}, {0}, -EINVAL, 0, 0, 0, 0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=1x", "PWC_SIZE=4"}, {0}, -EINVAL, 0, 0, 0, 0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=1", "PWC_SIZE=4294967296"},
         {0},
         -EINVAL,
         0,
         0,
         0,
         0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=1", "PWC_SIZE=99999999999999999999"},
         {0},
         -EINVAL,
         0,
         0,
         0,
         0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=1"}, {0}, -ENODATA, 0, 0, 0, 0},
        {{"PWC_SOCKET=/s", "PWC_RANK=1", "PWC_SIZE=2"}, {0}, -ENODATA, 0, 0, 0, 0},
        {{"PWC_SOCKET=/s", "PWC_JOB=" LONG_60, "PWC_RANK=1", "PWC_SIZE=2"},
         {0},
         -EINVAL,
         0,
         0,
         0,
         0},
        {{"PWC_SOCKET=/" LONG_60 LONG_60, "PWC_JOB=j", "PWC_RANK=1", "PWC_SIZE=2"},
         {0},
         -EINVAL,
         0,
         0,
         0,
         0},
        {{"PWC_SOCKET=/s", "SLURM_JOB_ID=17", "SLURM_STEP_ID=2", "SLURM_PROCID=1",
          "SLURM_NTASKS=3"},
         {0},
         0,
         "/s",
         "17.2",
         1,
         3},
        {{"PWC_SOCKET=/s", "PMIX_NAMESPACE=n", "PMIX_RANK=2", "SLURM_PROCID=1",
          "SLURM_STEP_NUM_TASKS=5", "SLURM_NTASKS=9"},
         {0},
         0,
         "/s",
         "n",
         2,
         5},
        {{"PWC_SOCKET=/s", "PMIX_NAMESPACE=n", "PMIX_RANK=0", "OMPI_COMM_WORLD_SIZE=1"},
         {0},
         0,
         "/s",
         "n",
         0,
         1},
        {{"PWC_SOCKET=/e", "PWC_JOB=e", "PWC_RANK=3", "PWC_SIZE=4"},
         {.socket = "/a", .job = "a", .rank = 1, .size = 2},
         0,
         "/a",
         "a",
         1,
         2},
        {{"PWC_SOCKET=/s", "SLURM_JOB_ID=17", "SLURM_PROCID=1", "SLURM_NTASKS=3"},
         {0},
         0,
         "/s",
         "17.0",
         1,
         3},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=1", "PWC_SIZE=4294967295"},
         {0},
         -EINVAL,
         0,
         0,
         0,
         0},
        {{"PWC_SOCKET=/s", "PWC_JOB=j", "PWC_RANK=:", "PWC_SIZE=2"}, {0}, -EINVAL, 0, 0, 0, 0},
        {{NULL}, {.socket = "/a", .job = "a", .rank = 2, .size = 2}, -EINVAL, 0, 0, 0, 0},
        {{NULL}, {.socket = "", .job = "a", .rank = 0, .size = 2}, -EINVAL, 0, 0, 0, 0},
        {{NULL}, {.socket = "/a", .job = "", .rank = 0, .size = 2}, -EINVAL, 0, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct environment found;
        char why[256] = "";

        set_environment(rows[i].settings, 6);
        CU_ASSERT_EQUAL(environment_resolve(&rows[i].attr, &found, why, sizeof(why)),
                        rows[i].result);
        CU_ASSERT_EQUAL(*why == '\0', rows[i].result == 0);
        if (rows[i].result != 0)
            continue;
        CU_ASSERT_STRING_EQUAL(found.socket, rows[i].socket);
        CU_ASSERT_STRING_EQUAL(found.job, rows[i].job);
        CU_ASSERT_EQUAL(found.rank, rows[i].rank);
        CU_ASSERT_EQUAL(found.size, rows[i].size);
        CU_ASSERT_EQUAL(found.timeout_ms, ENVIRONMENT_TIMEOUT_MS);
    }
    clear_environment();
}

static void test_default_socket(void)
{
    struct pwc_attr attr = {.job = "j", .size = 1, .timeout_ms = 5};
    char why[256] = "", folder[] = "/tmp/pwc-environment.XXXXXX", path[64], own[80];
    const char *const system = "/run/pwcd/pwcd.sock";
    struct environment found;
    int socket;

    /* Without a daemon of the user's own the system's is taken; then there is the user's own. */
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    clear_environment();
    CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)), 0);
    CU_ASSERT_STRING_EQUAL(found.socket, system);
    CU_ASSERT_EQUAL(found.timeout_ms, 5);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)), 0);
    CU_ASSERT_STRING_EQUAL(found.socket, system);
    snprintf(path, sizeof(path), "%s/pwcd", folder);
    snprintf(own, sizeof(own), "%s/pwcd.sock", path);
    CU_ASSERT_EQUAL(mkdir(path, 0700), 0);
    socket = open(own, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CU_ASSERT_FATAL(socket >= 0);
    CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)), 0);
    CU_ASSERT_STRING_EQUAL(found.socket, geteuid() == 0 ? system : own);
    if (geteuid() == 0) { /* root never takes one of its own */
        CU_ASSERT_EQUAL(chmod(folder, 0755) + chmod(path, 0755), 0);
        CU_ASSERT_EQUAL_FATAL(seteuid(NOBODY), 0);
        CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)), 0);
        CU_ASSERT_STRING_EQUAL(found.socket, own);
        setenv("XDG_RUNTIME_DIR", "/no/such/folder", 1);
        CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)), 0);
        CU_ASSERT_STRING_EQUAL(found.socket, system);
        unsetenv("XDG_RUNTIME_DIR");
        CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)), 0);
        CU_ASSERT_STRING_EQUAL(found.socket, system);
        CU_ASSERT_EQUAL(seteuid(0), 0);
    }
    close(socket);
    unlink(own);
    rmdir(path);
    rmdir(folder);
    clear_environment();
}

/* A runtime directory whose path is too long for a socket's address is an error; the system's
 * daemon is not taken instead. For root no runtime directory counts, so the test runs as another
 * user. */
static void test_long_runtime_directory(void)
{
    struct pwc_attr attr = {.job = "j", .size = 1};
    char why[256] = "", folder[ENVIRONMENT_SOCKET_MAX];
    const size_t fits = sizeof(folder) - sizeof("/pwcd/pwcd.sock");
    const bool root = geteuid() == 0;
    struct environment found;

    if (root && seteuid(1) != 0) {
        printf("left out: nobody else to be\n");
        return;
    }
    clear_environment();
    for (size_t length = fits; length < fits + 2; length++) {
        memset(folder, 'x', length);
        folder[0] = '/';
        folder[length] = '\0';
        setenv("XDG_RUNTIME_DIR", folder, 1);
        CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)),
                        length == fits ? 0 : -EINVAL);
        CU_ASSERT_EQUAL(*why == '\0', length == fits);
    }
    clear_environment();
    if (root)
        CU_ASSERT_EQUAL(seteuid(0), 0);
}

/* In a Slurm job: the job's own daemon, else the node's. */
static void test_job_socket(void)
{
    static const struct {
        const char *id, *named;
        int result;
        const char *socket, *other;
    } rows[] = {
        {"17", NULL, 0, "@pwcd/%u/17", "/run/pwcd/pwcd.sock"},
        {"17", "/s", 0, "/s", ""},
        {"17", "@s", 0, "@s", ""},
        {"1/7", NULL, -EINVAL, NULL, NULL},
        {LONG_60 "123", NULL, 0, "@pwcd/%u/" LONG_60 "123", "/run/pwcd/pwcd.sock"},
        {LONG_60 "1234", NULL, -EINVAL, NULL, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pwc_attr attr = {.job = "j", .size = 1};
        struct environment found;
        char why[256] = "", socket[128];

        clear_environment();
        setenv("SLURM_JOB_ID", rows[i].id, 1);
        setenv("XDG_RUNTIME_DIR", "/run/user/7", 1); /* inherited from the submitting shell */
        if (rows[i].named)
            setenv("PWC_SOCKET", rows[i].named, 1);
        CU_ASSERT_EQUAL(environment_resolve(&attr, &found, why, sizeof(why)), rows[i].result);
        CU_ASSERT_EQUAL(*why == '\0', rows[i].result == 0);
        if (rows[i].result != 0)
            continue;
        snprintf(socket, sizeof(socket), rows[i].socket, (unsigned)geteuid());
        CU_ASSERT_STRING_EQUAL(found.socket, socket);
        CU_ASSERT_STRING_EQUAL(found.other, rows[i].other);
    }
    clear_environment();
}

static void test_strerror(void)
{
    /* Every error that the public headers name has a text of its own, for both signs. */
    static const int named[] = {
        0,         E2BIG,     EACCES,       EADDRINUSE,   EAGAIN,       EALREADY,        EBADMSG,
        EBUSY,     ECANCELED, ECONNABORTED, ECONNREFUSED, EDEADLK,      EDQUOT,          EEXIST,
        EFAULT,    EHOSTDOWN, EHOSTUNREACH, EINVAL,       EKEYREJECTED, EMFILE,          EMSGSIZE,
        ENFILE,    ENOBUFS,   ENODATA,      ENOENT,       ENOEXEC,      ENOMEM,          ENOSPC,
        ENOSYS,    ENOTSUP,   EOWNERDEAD,   EPERM,        EPROTO,       EPROTONOSUPPORT, ERANGE,
        EREMOTEIO, ESHUTDOWN, ESTALE,       ETIMEDOUT,
    };
    size_t count = sizeof(named) / sizeof(named[0]);

    for (size_t i = 0; i < count; i++) {
        CU_ASSERT_PTR_EQUAL(pwc_strerror(named[i]), pwc_strerror(-named[i]));
        if (named[i] != ENOMEM && named[i] != 0)
            CU_ASSERT_STRING_NOT_EQUAL(pwc_strerror(named[i]), strerrordesc_np(named[i]));
        for (size_t j = 0; j < i; j++)
            CU_ASSERT_STRING_NOT_EQUAL(pwc_strerror(named[i]), pwc_strerror(named[j]));
    }
    /* Errors of several calls: the text names what each of the calls may mean. */
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EAGAIN), "room"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EAGAIN), "collective"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EAGAIN), "bound"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-ENOENT), "daemon"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-ENOENT), "name"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-ENOENT), "request"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EBUSY), "prepared"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EBUSY), "in use"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EBUSY), "atomic"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EADDRINUSE), "rank"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EADDRINUSE), "name"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EADDRINUSE), "offload"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EALREADY), "cancelled"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-EPERM), "program"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-ESTALE), "home"));
    CU_ASSERT_PTR_NOT_NULL(strstr(pwc_strerror(-ENOTSUP), "open job"));
    CU_ASSERT_STRING_EQUAL(pwc_strerror(-EXDEV), strerrordesc_np(EXDEV));
    CU_ASSERT_STRING_EQUAL(pwc_strerror(-99999), "unknown error");
    CU_ASSERT_STRING_EQUAL(pwc_strerror(INT_MIN), "unknown error");
    CU_ASSERT_STRING_EQUAL(pwc_strerror(INT_MAX), "unknown error");
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"attributes and environment", test_environment},
        {"the default socket", test_default_socket},
        {"a long runtime directory", test_long_runtime_directory},
        {"a job's socket", test_job_socket},
        {"what errors mean", test_strerror},
        CU_TEST_INFO_NULL,
    };

    return suite_run("environment", tests);
}

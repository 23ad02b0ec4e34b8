/* The settings that a job's daemon takes from Slurm's environment, and those that it must not take.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "daemon/control/start/config.h"
#include "daemon/control/start/pmix.h"
#include "daemon/control/start/launch.h"
#include "tests/suite.h"

static const char *const names[] = {
    "PWC_SOCKET",      "SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_LOCALID",
    "SLURMD_NODENAME", "SLURM_NODEID", "PMIX_NAMESPACE",      "PMIX_RANK",
};

enum { SETTINGS_MAX = 6 };

static void set_environment(const char *const *settings)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
    for (size_t i = 0; i < SETTINGS_MAX && settings[i]; i++)
        CU_ASSERT_EQUAL_FATAL(putenv((char *)(uintptr_t)settings[i]), 0);
}

static void environments(void)
{
    static const struct {
        const char *settings[SETTINGS_MAX];
        const char *socket, *nodes; /* both NULL: refused */
        uint64_t node;
        const char *says;
    } rows[] = {
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a"}, "@pwcd/%u/17", "127.0.0.1:16401", 0, NULL},
        {{"SLURM_JOB_ID=17", "SLURM_STEP_NODELIST=a", "SLURM_JOB_NODELIST=a,b", "SLURM_LOCALID=0"},
         "@pwcd/%u/17",
         "127.0.0.1:16401",
         0,
         NULL},
        {{"SLURM_JOB_ID=16384", "SLURM_STEP_NODELIST=a", "PWC_SOCKET=@mine"},
         "@mine",
         "127.0.0.1:16384",
         0,
         NULL},
        /* These names need no look-up: the loopback leads to the other daemon. */
        {{"SLURM_JOB_ID=4294967296", "SLURM_STEP_NODELIST=127.0.0.[1-3]",
          "SLURMD_NODENAME=127.0.0.3", "SLURM_NODEID=0"},
         "@pwcd/%u/4294967296",
         "127.0.0.1:16384,127.0.0.2:16384,127.0.0.1:16384",
         2,
         NULL},
        {{"SLURM_JOB_ID=32767", "SLURM_STEP_NODELIST=127.0.0.[2-3]", "SLURM_NODEID=0"},
         "@pwcd/%u/32767",
         "127.0.0.1:32767,127.0.0.3:32767",
         0,
         NULL},
        /* These variables belong to a launch that is not ours. */
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a", "PMIX_NAMESPACE=gone", "PMIX_RANK=0"},
         "@pwcd/%u/17",
         "127.0.0.1:16401",
         0,
         NULL},
        {{NULL}, NULL, NULL, 0, "SLURM_JOB_ID is not set"},
        {{"PWC_SOCKET=/s"}, NULL, NULL, 0, "SLURM_JOB_NODELIST is set"},
        {{"SLURM_JOB_ID=17"}, NULL, NULL, 0, "SLURM_JOB_NODELIST is set"},
        {{"SLURM_JOB_ID=a/b", "SLURM_JOB_NODELIST=a"}, NULL, NULL, 0, "no job's number: a/b"},
        {{"SLURM_JOB_ID=x", "SLURM_JOB_NODELIST=a"}, NULL, NULL, 0, "give --job-port"},
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a["}, NULL, NULL, 0, "\"a[\""},
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a,b", "SLURMD_NODENAME=c", "SLURM_NODEID=0"},
         NULL,
         NULL,
         0,
         "\"c\" is none of the job's 2 nodes"},
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a,b", "SLURM_NODEID=2"},
         NULL,
         NULL,
         0,
         "\"2\" is none of the job's 2 nodes"},
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a,b", "SLURM_NODEID=-1"}, NULL, NULL, 0, "\"-1\""},
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a,b"}, NULL, NULL, 0, "none of the job's 2"},
        {{"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a,999.999.999.999", "SLURM_NODEID=0"},
         NULL,
         NULL,
         0,
         "\"999.999.999.999\" of the job is not found"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config config;
        char why[512] = "", socket[64];
        int rc;

        config_init(&config);
        set_environment(rows[i].settings);
        rc = launch_configure(&config, false, why, sizeof(why));
        CU_ASSERT_EQUAL(rc == 0, rows[i].nodes != NULL);
        if (rc == 0 && rows[i].nodes) {
            snprintf(socket, sizeof(socket), rows[i].socket, geteuid());
            CU_ASSERT_STRING_EQUAL(config.socket, socket);
            CU_ASSERT_STRING_EQUAL(config.nodes, rows[i].nodes);
            CU_ASSERT_EQUAL(config.node, rows[i].node);
            CU_ASSERT_STRING_EQUAL(config.address, "127.0.0.1");
        } else {
            CU_ASSERT_PTR_NOT_NULL(rows[i].says ? strstr(why, rows[i].says) : NULL);
        }
        if (rc == 0 ? !rows[i].nodes : !rows[i].says || !strstr(why, rows[i].says))
            fprintf(stderr, "row %zu: %d, %s\n", i, rc, why);
        config_free(&config);
    }
}

/* Where srun starts several daemons on a node, only one of them serves. */
static void one_is_enough(void)
{
    static const char *const settings[SETTINGS_MAX] = {"SLURM_LOCALID=1"};
    struct config config;
    char why[512];

    set_environment(settings);
    config_init(&config);
    CU_ASSERT_EQUAL(launch_configure(&config, false, why, sizeof(why)), 1);
    config_free(&config);
}

/* A flag has precedence over the environment. */
static void flags(void)
{
    static const char *const settings[SETTINGS_MAX] = {
        "SLURM_JOB_ID=17", "SLURM_STEP_NODELIST=127.0.0.[2-3]", "SLURM_NODEID=1"};
    struct config config;
    char why[512];

    set_environment(settings);
    config_init(&config);
    CU_ASSERT_EQUAL(config_set(&config, "socket", "/s", CONFIG_FLAG, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(config_set(&config, "job-port", "9", CONFIG_FLAG, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(config_set(&config, "address", "127.1.1.1", CONFIG_FLAG, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(launch_configure(&config, false, why, sizeof(why)), 0);
    CU_ASSERT_STRING_EQUAL(config.socket, "/s");
    CU_ASSERT_STRING_EQUAL(config.nodes, "127.0.0.2:9,127.0.0.1:9");
    CU_ASSERT_STRING_EQUAL(config.address, "127.1.1.1");
    CU_ASSERT_EQUAL(config.node, 1);
    config_free(&config);

    config_init(&config);
    CU_ASSERT_EQUAL(config_set(&config, "nodes", "x:1,y:2", CONFIG_FLAG, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(launch_configure(&config, false, why, sizeof(why)), 0);
    CU_ASSERT_STRING_EQUAL(config.nodes, "x:1,y:2");
    CU_ASSERT_EQUAL(config.node, UINT64_MAX);
    CU_ASSERT_PTR_NULL(config.address);
    config_free(&config);
}

/* A daemon that only checks its configuration (`alone`) waits for no other task, and asks no other
 * node. */
static void looked_at_alone(void)
{
    static const char *const settings[SETTINGS_MAX] = {"SLURM_JOB_ID=17", "SLURM_JOB_NODELIST=a",
                                                       "PMIX_NAMESPACE=gone", "PMIX_RANK=0"};
    struct config config;
    char why[512];

    set_environment(settings);
    config_init(&config);
    CU_ASSERT_EQUAL(launch_configure(&config, true, why, sizeof(why)), 0);
    CU_ASSERT_PTR_NOT_NULL(config.socket);
    CU_ASSERT_EQUAL(config.nodes == NULL, pmix_offered());
    config_free(&config);
}

static int bind_to(uint16_t port, int reuse)
{
    struct sockaddr_in name = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    CU_ASSERT_EQUAL(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse)), 0);
    if (bind(s, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(s, 1) == 0)
        return s;
    close(s);
    return -1;
}

/* No other process can take the port between the daemon's choice and its listen call. */
static void port_is_held(void)
{
    uint16_t port = 0;
    int held = launch_hold_port(&port), s;

    CU_ASSERT_FATAL(held >= 0 && port != 0);
    CU_ASSERT_EQUAL(bind_to(port, 0), -1);
    s = bind_to(port, 1);
    CU_ASSERT(s >= 0);
    close(s);
    close(held);
}

int main(void)
{
    CU_TestInfo tests[] = {{"environments", environments},
                           {"one is enough", one_is_enough},
                           {"flags", flags},
                           {"looked at alone", looked_at_alone},
                           {"the port is held", port_is_held},
                           CU_TEST_INFO_NULL};

    return suite_run("launch", tests);
}

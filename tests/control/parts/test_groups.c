/*
 * Scheduler groups: how a daemon finds those of its clients, on made-up machines whose files are in
 * a folder of the test's own; and the table of sessions, which knows whether all clients are apart.
 *
 * Thread: the test's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "daemon/control/clients/sched_group.h"
#include "daemon/control/threads/host_table.h"
#include "proto/session_abi.h"
#include "tests/suite.h"

static char folder[] = "/tmp/pwc-groups-XXXXXX";

/* ---- made-up machines ------------------------------------------------------------------------ */

/* Writes a file of the made-up machine, with all folders above it. */
static void put_file(const char *name, const char *text)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s%s", folder, name);
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    file = fopen(path, "we");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    CU_ASSERT_EQUAL(fclose(file), 0);
}

/* Removes the machine's folder. Returns false if that fails. */
static bool remove_files(void)
{
    char command[128];

    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command) == 0;
}

#define V1_ROOT   "/sys/fs/cgroup/cpu/release_agent"
#define V2        "/sys/fs/cgroup"
#define LIST      "/cgroup.controllers"
#define EVENTS    "/sys/fs/cgroup/cgroup.events"
#define SESSIONS  "/proc/sys/kernel/sched_autogroup_enabled"
#define WITH_CPU  "cpuset cpu io memory\n"
#define ONLY_REST "cpuset cpuset.cpu memory\n"

/* Two processes of a made-up machine: 7 and 8. */
struct machine {
    const char *name;
    const char *cgroup[2], *session[2]; /* contents of files of both processes; NULL: no file */
    struct {
        const char *name, *text;
    } files[6];
    int found;                    /* of process 7: 0, or why its group is not known */
    enum sched_relation relation; /* of process 8 to process 7 */
};

static const struct machine machines[] = {
    {"version 1, one group",
     {"2:cpu,cpuacct:/a\n0::/x\n", "2:cpu,cpuacct:/a\n0::/y\n"},
     {0},
     {{0}},
     0,
     SCHED_BESIDE},
    {"version 1, two groups",
     {"3:cpuset:/\n2:cpuacct,cpu:/a\n", "2:cpu:/b\n"},
     {0},
     {{0}},
     0,
     SCHED_APART},
    {"version 1, the root, two sessions",
     {"2:cpu:/\n", "2:cpu:/\n"},
     {"/autogroup-5 nice 0\n", "/autogroup-6 nice 0\n"},
     {{V1_ROOT, ""}, {SESSIONS, "1\n"}},
     0,
     SCHED_APART},
    {"one session",
     {"2:cpu:/\n", "2:cpu:/\n"},
     {"/autogroup-5 nice 0\n", "/autogroup-5 nice 0\n"},
     {{V1_ROOT, ""}, {SESSIONS, "1\n"}},
     0,
     SCHED_BESIDE},
    {"sessions have no groups",
     {"2:cpu:/\n", "2:cpu:/\n"},
     {"/autogroup-5 nice 0\n", "/autogroup-6 nice 0\n"},
     {{V1_ROOT, ""}, {SESSIONS, "0\n"}},
     0,
     SCHED_BESIDE},
    {"a kernel without groups of sessions",
     {"2:cpu:/\n", "2:cpu:/\n"},
     {0},
     {{V1_ROOT, ""}},
     0,
     SCHED_BESIDE},
    {"a session without a group",
     {"2:cpu:/\n", "2:cpu:/\n"},
     {"", "/autogroup-6 nice 0\n"},
     {{V1_ROOT, ""}, {SESSIONS, "1\n"}},
     0,
     SCHED_APART},
    {"the root of a container, not of the machine",
     {"2:cpu:/\n", "2:cpu:/\n"},
     {"/autogroup-5 nice 0\n", "/autogroup-6 nice 0\n"},
     {{SESSIONS, "1\n"}},
     0,
     SCHED_BESIDE},
    {"version 2, two groups with cpu",
     {"0::/a/b\n", "0::/a/c\n"},
     {0},
     {{V2 "/a/b" LIST, WITH_CPU}, {V2 "/a/c" LIST, WITH_CPU}, {V2 LIST, WITH_CPU}},
     0,
     SCHED_APART},
    {"version 2, cpu only above both",
     {"0::/a/b\n", "0::/a/c\n"},
     {0},
     {{V2 "/a/b" LIST, ONLY_REST},
      {V2 "/a/c" LIST, ""},
      {V2 "/a" LIST, WITH_CPU},
      {V2 LIST, WITH_CPU}},
     0,
     SCHED_BESIDE},
    {"version 2, cpu only at the root, two sessions",
     {"0::/a\n", "0::/b\n"},
     {"/autogroup-5 nice 0\n", "/autogroup-6 nice 0\n"},
     {{V2 "/a" LIST, ""}, {V2 "/b" LIST, ""}, {V2 LIST, WITH_CPU}, {SESSIONS, "1\n"}},
     0,
     SCHED_APART},
    {"the same in a container",
     {"0::/a\n", "0::/b\n"},
     {"/autogroup-5 nice 0\n", "/autogroup-6 nice 0\n"},
     {{V2 "/a" LIST, ""}, {V2 "/b" LIST, ""}, {V2 LIST, WITH_CPU}, {EVENTS, ""}, {SESSIONS, "1\n"}},
     0,
     SCHED_BESIDE},
    {"version 2, unseen", {"0::/a\n", "0::/b\n"}, {0}, {{0}}, -ENOENT, SCHED_UNKNOWN},
    {"above what is seen",
     {"2:cpu:/../a\n", "2:cpu:/\n"},
     {0},
     {{V1_ROOT, ""}},
     -ENOENT,
     SCHED_UNKNOWN},
    {"no file of groups", {NULL, "0::/\n"}, {0}, {{V2 LIST, WITH_CPU}}, -ENOENT, SCHED_UNKNOWN},
    {"hidden, in a group", {"2:cpu:/a\n", NULL}, {0}, {{0}}, 0, SCHED_APART},
    {"hidden, and a session",
     {"2:cpu:/\n", NULL},
     {"/autogroup-5 nice 0\n", NULL},
     {{V1_ROOT, ""}, {SESSIONS, "1\n"}},
     0,
     SCHED_APART},
    {"hidden, and no groups", {"2:cpu:/\n", NULL}, {0}, {{V1_ROOT, ""}}, 0, SCHED_UNKNOWN},
    {"hidden, in a group of our own (version 2)",
     {"0::/a\n", NULL},
     {0},
     {{V2 "/a" LIST, WITH_CPU}},
     0,
     SCHED_APART},
    {"hidden, perhaps in the group that we share",
     {"0::/a/b\n", NULL},
     {0},
     {{V2 "/a/b" LIST, ""}, {V2 "/a" LIST, WITH_CPU}},
     0,
     SCHED_UNKNOWN},
    {"not hidden, and not known", {"2:cpu:/a\n", "cpu\n"}, {0}, {{0}}, 0, SCHED_UNKNOWN},
    {"no line about cpu",
     {"5:memory:/a\n", "5:memory:/b\n"},
     {0},
     {{V2 LIST, WITH_CPU}},
     -ENOENT,
     SCHED_UNKNOWN},
    {"not a file of groups", {"cpu\n", "2:cpu:/b\n"}, {0}, {{0}}, -EBADMSG, SCHED_UNKNOWN},
    {"no path", {"2:cpu\n", "2:cpu:/b\n"}, {0}, {{0}}, -EBADMSG, SCHED_UNKNOWN},
    {"not a number of a session",
     {"2:cpu:/\n", "2:cpu:/\n"},
     {"autogroup\n", "/autogroup-6 nice 0\n"},
     {{V1_ROOT, ""}, {SESSIONS, "1\n"}},
     -EBADMSG,
     SCHED_UNKNOWN},
};

static void test_machines(void)
{
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        const struct machine *m = &machines[i];
        struct sched_group group;
        char name[64];
        enum sched_relation relation;
        int found;

        CU_ASSERT_TRUE_FATAL(remove_files());
        for (size_t f = 0; f < sizeof(m->files) / sizeof(m->files[0]) && m->files[f].name; f++)
            put_file(m->files[f].name, m->files[f].text);
        for (int p = 0; p < 2; p++) {
            snprintf(name, sizeof(name), "/proc/%d/cgroup", 7 + p);
            if (m->cgroup[p])
                put_file(name, m->cgroup[p]);
            snprintf(name, sizeof(name), "/proc/%d/autogroup", 7 + p);
            if (m->session[p])
                put_file(name, m->session[p]);
        }
        found = sched_group_find(folder, 7, &group);
        relation = sched_group_relation(folder, 8, &group);
        if (found != m->found || relation != m->relation)
            printf("\n    %s: %d, %d\n", m->name, found, relation);
        CU_ASSERT_EQUAL(found, m->found);
        CU_ASSERT_EQUAL(group.known, m->found == 0);
        CU_ASSERT_EQUAL(relation, m->relation);
        CU_ASSERT_EQUAL(sched_group_relation(folder, 0, &group), SCHED_UNKNOWN);
    }
}

/* A path or a file that is too long is not understood, and nothing is written beyond its room. */
static void test_too_long(void)
{
    static char text[4 * PATH_MAX];
    static const size_t sizes[] = {PATH_MAX - 1, PATH_MAX, PATH_MAX + 1, sizeof(text) - 10};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct sched_group group;

        memset(text, 'x', sizeof(text));
        memcpy(text, "2:cpu:/", 7);
        text[6 + sizes[i]] = '\0';
        CU_ASSERT_TRUE_FATAL(remove_files());
        put_file("/proc/7/cgroup", text);
        CU_ASSERT_EQUAL(sched_group_find(folder, 7, &group) == 0, sizes[i] < PATH_MAX);
    }
    for (size_t at = 0; at + 16 < sizeof(text); at += 8)
        memcpy(text + at, at == 0 ? "2:cpu:/\n" : "3:rdma:\n", 9);
    put_file("/proc/7/cgroup", text);
    CU_ASSERT_EQUAL(sched_group_find(folder, 7, &(struct sched_group){0}), -EFBIG);
}

/* ---- the table of sessions ------------------------------------------------------------------- */

/* Some sessions are apart, and none is beside the daemon: also where a handle is used again before
 * its earlier mapping has left the table. */
static void test_table(void)
{
    static struct session_shared pages[3], page;
    const struct engine_config config = {.sessions_max = 2, .segments_max = 1, .clients_max = 1};
    struct host_session sessions[3], unknown = {.shared = &page, .wake = -1, .range = -1};
    struct host_table table;

    for (int i = 0; i < 3; i++)
        sessions[i] = (struct host_session){.shared = &pages[i],
                                            .wake = -1,
                                            .range = -1,
                                            .relation = i == 1 ? SCHED_BESIDE : SCHED_APART};
    CU_ASSERT_EQUAL_FATAL(host_table_open(&table, &config), 0);
    CU_ASSERT_FALSE(host_table_is_apart(&table));
    host_table_add_session(&table, 0, &sessions[0]);
    CU_ASSERT_TRUE(host_table_is_apart(&table));
    CU_ASSERT_EQUAL(atomic_load(&pages[0].apart), 1);
    host_table_add_session(&table, 1, &sessions[1]);
    CU_ASSERT_FALSE(host_table_is_apart(&table));
    CU_ASSERT_EQUAL(atomic_load(&pages[1].apart), 0);
    host_table_add_session(&table, 1, &sessions[2]);
    CU_ASSERT_TRUE(host_table_is_apart(&table));
    host_table_drop_session(&table, 1, &pages[1]);
    CU_ASSERT_TRUE(host_table_is_apart(&table));
    host_table_drop_session(&table, 1, &pages[2]);
    CU_ASSERT_TRUE(host_table_is_apart(&table));
    host_table_drop_session(&table, 0, &pages[0]);
    CU_ASSERT_FALSE(host_table_is_apart(&table));
    host_table_add_session(&table, 0, &sessions[1]);
    CU_ASSERT_FALSE(host_table_is_apart(&table));
    host_table_add_session(&table, 1, &sessions[2]);
    host_table_drop_session(&table, 0, &pages[0]);
    CU_ASSERT_FALSE(host_table_is_apart(&table));
    host_table_add_session(&table, 0, &unknown);
    CU_ASSERT_TRUE(host_table_is_apart(&table)); /* with the other one */
    CU_ASSERT_EQUAL(atomic_load(&page.apart), 0);
    host_table_drop_session(&table, 1, &pages[2]);
    CU_ASSERT_FALSE(host_table_is_apart(&table));
    host_table_close(&table);
}

int main(void)
{
    CU_TestInfo tests[] = {
        {"groups of made-up machines", test_machines},
        {"too long", test_too_long},
        {"the table of sessions", test_table},
        CU_TEST_INFO_NULL,
    };
    int failed;

    if (!mkdtemp(folder))
        return 1;
    failed = suite_run("groups", tests);
    return remove_files() ? failed : 1;
}

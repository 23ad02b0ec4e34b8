/* The fabric that each setting selects, and the list of available providers. */
#include <CUnit/CUnit.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/fabric/ofi/ofi.h"
#include "daemon/fabric/provider.h"
#include "tests/fabric/end.h"
#include "tests/suite.h"

#define ROOM 32

static void chosen(void)
{
    static const struct {
        struct provider_config config;
        int status;
        const char *name; /* NULL: any provider of libfabric */
        const char *said; /* a part of the message; NULL: there is no message */
    } rows[] = {
        {{.name = "stream"}, 0, "stream", NULL},
        {{.name = "stream", .rails = 1}, 0, "stream", NULL},
        {{.name = "stream", .rails = 2}, -EOPNOTSUPP, NULL, "2 rails"},
        {{.name = "stream", .rails = 4}, -EOPNOTSUPP, NULL, "4 rails"},
        {{.name = "Stream"}, -ENODEV, NULL, "Stream"},
        {{.name = "no-such"}, -ENODEV, NULL, "no-such"},
        {{.name = "tcp;ofi_rxm"}, 0, "tcp;ofi_rxm", NULL},
        {{.bind = "127.0.0.1"}, 0, "stream", NULL},
        {{.bind = "127.0.0.1", .rails = 1}, 0, "stream", NULL},
        {{.bind = NULL}, 0, "stream", NULL},
        {{.bind = "lo"}, 0, "stream", NULL},
        {{.bind = "127.0.0.1", .rails = 2}, 0, NULL, NULL},
        {{.bind = "no-such"}, -ENODEV, NULL, "no-such"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[PROVIDER_NAME_MAX] = "", other[PROVIDER_NAME_MAX] = "", message[256] = "";
        struct provider_config config = rows[i].config;

        CU_ASSERT_EQUAL(provider_choose(&config, name), rows[i].status);
        config.message = message;
        config.message_size = sizeof(message);
        CU_ASSERT_EQUAL(provider_choose(&config, name), rows[i].status);
        if (rows[i].said)
            CU_ASSERT_PTR_NOT_NULL(strstr(message, rows[i].said));
        if (rows[i].status < 0)
            continue;
        CU_ASSERT_STRING_EQUAL(message, "");
        if (!rows[i].name) {
            CU_ASSERT_EQUAL(
                ofi_choose(&(struct ofi_config){.bind = config.bind, .rails = config.rails}, other),
                0);
            CU_ASSERT_STRING_NOT_EQUAL(name, "stream");
        }
        CU_ASSERT_STRING_EQUAL(name, rows[i].name ? rows[i].name : other);
    }
}

static void opened(void)
{
    static const struct {
        struct provider_config config;
        int status;
        const char *kind; /* the selected fabric */
        uint32_t rails;
    } rows[] = {
        {{.name = "stream"}, 0, "stream", 1},
        {{.bind = "lo"}, 0, "stream", 1},
        {{.name = "tcp;ofi_rxm", .rails = 2}, 0, "ofi", 2},
        {{.rails = 2}, 0, "ofi", 2},
        {{.name = "stream", .rails = 2}, -EOPNOTSUPP, NULL, 0},
        {{.name = "stream", .bind = "0.0.0.0"}, -EADDRNOTAVAIL, NULL, 0},
        {{.name = "stream", .bind = "no-such"}, -ENODEV, NULL, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[PROVIDER_NAME_MAX], message[256] = "";
        struct provider_config config = rows[i].config;
        struct fabric *fabric;

        config.message = message;
        config.message_size = sizeof(message);
        CU_ASSERT_EQUAL(provider_open(&config, &fabric, name), rows[i].status);
        if (rows[i].status < 0) {
            CU_ASSERT_STRING_NOT_EQUAL(message, "");
            continue;
        }
        CU_ASSERT_STRING_EQUAL(fabric->ops->name, rows[i].kind);
        CU_ASSERT_EQUAL(fabric->traits.rails, rows[i].rails);
        if (config.name)
            CU_ASSERT_STRING_EQUAL(name, config.name);
        fabric_close(fabric);
    }
}

/* The list begins with `stream`, followed by libfabric's providers, and never has more names than
 * there is room for. */
static void listed(void)
{
    char names[ROOM][PROVIDER_NAME_MAX], others[ROOM][PROVIDER_NAME_MAX];
    int count = provider_list("127.0.0.1", names, ROOM);
    int other = ofi_providers("127.0.0.1", others, ROOM);

    CU_ASSERT_TRUE_FATAL(count >= 1);
    CU_ASSERT_EQUAL(count, 1 + (other > 0 ? other : 0));
    CU_ASSERT_STRING_EQUAL(names[0], "stream");
    for (int i = 1; i < count; i++)
        CU_ASSERT_STRING_EQUAL(names[i], others[i - 1]);
    memset(names, 'x', sizeof(names));
    CU_ASSERT_EQUAL(provider_list("127.0.0.1", names, 0), 0);
    CU_ASSERT_EQUAL(names[0][0], 'x');
    CU_ASSERT_EQUAL(provider_list("127.0.0.1", names, 1), 1);
    CU_ASSERT_EQUAL(names[1][0], 'x');
    CU_ASSERT_EQUAL(provider_list("no-such", names, ROOM), -ENODEV);
}

/* Adds memory until there is no room. Polls have room for few events, as many are due. */
static uint32_t memories_of(struct fabric *fabric, uint32_t most)
{
    static uint8_t memory[64];
    struct fabric_event events[64];
    uint32_t posted = 0, added = 0;
    int rc = 0;

    for (int64_t until = milliseconds() + 20000;
         (rc == 0 || added < posted) && milliseconds() < until;) {
        while (posted < most && (rc = fabric_mem_add(fabric, memory, sizeof(memory), 0, 0)) == 0)
            posted++;
        for (int i = 0, n = fabric_poll(fabric, events, 64); i < n; i++)
            added += events[i].kind == FABRIC_ADDED && events[i].status == 0;
    }
    CU_ASSERT_EQUAL(rc, -ENOSPC);
    CU_ASSERT_EQUAL(added, posted);
    return added;
}

/* Each fabric has room for as many memories as the configuration says. */
static void memories(void)
{
    enum { MEMORIES = 6000 };
    static const char *const providers[] = {"stream", "tcp;ofi_rxm"};

    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++) {
        struct provider_config config = {
            .name = providers[i], .peers_max = 4, .memories_max = MEMORIES};
        char name[PROVIDER_NAME_MAX];
        struct fabric *fabric;

        CU_ASSERT_EQUAL_FATAL(provider_open(&config, &fabric, name), 0);
        CU_ASSERT_EQUAL(memories_of(fabric, 2 * MEMORIES), MEMORIES);
        fabric_close(fabric);
    }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"which is chosen", chosen}, {"which is opened", opened}, {"which are listed", listed},
        {"memories", memories},      CU_TEST_INFO_NULL,
    };

    return suite_run("provider", tests);
}

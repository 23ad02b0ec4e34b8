/* The configuration: keys and their bounds, the order of sources, files, lists of nodes, the
 * secret's file. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "daemon/control/start/collectives.h"
#include "daemon/control/start/config.h"
#include "daemon/engine/engine.h"
#include "daemon/control/start/nearest.h"
#include "daemon/control/nodes/nodes.h"
#include "daemon/control/start/secret.h"
#include "tests/suite.h"

static char directory[] = "/tmp/pwc-config-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static void write_file(const char *name, const char *text, size_t size, mode_t mode)
{
    FILE *file = fopen(path_of(name), "w");

    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(text, 1, size, file), size);
    fclose(file);
    CU_ASSERT_EQUAL(chmod(path_of(name), mode), 0);
}

static void values(void)
{
    static const struct {
        const char *key, *value;
        int expected;
    } rows[] = {
        {"node", "0", 0},
        {"node", "16383", 0},
        {"node", "16384", -EINVAL},
        {"node", "-1", -EINVAL},
        {"node", "", -EINVAL},
        {"node", "1x", -EINVAL},
        {"node", "99999999999999999999", -EINVAL},
        {"packed-max", "4K", 0},
        {"packed-max", "65368", 0},
        {"packed-max", "65369", -EINVAL},
        {"packed-max", "16", 0},
        {"packed-max", "15", -EINVAL},
        {"packed-max", "4KB", -EINVAL},
        {"packed-max", "4x", -EINVAL},
        {"client-memory", "64T", 0},
        {"client-memory", "65T", -EINVAL},
        {"client-memory", "18446744073709551615G", -EINVAL},
        {"client-memory", "4095", -EINVAL},
        {"protocol", "chain", 0},
        {"protocol", "Chain", -EINVAL},
        {"protocol", "chai", -EINVAL},
        {"protocol", "", -EINVAL},
        {"progress", "adaptive", 0},
        {"progress", "dedicated", 0},
        {"progress", "sleep", 0},
        {"progress", "", -EINVAL},
        {"progress", "adapt", -EINVAL},
        {"progress", "0", -EINVAL},
        {"progress-threads", "0", -EINVAL},
        {"progress-threads", "1", 0},
        {"progress-threads", "16", 0},
        {"progress-threads", "17", -EINVAL},
        {"progress-threads", "auto", -EINVAL},
        {"stripe-min", "1K", 0},
        {"collective", "allreduce ring", 0},
        {"collective", "  allreduce   ring ,bcast tree", 0},
        {"collective", "", -EINVAL},
        {"collective", "allreduce", -EINVAL},
        {"collective", "allreduce ring,", -EINVAL},
        {"collective", "allreduce ring bcast tree", -EINVAL},
        {"collective", "allreduce tree", -EINVAL}, /* only bcast has a tree */
        {"collective", "gatherv direct", -EINVAL}, /* between nodes it is carried out as gather */
        {"collective", "allreduce ring, allreduce doubling", -EINVAL},
        {"rails", "4", 0},
        {"rails", "3", -EINVAL},
        {"rails", "0", -EINVAL},
        {"log", "debug", 0},
        {"log", "auto", -EINVAL},
        {"peer-deadline-ms", "100", 0},
        {"peer-deadline-ms", "99", -EINVAL},
        {"delay-ns", "0", 0},
        {"delay-ns", "100000", 0},
        {"delay-ns", "100001", -EINVAL},
        {"delay-ns", "1K", -EINVAL},
        {"provider", "tcp;ofi_rxm", 0},
        {"provider", "", -EINVAL},
        {"provide", "tcp", -ENOENT},
        {"", "", -ENOENT},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config config;
        char why[256] = "";

        config_init(&config);
        int rc = config_set(&config, rows[i].key, rows[i].value, CONFIG_FLAG, why, sizeof(why));

        if (rc != rows[i].expected)
            printf("\n%s = %s: %d, not %d\n", rows[i].key, rows[i].value, rc, rows[i].expected);
        CU_ASSERT_EQUAL(rc, rows[i].expected);
        CU_ASSERT_EQUAL(rc < 0, why[0] != '\0');
        config_free(&config);
    }
}

/* The longest text that a key accepts, and a text of one byte more. */
static void lengths(void)
{
    const size_t most = CONFIG_TEXT_MAX * 256;
    static char text[CONFIG_TEXT_MAX * 256 + 1];

    for (size_t length = most - 1; length <= most; length++) {
        struct config config;
        char why[256] = "";

        config_init(&config);
        memset(text, 'a', length);
        CU_ASSERT_EQUAL(config_set(&config, "nodes", text, CONFIG_FLAG, why, sizeof(why)),
                        length < most ? 0 : -EINVAL);
        CU_ASSERT_EQUAL(strstr(why, "nodes is empty or too long") != NULL, length == most);
        config_free(&config);
    }
}

static void sources(void)
{
    struct config config;
    char why[256];

    config_init(&config);
    CU_ASSERT_EQUAL(config_set(&config, "node", "3", CONFIG_FLAG, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(config_set(&config, "node", "2", CONFIG_ENVIRONMENT, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(config_set(&config, "node", "1", CONFIG_FILE, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(config.node, 3);
    CU_ASSERT_EQUAL(config_set(&config, "node", "x", CONFIG_FILE, why, sizeof(why)), -EINVAL);
    CU_ASSERT_EQUAL(config_set(&config, "nodes", "a:1", CONFIG_FILE, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(setenv("PWCD_NODES", "b:2", 1), 0);
    CU_ASSERT_EQUAL(config_environment(&config, why, sizeof(why)), 0);
    CU_ASSERT_STRING_EQUAL(config.nodes, "b:2");
    CU_ASSERT_EQUAL(config_set(&config, "nodes", "c:3", CONFIG_FILE, why, sizeof(why)), 0);
    CU_ASSERT_STRING_EQUAL(config.nodes, "b:2");
    CU_ASSERT_EQUAL(setenv("PWCD_NODES", "", 1), 0);
    CU_ASSERT_EQUAL(config_environment(&config, why, sizeof(why)), -EINVAL);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "environment variable PWCD_NODES: nodes is empty"));
    unsetenv("PWCD_NODES");
    CU_ASSERT_EQUAL(config_source_of(&config, "nodes"), CONFIG_ENVIRONMENT);
    CU_ASSERT_EQUAL(config_source_of(&config, "node"), CONFIG_FLAG);
    CU_ASSERT_EQUAL(config_source_of(&config, "no such key"), CONFIG_DEFAULT);
    config_free(&config);
}

static const struct config_key *key_of(const char *name)
{
    const struct config_key *key = config_keys();

    while (key->name && strcmp(key->name, name) != 0)
        key++;
    CU_ASSERT_PTR_NOT_NULL_FATAL(key->name);
    return key;
}

/* Each value is shown with the source that set it. */
static void places(void)
{
    static const char text[] = "[pwcd]\nrails = 2\nnode = 7\nlog = info\nledger-start=8k\n";
    const struct {
        const char *key, *value, *source, *place;
    } rows[] = {
        {"socket", "", "default", ""},          {"rails", "2", "file", ":2"},
        {"ledger-start", "8K", "file", ":5"},   {"node", "3", "environment", "PWCD_NODE"},
        {"log", "debug", "flag", "--log"},      {"user-memory", "0", "default", ""},
        {"client-memory", "4G", "default", ""},
    };
    struct config config;
    char why[256], shown[256];

    write_file("conf", text, sizeof(text) - 1, 0644);
    config_init(&config);
    CU_ASSERT_EQUAL(config_set(&config, "log", "debug", CONFIG_FLAG, why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(setenv("PWCD_NODE", "3", 1), 0);
    CU_ASSERT_EQUAL(config_environment(&config, why, sizeof(why)), 0);
    unsetenv("PWCD_NODE");
    CU_ASSERT_EQUAL_FATAL(config_load(&config, path_of("conf"), why, sizeof(why)), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct config_key *key = key_of(rows[i].key);
        const char *place = shown;

        config_text(&config, key, shown, sizeof(shown));
        CU_ASSERT_STRING_EQUAL(shown, rows[i].value);
        CU_ASSERT_STRING_EQUAL(config_source(&config, key), rows[i].source);
        config_place(&config, key, shown, sizeof(shown));
        if (rows[i].place[0] == ':') {
            CU_ASSERT_EQUAL(strncmp(shown, config.file, strlen(config.file)), 0);
            place += strlen(config.file);
        }
        CU_ASSERT_STRING_EQUAL(place, rows[i].place);
    }
    config_free(&config);
}

/* The defaults in the table are what the engine does when nothing is configured. */
static void defaults(void)
{
    struct engine_config engine = {0};
    struct config config;

    config_init(&config);
    CU_ASSERT_EQUAL(engine_config_check(&engine), 0);
    CU_ASSERT_EQUAL(config.ledger_start, engine.ledger_start);
    CU_ASSERT_EQUAL(config.ledger_max, engine.ledger_max);
    CU_ASSERT_EQUAL(config.ledger_bytes, engine.ledger_bytes);
    CU_ASSERT_EQUAL(config.packed_max, engine.packed_max);
    CU_ASSERT_EQUAL(config.spill_max, engine.spill_max);
    CU_ASSERT_EQUAL(config.stripe_min, engine.stripe_min);
    CU_ASSERT_EQUAL(config.clients_max, engine.clients_max);
    CU_ASSERT_EQUAL(config.keepalive_ms * UINT64_C(1000000), engine.keepalive_ns);
    CU_ASSERT_EQUAL(config.peer_deadline_ms * UINT64_C(1000000), engine.peer_deadline_ns);
}

/* Guards the rule that pwcd.conf(5) gives for packed-max, and that the engine takes its most. */
static void packed_max_of_ledgers(void)
{
    static const struct {
        uint32_t ledger_start, packed_max;
        bool fits;
    } rows[] = {
        {4096, 256, true},     {4096, 257, false},    {8192, 2048, true},
        {16384, 4096, true},   {32768, 8192, true},   {65536, 16384, true},
        {131072, 32768, true}, {262144, 65368, true}, {262144, 65369, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct engine_config engine = {.ledger_start = rows[i].ledger_start,
                                       .packed_max = rows[i].packed_max};

        CU_ASSERT_EQUAL(engine_config_check(&engine), rows[i].fits ? 0 : -EINVAL);
    }
}

/* The table is consistent: each default is a valid value, and the numbers of choices are right. */
static void table(void)
{
    for (const struct config_key *key = config_keys(); key->name; key++) {
        char value[CONFIG_TEXT_MAX], why[256] = "";
        struct config config;

        CU_ASSERT_PTR_NOT_NULL_FATAL(key->help);
        config_init(&config);
        config_text(&config, key, value, sizeof(value));
        if (key->kind == CONFIG_STRING)
            CU_ASSERT_PTR_NOT_NULL(key->what);
        if (*value)
            CU_ASSERT_EQUAL(config_set(&config, key->name, value, CONFIG_FLAG, why, sizeof(why)),
                            0);
        if (*why)
            printf("\n%s\n", why);
        config_free(&config);
    }
}

/* For an unknown word of `collective` the reason names the known words. */
static void collective_words(void)
{
    static const struct {
        const char *value, *says;
    } rows[] = {
        {"alreduce ring", "there is no kind 'alreduce': give one of barrier, bcast, reduce, "},
        {"allreduce tree",
         "allreduce has no algorithm 'tree': give one of ring, halving, doubling"},
        {"gather x", "gather has no algorithm 'x': give one of direct, binomial"},
        {"allreduce", "'allreduce' is not a kind and its algorithm"},
        {"bcast tree, bcast tree", "bcast stands there twice"},
        {"a-word-that-is-longer-than-any-kind-and-its-algorithm-together ring", "too long"},
    };
    struct coll_choices choices;
    char text[COLLECTIVES_TEXT_MAX], why[256];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        CU_ASSERT_EQUAL(collectives_parse(rows[i].value, &choices, why, sizeof(why)), -EINVAL);
        CU_ASSERT_PTR_NOT_NULL(strstr(why, rows[i].says));
        if (!strstr(why, rows[i].says))
            printf("\n%s\n", why);
    }
    CU_ASSERT_EQUAL(collectives_parse("scan chain, bcast tree", &choices, why, sizeof(why)), 0);
    collectives_print(&choices, text);
    CU_ASSERT_STRING_EQUAL(text, "bcast tree, scan chain");
}

static void nearest(void)
{
    static const struct {
        const char *word, *says;
    } rows[] = {
        {"ndoes", "did you mean nodes?"},
        {"packed_max", "did you mean packed-max?"},
        {"prvider", "did you mean provider?"},
        {"lgo", "did you mean log?"},
        {"raills", "did you mean rails?"},
        {"keepalive", "did you mean keepalive-ms?"},
        {"Log", "did you mean log?"},
        {"colour", "pwcd --help lists them"},
        {"x", "pwcd --help lists them"},
        {"a-name-that-is-much-longer-than-any-key-of-ours", "pwcd --help lists them"},
    };
    static const struct {
        const char *a, *b;
        unsigned distance;
    } pairs[] = {{"", "", 0},         {"a", "", 1},      {"", "ab", 2},
                 {"ab", "ba", 1},     {"abc", "b", 2},   {"abc", "abc", 0},
                 {"abcd", "acbd", 1}, {"abc", "xyz", 3}, {"ca", "abc", 3}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config config;
        char why[256] = "";

        config_init(&config);
        CU_ASSERT_EQUAL(config_set(&config, rows[i].word, "1", CONFIG_FLAG, why, sizeof(why)),
                        -ENOENT);
        CU_ASSERT_PTR_NOT_NULL(strstr(why, rows[i].says));
    }
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        CU_ASSERT_EQUAL(nearest_distance(pairs[i].a, pairs[i].b), pairs[i].distance);
}

#define TEXT_27  "/xxxxxxxxxxxxxxxxxxxxxxxxxx"
#define TEXT_189 TEXT_27 TEXT_27 TEXT_27 TEXT_27 TEXT_27 TEXT_27 TEXT_27

static void files(void)
{
    static const struct {
        const char *text;
        int expected;
        const char *says;
    } rows[] = {
        {"node = 1\n[pwcd]\nlog = info\n", 0, ""},
        {"# nothing\n\n", 0, ""},
        {"", 0, ""},
        {"[pwcd]\nrails = 2 ; of the card\n", 0, ""},
        {"node = 1\nndoes = 2\n", -ENOENT, "line 2: no key \"ndoes\": did you mean nodes?"},
        {"metrics = 9464\n", -ENOENT,
         "line 1: no key \"metrics\" any more: leave it out, and have"},
        {"metrics-clients = on\n", -ENOENT, "have pwc-exporter(8) serve metrics"},
        {"\n\nlog = loud\n", -EINVAL, "line 3: log \"loud\": give one of error|warning"},
        {"[elsewhere]\nnode = 1\n", -EINVAL, "line 2: no section [elsewhere]"},
        {"node\n", -EINVAL, "line 1: give key = value"},
        {"node = 1\nlog = info\nnode = 1\n", -EINVAL, "line 3: node stands in line 1 already"},
        {"nodes = a:1,\n  b:2\n", -EINVAL, "line 2: nodes stands in line 1 already"},
        {"rails = 2 # of the card\n", -EINVAL, "line 1: rails \"2 # of the card\": # begins"},
        {"secret = /a #b\n", -EINVAL, "line 1: secret \"/a #b\": # begins"},
        {"secret =\n", -EINVAL, "line 1: secret is empty"},
        {"socket = " TEXT_189, 0, ""},
        {"socket = " TEXT_189 "\n", 0, ""},
        {"node = 1\nsocket = " TEXT_189 "x\n", -E2BIG, "line 2: a line may have 198 letters"},
        {"socket = " TEXT_189 TEXT_189 "\n", -E2BIG, "line 1: a line may have 198 letters"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct config config;
        char why[512] = "";

        write_file("conf", rows[i].text, strlen(rows[i].text), 0644);
        config_init(&config);
        CU_ASSERT_EQUAL(config_load(&config, path_of("conf"), why, sizeof(why)), rows[i].expected);
        CU_ASSERT_PTR_NOT_NULL(strstr(why, rows[i].says));
        if (!strstr(why, rows[i].says))
            printf("\n%s\nis not: %s\n", why, rows[i].says);
        config_free(&config);
    }
    struct config config;
    char why[512] = "";

    config_init(&config);
    CU_ASSERT_EQUAL(config_load(&config, path_of("none"), why, sizeof(why)), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "none"));
    config_free(&config);
    config_init(&config);
    CU_ASSERT_EQUAL(config_load(&config, directory, why, sizeof(why)), -EIO);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "name a regular file"));
    config_free(&config);
}

#define HOST_51  "hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh"
#define HOST_255 HOST_51 HOST_51 HOST_51 HOST_51 HOST_51

/* A file of nodes that cannot be read as a whole is refused. */
static void node_files(void)
{
    static char large[(8 << 20) + 1];
    const struct {
        const char *text;
        size_t size;
        int expected;
    } rows[] = {{"a:1\nb:2\n", 8, 0},
                {"a:1\n\0b:2\n", 9, -EINVAL},
                {large, sizeof(large), -E2BIG},
                {large, sizeof(large) - 1, -EINVAL}};
    struct node_list list;
    char why[512];

    memset(large, 'a', sizeof(large)); /* one long line: with many lines sanitizers would be slow */
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        why[0] = '\0';
        write_file("nodes", rows[i].text, rows[i].size, 0644);
        CU_ASSERT_EQUAL(node_list_load(&list, path_of("nodes"), why, sizeof(why)),
                        rows[i].expected);
        CU_ASSERT_EQUAL(why[0] != '\0', rows[i].expected < 0);
        if (rows[i].expected == 0)
            node_list_free(&list);
    }
    CU_ASSERT_EQUAL(node_list_load(&list, path_of("none"), why, sizeof(why)), -ENOENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "none"));
}

/* A list may have as many nodes as the limit says; one more is refused. */
static void many_nodes(void)
{
    static char text[4 * (NODES_MAX + 1) + 1];
    struct node_list list;
    char why[256];

    for (size_t i = 0; i <= NODES_MAX; i++)
        memcpy(text + 4 * i, "a:1\n", 4);
    CU_ASSERT_EQUAL(node_list_parse(&list, text, '\n', why, sizeof(why)), -E2BIG);
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "16384"));
    text[4 * (size_t)NODES_MAX] = '\0';
    CU_ASSERT_EQUAL_FATAL(node_list_parse(&list, text, '\n', why, sizeof(why)), 0);
    CU_ASSERT_EQUAL(list.count, NODES_MAX);
    node_list_free(&list);
}

static void node_lists(void)
{
    static const struct {
        const char *text;
        char separator;
        int expected;     /* number of nodes, or the error */
        const char *host; /* host of the last node */
    } rows[] = {
        {"a:1", ',', 1, "a"},
        {"a:1,b.example:65535", ',', 2, "b.example"},
        {" a:1 , b:2 ", ',', 2, "b"},
        {"[::1]:7711", ',', 1, "::1"},
        {"[fe80::1%eth0]:7711,10.0.0.1:2", ',', 2, "10.0.0.1"},
        {"a:1\n# none\n\nb:2 # the second\n", '\n', 2, "b"},
        {"", ',', -EINVAL, NULL},
        {"\n#\n", '\n', -EINVAL, NULL},
        {"a:1,,b:2", ',', -EINVAL, NULL},
        {"a:1,", ',', -EINVAL, NULL},
        {"a", ',', -EINVAL, NULL},
        {":1", ',', -EINVAL, NULL},
        {"a:", ',', -EINVAL, NULL},
        {"a:0", ',', -EINVAL, NULL},
        {"a:65536", ',', -EINVAL, NULL},
        {"a:123456", ',', -EINVAL, NULL},
        {"a:1b", ',', -EINVAL, NULL},
        {"::1:7711", ',', -EINVAL, NULL},
        {"[::1:7711", ',', -EINVAL, NULL},
        {"[]:1", ',', -EINVAL, NULL},
        {"a b:1", ',', -EINVAL, NULL},
        {"a;b:1", ',', -EINVAL, NULL},
        {"[:1", ',', -EINVAL, NULL},
        {"[]]:1", ',', -EINVAL, NULL},
        {HOST_255 ":1", ',', 1, HOST_255},
        {HOST_255 "h:1", ',', -EINVAL, NULL},
        {HOST_255 ";", '\n', -EINVAL, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct node_list list;
        char why[256] = "";
        int rc = node_list_parse(&list, rows[i].text, rows[i].separator, why, sizeof(why));

        if (rows[i].expected < 0) {
            CU_ASSERT_EQUAL(rc, rows[i].expected);
            CU_ASSERT(why[0] != '\0');
            CU_ASSERT_PTR_NULL(list.nodes);
            continue;
        }
        CU_ASSERT_EQUAL_FATAL(rc, 0);
        CU_ASSERT_EQUAL((int)list.count, rows[i].expected);
        CU_ASSERT_STRING_EQUAL(list.nodes[list.count - 1].host, rows[i].host);
        node_list_free(&list);
    }
}

static void secrets(void)
{
    static const struct {
        mode_t mode;
        size_t size;
        int expected;
    } rows[] = {{0600, 32, 0},         {0600, 4096, 0},    {0600, 31, -EINVAL}, {0600, 0, -EINVAL},
                {0600, 4097, -EINVAL}, {0640, 32, -EPERM}, {0604, 32, -EPERM},  {0700, 32, -EPERM},
                {0400, 32, -EPERM},    {04600, 32, -EPERM}};
    static const char bytes[4097];
    uint8_t key[SECRET_KEY_BYTES];
    char why[256];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        why[0] = '\0';
        write_file("secret", bytes, rows[i].size, rows[i].mode);
        CU_ASSERT_EQUAL(secret_load(path_of("secret"), key, why, sizeof(why)), rows[i].expected);
        CU_ASSERT_EQUAL(rows[i].expected < 0, why[0] != '\0');
    }
    write_file("secret", bytes, 32, 0600);
    CU_ASSERT_EQUAL(unlink(path_of("link")) == 0 || errno == ENOENT, 1);
    char target[128];
    snprintf(target, sizeof(target), "%s", path_of("secret"));
    CU_ASSERT_EQUAL(symlink(target, path_of("link")), 0);
    CU_ASSERT_EQUAL(secret_load(path_of("link"), key, why, sizeof(why)), -ELOOP);
    CU_ASSERT_EQUAL(mkfifo(path_of("pipe"), 0600), 0);
    CU_ASSERT_EQUAL(secret_load(path_of("pipe"), key, why, sizeof(why)), -EINVAL);
    CU_ASSERT_EQUAL(secret_load(directory, key, why, sizeof(why)), -EINVAL);
    CU_ASSERT_EQUAL(secret_load(path_of("none"), key, why, sizeof(why)), -ENOENT);
    if (geteuid() == 0) {
        CU_ASSERT_EQUAL(chown(target, 1, 1), 0);
        CU_ASSERT_EQUAL(secret_load(target, key, why, sizeof(why)), -EPERM);
    }
}

/* No two engines have the same number, and every number fits the wire. */
static void numbers(void)
{
    static const struct {
        uint32_t nodes, engines;
    } rows[] = {{1, 16}, {2, 16}, {1024, 16}, {1025, 15}, {8192, 2}, {8193, 1}, {NODES_MAX, 1}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        uint32_t nodes = rows[i].nodes, expected = 0;

        CU_ASSERT_EQUAL(nodes_engines_max(nodes), rows[i].engines);
        for (uint32_t engine = 0; engine < rows[i].engines; engine++)
            for (uint32_t node = 0; node < nodes; node++)
                expected += nodes_number(nodes, node, engine) == expected;
        CU_ASSERT_EQUAL(expected, nodes * rows[i].engines);
        CU_ASSERT(expected <= NODES_MAX);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"values", values},
                           {"lengths", lengths},
                           {"sources", sources},
                           {"files", files},
                           {"places", places},
                           {"defaults", defaults},
                           {"packed-max of ledgers", packed_max_of_ledgers},
                           {"table", table},
                           {"nearest", nearest},
                           {"words of collective", collective_words},
                           {"secrets", secrets},
                           {"node lists", node_lists},
                           {"node files", node_files},
                           {"many nodes", many_nodes},
                           {"numbers", numbers},
                           CU_TEST_INFO_NULL};
    static const char *const names[] = {"conf", "secret", "link", "pipe", "nodes"};
    int failed;

    if (sodium_init() < 0 || !mkdtemp(directory))
        return 1;
    failed = suite_run("config", tests);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlink(path_of(names[i]));
    rmdir(directory);
    return failed;
}

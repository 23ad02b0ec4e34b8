/* The manual page pwcd.conf(5) describes exactly the keys of the table, and gives for each the same
 * default and values as the table. Argument: the page. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "daemon/control/start/config.h"
#include "tests/suite.h"

/* The page's path, which main sets once. */
static const char *page;

struct entry {
    char key[64];
    char facts[512]; /* the line below the key */
};

/* Finds the next ".It Ic KEY ..." and reads the line below it. */
static bool next_entry(FILE *from, struct entry *out)
{
    char line[512];

    while (fgets(line, sizeof(line), from)) {
        if (sscanf(line, ".It Ic %63s", out->key) != 1)
            continue;
        if (!fgets(out->facts, sizeof(out->facts), from))
            return false;
        out->facts[strcspn(out->facts, "\n")] = '\0';
        return true;
    }
    return false;
}

static const struct config_key *find(const char *name)
{
    for (const struct config_key *key = config_keys(); key->name; key++)
        if (strcmp(key->name, name) == 0)
            return key;
    return NULL;
}

static void says_what_holds(void)
{
    unsigned seen[CONFIG_KEYS_MAX] = {0};
    FILE *from = fopen(page, "re");
    struct entry entry;

    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    while (next_entry(from, &entry)) {
        const struct config_key *key = find(entry.key);
        char facts[512], expected[520];

        CU_ASSERT_PTR_NOT_NULL(key);
        if (!key) {
            printf("\n%s: %s is no key\n", page, entry.key);
            continue;
        }
        seen[key - config_keys()]++;
        config_facts(key, facts, sizeof(facts));
        snprintf(expected, sizeof(expected), "%s.", facts);
        CU_ASSERT_STRING_EQUAL(entry.facts, expected);
        if (strcmp(entry.facts, expected) != 0)
            printf("\n%s: %s:\n%s\nshould be\n%s\n", page, key->name, entry.facts, expected);
    }
    fclose(from);
    for (const struct config_key *key = config_keys(); key->name; key++) {
        CU_ASSERT_EQUAL(seen[key - config_keys()], 1);
        if (seen[key - config_keys()] != 1)
            printf("\n%s: %s stands there %u times\n", page, key->name, seen[key - config_keys()]);
    }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"says what holds", says_what_holds}, CU_TEST_INFO_NULL};

    if (argc != 2)
        return 2;
    page = argv[1];
    return suite_run("config_page", tests);
}

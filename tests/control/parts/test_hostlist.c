/* Slurm's lists of hosts: which names a list stands for, and which texts are not lists. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "daemon/control/start/hostlist.h"
#include "tests/suite.h"

#define NAME_255                                                                                   \
    "a2345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012" \
    "34567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234" \
    "56789012345678901234567890123456789012345678901234567890123456789012345"

/* Joins the names with blanks. */
static int expanded(const char *text, char *to, size_t size)
{
    struct hostlist list;
    char why[256] = "";
    size_t used = 0;
    int rc = hostlist_expand(&list, text, why, sizeof(why));

    *to = '\0';
    CU_ASSERT_EQUAL(*why == '\0', rc == 0);
    for (uint32_t i = 0; i < list.count && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%s", i ? " " : "", list.names[i]);
    CU_ASSERT_TRUE(rc == 0 || (list.count == 0 && list.names == NULL));
    hostlist_free(&list);
    return rc;
}

static void lists(void)
{
    static const struct {
        const char *text, *names; /* names NULL: refused */
    } rows[] = {
        {"n1", "n1"},
        {"n1,m-2.cluster_x", "n1 m-2.cluster_x"},
        {"n[1-3]", "n1 n2 n3"},
        {"n[3]", "n3"},
        {"n[1-2,5,7-8]", "n1 n2 n5 n7 n8"},
        {"n[08-11]", "n08 n09 n10 n11"},
        {"n[8-11]", "n8 n9 n10 n11"},
        {"n[099-101]x", "n099x n100x n101x"},
        {"n[0,00,000]", "n0 n00 n000"},
        {"a[1-2]b[3-4]", "a1b3 a1b4 a2b3 a2b4"},
        {"a[1-2],b,c[3,4]", "a1 a2 b c3 c4"},
        {"[1-2]", "1 2"},
        {"[1][2][3][4][5][6][7][8]", "12345678"},
        {"n[999999999]", "n999999999"},
        {NAME_255, NAME_255},
        {"", NULL},
        {",", NULL},
        {"n1,", NULL},
        {",n1", NULL},
        {"n1,,n2", NULL},
        {"n[", NULL},
        {"n[]", NULL},
        {"n]", NULL},
        {"n[1", NULL},
        {"n[1-]", NULL},
        {"n[-1]", NULL},
        {"n[3-1]", NULL},
        {"n[1,]", NULL},
        {"n[,1]", NULL},
        {"n[1;2]", NULL},
        {"n[1-2-3]", NULL},
        {"n[a-b]", NULL},
        {"n[[1]]", NULL},
        {"n[1]]", NULL},
        {"n[1000000000]", NULL},
        {"n[0000000001]", NULL},
        {"bg[000x133]", NULL},
        {"n 1", NULL},
        {"n1 ", NULL},
        {"n:1", NULL},
        {"n$(x)", NULL},
        {"[1][2][3][4][5][6][7][8][9]", NULL},
        {NAME_255 "6", NULL},
        {NAME_255 "[6]", NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char names[512];
        int rc = expanded(rows[i].text, names, sizeof(names));

        CU_ASSERT_EQUAL(rc, rows[i].names ? 0 : -EINVAL);
        CU_ASSERT_STRING_EQUAL(names, rows[i].names ? rows[i].names : "");
        if (rc != (rows[i].names ? 0 : -EINVAL))
            fprintf(stderr, "\"%.64s\": %d, %s\n", rows[i].text, rc, names);
    }
}

/* A list may have as many names as there may be nodes, and not one more. A short text may expand to
 * very many names. */
static void bounds(void)
{
    static const struct {
        const char *text;
        int expected;
        uint32_t count;
    } rows[] = {
        {"n[1-16384]", 0, 16384},
        {"n[1-16385]", -E2BIG, 0},
        {"n[0-127]m[0-127]", 0, 16384},
        {"n[0-127]m[0-127],x", -E2BIG, 0},
        {"n[0-999999999][0-999999999][0-999999999]", -E2BIG, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hostlist list;
        char why[256] = "";

        CU_ASSERT_EQUAL(hostlist_expand(&list, rows[i].text, why, sizeof(why)), rows[i].expected);
        CU_ASSERT_EQUAL(list.count, rows[i].count);
        CU_ASSERT_TRUE(rows[i].expected == 0 || strstr(why, "at most 16384"));
        hostlist_free(&list);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"lists", lists}, {"bounds", bounds}, CU_TEST_INFO_NULL};

    return suite_run("hostlist", tests);
}

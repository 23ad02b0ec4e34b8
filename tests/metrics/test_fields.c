/*
 * docs/inspect.md lists every key of every view's rows, in the view's line.
 *
 *     test_fields INSPECT.MD
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "views/fields.h"

static char page[65536];

/* Finds the lines of a view in the page: its own line, and the following ones without a name. NULL:
 * there are none. */
static char *lines_of(const char *view)
{
    char head[64], *at, *end;

    snprintf(head, sizeof(head), "\n| `%s` |", view);
    at = strstr(page, head);
    if (!at)
        return NULL;
    end = strchr(at + 1, '\n');
    while (end && strncmp(end, "\n| |", 4) == 0)
        end = strchr(end + 1, '\n');
    return strndup(at, end ? (size_t)(end - at) : strlen(at));
}

static void check(const char *view, const char *lines, const struct field *fields)
{
    for (const struct field *f = fields; f->key; f++) {
        char key[64];

        snprintf(key, sizeof(key), "`%s`", f->key);
        if (!strstr(lines, key))
            printf("\n%s: the page does not name %s\n", view, key);
        CU_ASSERT_PTR_NOT_NULL(strstr(lines, key));
    }
}

static void page_names_all_keys(void)
{
    for (const struct view *v = views; v->name; v++) {
        char *lines = lines_of(v->name);

        CU_ASSERT_PTR_NOT_NULL_FATAL(lines);
        for (const struct view_rows *r = v->rows; r->key; r++)
            if (r->fields == fields_engine) /* listed in another paragraph of the page */
                check(v->name, page, r->fields);
            else if (strcmp(v->name, "counters") != 0) /* other views list its rows */
                check(v->name, lines, r->fields);
        if (strcmp(v->name, "counters") == 0)
            check(v->name, lines, fields_daemon);
        if (strcmp(v->name, "counters") == 0 || strcmp(v->name, "status") == 0)
            check(v->name, lines, fields_step);
        free(lines);
    }
}

/* A metric has the same kind, help text and labels in all fields that it comes from. */
static void metrics_are_sound(void)
{
    for (const struct view *v = views; v->name; v++)
        for (const struct view_rows *r = v->rows; r->key; r++)
            for (const struct field *f = r->fields; f->key; f++) {
                bool first = f->each.name != NULL;

                for (const struct field *g = r->fields; first && g < f; g++)
                    if (g->each.name && strcspn(g->each.name, " ") == strcspn(f->each.name, " ") &&
                        strncmp(g->each.name, f->each.name, strcspn(f->each.name, " ")) == 0) {
                        CU_ASSERT_EQUAL(g->kind, f->kind);
                        CU_ASSERT_TRUE(strchr(g->each.name, '=') && strchr(f->each.name, '='));
                        first = false;
                    }
                CU_ASSERT(!first || f->each.help);
            }
}

int main(int argc, char **argv)
{
    CU_TestInfo tests[] = {{"the page names all keys", page_names_all_keys},
                           {"metrics are sound", metrics_are_sound},
                           CU_TEST_INFO_NULL};
    FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;

    if (!file || fread(page, 1, sizeof(page) - 1, file) == 0)
        return 2;
    fclose(file);
    return suite_run("fields", tests);
}

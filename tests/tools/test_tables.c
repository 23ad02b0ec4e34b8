/* The tables of pwcctl: all views, and the tables of top, fit on the screen, and name each column
 * once. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/suite.h"
#include "tools/pwcctl/format.h"
#include "tools/pwcctl/table.h"
#include "tools/pwcctl/top/tables.h"
#include "tools/pwcctl/view.h"

enum { NODES = 3, FIELDS_MAX = 128 };

static const char long_text[] =
    "a text of many words, which no table has room for in one line, and a_word_that_is_longer_than_"
    "any_column_of_a_table_could_be_with_others_beside_it, and its end";

/* ---- documents --------------------------------------------------------------------------------
 */

/* The widest or the narrowest value of a field. Numbers that name a row have 32 bits. */
static json_t *value_of(const struct field *f, bool wide)
{
    const char *word = "";
    if (f->kind == FIELD_FLAG)
        return json_boolean(wide);
    if (f->kind == FIELD_TEXT || f->kind == FIELD_CHARS)
        return wide ? json_string(long_text) : json_null();
    for (size_t w = 0; f->kind == FIELD_WORD && f->words[w] != NULL; w++)
        word = strlen(f->words[w]) > strlen(word) ? f->words[w] : word;
    return f->kind == FIELD_WORD ? json_string(word)
                                 : json_integer(!wide      ? 0
                                                : f->names ? UINT32_MAX
                                                           : INT64_MAX);
}

static char *document_of(const struct view *view, int node, bool wide)
{
    json_t *document = json_pack("{s:s, s:i, s:s}", "what", view->name, "node", node, "socket",
                                 wide ? long_text : "");
    for (const struct view_rows *rows = view->rows; rows->key != NULL; rows++) {
        json_t *array = json_array(), *row = json_object();
        json_object_set_new(row, "engine", json_integer(wide ? 63 : 0));
        json_object_set_new(row, "peer_engine", json_integer(wide ? 63 : 0));
        for (const struct field *f = rows->fields; f->key != NULL; f++)
            json_object_set_new(row, f->key, value_of(f, wide));
        json_array_append_new(array, row);
        json_object_set_new(document, rows->key, array);
    }
    char *text = json_dumps(document, JSON_COMPACT | JSON_PRESERVE_ORDER);
    json_decref(document);
    CU_ASSERT_PTR_NOT_NULL_FATAL(text);
    return text;
}

/* Prints the view of this many daemons. The caller frees the text. */
static char *print(const struct view *view, size_t count, bool wide)
{
    struct view_answer answers[VIEW_ANSWERS_MAX];
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    for (size_t i = 0; i < count; i++)
        answers[i] = (struct view_answer){"socket", document_of(view, (int)i, wide)};
    CU_ASSERT_EQUAL(view_print(view, answers, count, to), 0);
    fclose(to);
    for (size_t i = 0; i < count; i++)
        free(answers[i].json);
    return text;
}

/* ---- tests ------------------------------------------------------------------------------------
 */

static void all_views_fit(void)
{
    for (const struct view *view = views; view->name != NULL; view++)
        for (size_t count = 1; count <= NODES; count += NODES - 1)
            for (int wide = 0; wide < 2; wide++) {
                char *text = print(view, count, wide == 1), *rest = text;
                for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
                    if (strlen(line) > TABLE_WIDTH)
                        printf("\n%s: %s\n", view->name, line);
                    CU_ASSERT(strlen(line) <= TABLE_WIDTH);
                    CU_ASSERT(*line == '\0' || line[strlen(line) - 1] != ' ');
                }
                free(text);
            }
}

static void check_once(const char *table, const char *const *titles, size_t count)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            if (strcmp(titles[i], titles[j]) == 0)
                printf("\n%s: two columns \"%s\"\n", table, titles[i]);
            CU_ASSERT_STRING_NOT_EQUAL(titles[i], titles[j]);
        }
}

static void titles_are_unique(void)
{
    for (const struct view *view = views; view->name != NULL; view++)
        for (const struct view_rows *rows = view->rows; rows->key != NULL; rows++) {
            const char *titles[FIELDS_MAX] = {"on", "engine", "peer's"};
            size_t count = 3;
            for (const struct field *f = rows->fields; f->key != NULL; f++)
                if (f->title != NULL)
                    titles[count++] = f->title;
            CU_ASSERT(count <= TABLE_COLUMNS_MAX);
            check_once(rows->key, titles, count);
        }
    for (int table = 0; table < TOP_TABLES; table++) {
        const char *titles[FIELDS_MAX];
        size_t count;
        const struct top_column *column = top_columns((enum top_table)table, &count);
        for (size_t c = 0; c < count; c++)
            titles[c] = column[c].title;
        check_once(top_table_name((enum top_table)table), titles, count);
    }
}

/* Columns that name a row come before all others. */
static void names_come_first(void)
{
    for (const struct view *view = views; view->name != NULL; view++)
        for (const struct view_rows *rows = view->rows; rows->key != NULL; rows++) {
            bool behind = false;
            for (const struct field *f = rows->fields; f->key != NULL; f++) {
                CU_ASSERT(!f->names || (f->title != NULL && !behind));
                behind = behind || (f->title != NULL && !f->names);
            }
        }
}

static void add_row(struct table *table, const char *const *cells)
{
    for (size_t i = 0; i < table->columns; i++)
        snprintf(table_cell(table), TABLE_CELL_MAX, "%s", cells[i]);
}

/* A table that is split into parts repeats the names of rows; a long text continues below; too long
 * a word is cut. */
static void parts(void)
{
    static const char *const rows[2][4] = {
        {"n", "text", "narrow", "last"},
        {"7", "the words of a text that is so long that one line does not do", "1",
         "an_end_in_one_word_of_sixty_columns_that_goes_on_and_on_____"},
    };
    static const char expected[] =
        "n  text                                      narrow  last\n"
        "7  the words of a text that is so long that       1  an_end_in_one_word_of_sixty_columns_"
        "that_goes_o\n"
        "   one line does not do                              n_and_on_____\n";
    struct table table;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    CU_ASSERT_PTR_NOT_NULL_FATAL(to);
    table_open(&table, 4);
    table.names[0] = table.left[1] = table.left[3] = true;
    for (size_t r = 0; r < 2; r++)
        add_row(&table, rows[r]);
    table_print(&table, to);
    fclose(to);
    table_close(&table);
    if (strcmp(text, expected) != 0)
        printf("\n%s", text);
    CU_ASSERT_STRING_EQUAL(text, expected);
    free(text);

    char *queues = print(view_find("queues"), 2, true), *second = strstr(queues, "\n\n");
    CU_ASSERT_PTR_NOT_NULL_FATAL(second);
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "on"));
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "client"));
    CU_ASSERT_PTR_NOT_NULL(strstr(second, "rank"));
    free(queues);
}

/* Two daemons: a row for each, with its node; members of an object are side by side. */
static void daemons(void)
{
    char *text = print(view_find("nodes"), 2, false), *line = strtok(text, "\n");
    CU_ASSERT_EQUAL(strncmp(line, "on  engine  peer's  node", 24), 0);
    CU_ASSERT_EQUAL(strncmp(strtok(NULL, "\n"), " 0 ", 3), 0);
    CU_ASSERT_EQUAL(strncmp(strtok(NULL, "\n"), " 1 ", 3), 0);
    free(text);
    text = print(view_find("status"), 2, false);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "node    0       1\n"));
    free(text);
}

/* As many daemons as there may be: columns that have no room stand below, and none is left out. */
static void as_many_daemons_as_there_may_be(void)
{
    char *text = print(view_find("status"), VIEW_ANSWERS_MAX, false), *rest = text, last[16];
    bool has_last = false;
    snprintf(last, sizeof(last), " %d", VIEW_ANSWERS_MAX - 1);
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        size_t length = strlen(line), digits = strlen(last);
        has_last = has_last || (strncmp(line, "node ", 5) == 0 && length > digits &&
                                strcmp(line + length - digits, last) == 0);
    }
    CU_ASSERT(has_last);
    free(text);
}

/* A wrong answer of one daemon does not hide the answers of others. */
static void nonsense(void)
{
    static const char *const answers_of_others[] = {"", "[]", "{}", "{\"what\":\"nodes\"}"};
    const struct view *view = view_find("nodes");
    for (size_t i = 0; i < sizeof(answers_of_others) / sizeof(answers_of_others[0]); i++) {
        struct view_answer answers[] = {{"first", document_of(view, 0, false)},
                                        {"other", strdup(answers_of_others[i])},
                                        {"last", document_of(view, 1, false)}};
        char *text = NULL;
        size_t size = 0;
        FILE *to = open_memstream(&text, &size);
        CU_ASSERT_PTR_NOT_NULL_FATAL(to);
        CU_ASSERT_EQUAL(view_print(view, answers, 3, to), -EBADMSG);
        fclose(to);
        char *line = strtok(text, "\n");
        CU_ASSERT_PTR_NOT_NULL_FATAL(line);
        CU_ASSERT_EQUAL(strncmp(line, "on  engine", 10), 0);
        CU_ASSERT_EQUAL(strncmp(strtok(NULL, "\n"), " 0 ", 3), 0);
        CU_ASSERT_EQUAL(strncmp(strtok(NULL, "\n"), " 1 ", 3), 0);
        free(text);
        for (size_t a = 0; a < 3; a++)
            free(answers[a].json);
    }
}

/* The size of an open job is shown as a word, of other jobs as a number. */
static void sizes_of_jobs(void)
{
    const struct {
        json_int_t size;
        const char *shown;
    } rows[] = {{UINT32_MAX, "open"}, {2097152, "2097152"}, {0, "0"}};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        json_t *value = json_integer(rows[r].size);
        char cell[TABLE_CELL_MAX + 1];
        format_cell(value, UNIT_RANKS, cell);
        CU_ASSERT_STRING_EQUAL(cell, rows[r].shown);
        json_decref(value);
    }
}

int main(void)
{
    CU_TestInfo tests[] = {{"all views fit", all_views_fit},
                           {"titles are unique", titles_are_unique},
                           {"names come first", names_come_first},
                           {"parts", parts},
                           {"several daemons", daemons},
                           {"sizes of jobs", sizes_of_jobs},
                           {"an answer that is none", nonsense},
                           {"most daemons", as_many_daemons_as_there_may_be},
                           CU_TEST_INFO_NULL};
    return suite_run("tables", tests);
}

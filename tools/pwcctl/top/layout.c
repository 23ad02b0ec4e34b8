/* Makes lines from the model (layout.h). */
#include "tools/pwcctl/top/layout.h"
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STACKED_FROM = 40, /* lines, from where on all tables stand below each other */
    HINTS_PART = 5,    /* hints take at most this part of the screen, 1/5 */
};

/* ---- lines ----------------------------------------------------------------------------------- */

static struct top_line *add_line(struct top_screen *s, enum top_style style)
{
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct top_line *lines = realloc(s->lines, room * sizeof(*lines));
        s->failed = lines == NULL;
        if (lines == NULL)
            return NULL;
        s->lines = lines;
        s->room = room;
    }
    s->lines[s->count] = (struct top_line){.style = style};
    return &s->lines[s->count++];
}

static size_t room_of(const struct top_view *view)
{
    return (size_t)view->width < TOP_LINE_MAX ? (size_t)view->width : TOP_LINE_MAX - 1;
}

/* Adds a line of text, cut at the screen's edge. */
__attribute__((format(printf, 4, 5))) static void add_text(struct top_screen *s,
                                                           const struct top_view *view,
                                                           enum top_style style, const char *format,
                                                           ...)
{
    struct top_line *line = add_line(s, style);
    va_list arguments;
    if (line == NULL)
        return;
    va_start(arguments, format);
    vsnprintf(line->text, sizeof(line->text), format, arguments);
    va_end(arguments);
    line->text[room_of(view)] = '\0';
}

/* ---- the head -------------------------------------------------------------------------------- */

/* Draws a bar, "####--   ": used, and used at most. */
static void bar(double share, double high, size_t width, char *out)
{
    size_t used = (size_t)(share * (double)width + 0.5),
           most = (size_t)(high * (double)width + 0.5);
    if (share > 0 && used == 0)
        used = 1;
    if (high > 0 && most == 0)
        most = 1;
    for (size_t i = 0; i < width; i++)
        out[i] = i < used ? '#' : i < most ? '-' : '.';
    out[width] = '\0';
}

static const char *count_text(bool known, double value, enum field_unit format, char *out)
{
    if (known)
        format_number(value, format, out);
    else
        snprintf(out, TABLE_CELL_MAX, "-");
    return out;
}

/* "node 0 of 2", "nodes 0, 1 of 2", or, where not all numbers fit, "17 of 20 nodes". */
static void nodes_text(const struct top_model *m, char *out, size_t size)
{
    size_t used = (size_t)snprintf(out, size, "node%s", m->daemon_count > 1 ? "s" : "");
    for (size_t i = 0; i < m->daemon_count && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s %ld", i > 0 ? "," : "",
                                 m->daemons[i].node);
    if (used < size)
        used += (size_t)snprintf(out + used, size - used, " of %ld", m->daemons[0].nodes);
    if (used >= size)
        snprintf(out, size, "%zu of %ld nodes", m->daemon_count, m->daemons[0].nodes);
}

/* Shows how much all daemons have refused and quarantined, and whether one is stuck. */
static struct top_daemon all_daemons(const struct top_model *m)
{
    struct top_daemon all = m->daemons[0];
    for (size_t i = 1; i < m->daemon_count; i++) {
        const struct top_daemon *d = &m->daemons[i];
        all.refused += d->refused;
        all.quarantined += d->quarantined;
        all.stuck = all.stuck || d->stuck;
        all.uptime_s = d->uptime_s < all.uptime_s ? d->uptime_s : all.uptime_s;
    }
    return all;
}

static void add_title(struct top_screen *s, const struct top_model *m, const struct top_daemon *all,
                      const struct top_view *view, const char *clock)
{
    char left[2 * TOP_LINE_MAX], up[TABLE_CELL_MAX], nodes[TOP_TEXT_MAX], pid[32] = "";
    size_t width = room_of(view), length, end = strlen(clock);
    format_number(all->uptime_s, UNIT_SECOND, up);
    nodes_text(m, nodes, sizeof(nodes));
    if (m->daemon_count <= 1)
        snprintf(pid, sizeof(pid), "pid %ld  ", all->pid);
    snprintf(left, sizeof(left), "pwcd %s  %s  %s  %sup %s%s", all->version, nodes, all->provider,
             pid, up, all->stuck ? "  STUCK" : "");
    length = strlen(left);
    if (length + end + 2 <= width)
        add_text(s, view, TOP_TITLE, "%-*s%s", (int)(width - end), left, clock);
    else
        add_text(s, view, TOP_TITLE, "%-*s", (int)width, left);
}

static void add_head(struct top_screen *s, const struct top_model *m, const struct top_view *view,
                     const char *clock)
{
    const struct top_totals *t = &m->totals;
    const struct top_daemon all = all_daemons(m);
    char text[6][TABLE_CELL_MAX], cpu[32];
    add_title(s, m, &all, view, clock);
    bar(t->known ? (t->cpu_share > 1 ? 1 : t->cpu_share) : 0, 0, 20, cpu);
    add_text(s, view, TOP_PLAIN, "cpu %6s [%s]  work %s/s  sleeps %s/s",
             count_text(t->known, 100 * t->cpu_share, UNIT_PERCENT, text[0]), cpu,
             count_text(t->known, t->work, UNIT_COUNT, text[1]),
             count_text(t->known, t->sleeps, UNIT_COUNT, text[2]));
    add_text(s, view, TOP_PLAIN, "put %s/s  get %s/s  am %s/s  %s/s  direct %s/s",
             count_text(t->known, t->put_ops, UNIT_COUNT, text[0]),
             count_text(t->known, t->get_ops, UNIT_COUNT, text[1]),
             count_text(t->known, t->am_ops, UNIT_COUNT, text[2]),
             count_text(t->known, t->op_bytes, UNIT_BYTES, text[3]),
             count_text(t->known, t->direct_ops, UNIT_COUNT, text[4]));
    add_text(s, view, TOP_PLAIN,
             "events %s/s  in flight %s  errors %s  refused %ld  quarantined %ld",
             count_text(t->known, t->delivered, UNIT_COUNT, text[0]),
             count_text(true, t->in_flight, UNIT_COUNT, text[1]),
             count_text(true, t->errors, UNIT_COUNT, text[2]), all.refused, all.quarantined);
    add_text(s, view, TOP_NOTE, "%s", m->note);
}

/* Returns how many bytes of the text stand in a line of this width: whole words where it can. */
static size_t line_of(const char *text, size_t width)
{
    size_t length = strlen(text), end = width;
    if (length <= width)
        return length;
    while (end > 0 && text[end] != ' ')
        end--;
    return end > 0 ? end : width;
}

/* Shows the doctor's findings, each from a new line on, as many as the screen has room for. */
static void add_hints(struct top_screen *s, const struct top_model *m, const struct top_view *view)
{
    size_t room = view->height > 0 ? (size_t)view->height / HINTS_PART : SIZE_MAX;
    size_t width = room_of(view);
    for (size_t i = 0; i < m->hints.count && width > 2; i++) {
        const char *mark = "! ";
        for (const char *rest = m->hints.lines[i]; *rest != '\0' && room > 0; room--) {
            size_t length = line_of(rest, width - 2);
            add_text(s, view, TOP_NOTE, "%s%.*s", mark, (int)length, rest);
            for (rest += length; *rest == ' ';)
                rest++;
            mark = "  ";
        }
    }
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Writes a cell exactly `width` wide: numbers to the right, the rest to the left. */
static void cell_text(const struct top_column *column, const struct top_cell *cell, size_t width,
                      char *out)
{
    char text[TABLE_CELL_MAX];
    if (column->kind == TOP_TEXT)
        snprintf(text, sizeof(text), "%s", cell->known ? cell->text : "-");
    else if (column->kind == TOP_BAR && cell->known)
        bar(cell->value, cell->high, width, text);
    else if (cell->known)
        format_number(cell->value, column->format, text);
    else
        snprintf(text, sizeof(text), "-");
    if (column->kind == TOP_TEXT || column->kind == TOP_BAR)
        snprintf(out, TABLE_CELL_MAX, "%-*.*s", (int)width, (int)width, text);
    else
        snprintf(out, TABLE_CELL_MAX, "%*.*s", (int)width, (int)width, text);
}

static void add_columns(struct top_screen *s, const struct top_view *view, enum top_table table,
                        const struct top_row *row, const size_t *columns, const size_t *widths,
                        size_t count)
{
    struct top_line *line = add_line(s, row ? TOP_PLAIN : TOP_HEADER);
    size_t all, used = 0, room = room_of(view);
    const struct top_column *column = top_columns(table, &all);
    for (size_t i = 0; line && i < count; i++) {
        const struct top_column *c = &column[columns[i]];
        char text[TABLE_CELL_MAX];
        bool left = c->kind == TOP_TEXT || c->kind == TOP_BAR;
        if (row)
            cell_text(c, &row->cells[columns[i]], widths[i], text);
        else
            snprintf(text, sizeof(text), left ? "%-*s" : "%*s", (int)widths[i], c->title);
        if (!row && columns[i] == view->sort[table]) {
            line->mark = used;
            line->marked = widths[i];
        }
        used += (size_t)snprintf(line->text + used, sizeof(line->text) - used, "%s%s", text,
                                 i + 1 < count ? " " : "");
        if (used >= sizeof(line->text))
            used = sizeof(line->text) - 1;
    }
    if (line)
        line->text[room] = '\0';
}

static void add_tabs(struct top_screen *s, const struct top_model *m, const struct top_view *view,
                     enum top_table table)
{
    size_t all;
    const struct top_column *column = top_columns(table, &all);
    char text[TOP_LINE_MAX] = "";
    size_t used = 0;
    for (int t = 0; t < TOP_TABLES; t++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d %s %zu%s ",
                                 t == (int)table ? "[" : " ", t + 1, top_table_name(t),
                                 m->tables[t].count, t == (int)table ? "]" : " ");
    add_text(s, view, TOP_HINT, "%ssorted by %s, %s", text, column[view->sort[table]].title,
             view->ascending[table] ? "least first" : "most first");
}

/* Lays a table out within `lines`, its own head included; 0: as many lines as it takes. */
static void add_table(struct top_screen *s, const struct top_model *m, const struct top_view *view,
                      enum top_table table, size_t lines)
{
    size_t columns[TOP_COLUMNS_MAX], widths[TOP_COLUMNS_MAX];
    size_t count = top_view_columns(view, m, table, columns, widths);
    size_t rows = m->tables[table].count, from = view->scroll[table];
    const struct top_row **sorted = top_view_order(view, m, table);
    s->failed = s->failed || sorted == NULL;
    add_tabs(s, m, view, table);
    add_columns(s, view, table, NULL, columns, widths, count);
    from = from < rows ? from : rows > 0 ? rows - 1 : 0;
    for (size_t i = from; sorted && i < rows && (lines == 0 || i - from + 2 < lines); i++)
        add_columns(s, view, table, sorted[i], columns, widths, count);
    free(sorted);
}

/* The selected table gets the lines that the others leave. */
static void add_stacked(struct top_screen *s, const struct top_model *m,
                        const struct top_view *view, size_t lines)
{
    size_t height[TOP_TABLES], left = lines;
    for (int t = 0; t < TOP_TABLES; t++) {
        height[t] = m->tables[t].count + 3;
        if (height[t] > lines / TOP_TABLES)
            height[t] = lines / TOP_TABLES;
        left -= t == (int)view->table ? 0 : height[t];
    }
    height[view->table] = left;
    for (int t = 0; t < TOP_TABLES; t++) {
        size_t end = s->count + height[t];
        add_table(s, m, view, t, height[t]);
        while (s->count < end && !s->failed)
            (void)add_line(s, TOP_PLAIN);
    }
}

static void add_help(struct top_screen *s, const struct top_view *view)
{
    static const char *const lines[] = {
        "",
        " 1 2 3 4, Tab     clients, queues, peers, users",
        " < >, left right  sort by another column",
        " r                the other way round",
        " j k, up down     scroll; space, page up, page down: by ten; home: to the top",
        " h ?              this page",
        " q                quit",
        "",
        " Figures with /S are what a counter has grown by since the last look, a second;",
        " - where there is nothing to compare. Bars: # used now, - at its fullest.",
        " DIRECT: by clients among themselves, without the daemon, as they say. FLIGHT:",
        " operations that have not ended. AWAITED: not yet acknowledged by its node.",
        " ASLEEP, INSIDE: of the time, in calls that wait, asleep and awake; COMPUTES:",
        " the rest, with the calls that do not wait. SHARE: of all rows' bytes. OLDEST: age",
        " of the oldest operation that has not ended. Lines with !: what the doctor says.",
        "",
        " any key goes back"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        add_text(s, view, TOP_PLAIN, "%s", lines[i]);
}

void top_layout(struct top_screen *s, const struct top_model *m, const struct top_view *view,
                const char *clock)
{
    size_t height = view->height > 0 ? (size_t)view->height : 0;
    s->count = 0;
    s->failed = false;
    add_head(s, m, view, clock);
    if (!view->help)
        add_hints(s, m, view);
    size_t head = s->count;
    if (view->help) {
        add_help(s, view);
    } else if (height == 0) {
        for (int t = 0; t < TOP_TABLES; t++) {
            add_table(s, m, view, t, 0);
            (void)add_line(s, TOP_PLAIN);
        }
    } else if (height >= STACKED_FROM) {
        add_stacked(s, m, view, height - head - 1);
    } else if (height > head + 1) {
        add_table(s, m, view, view->table, height - head - 1);
    }
    if (height == 0)
        return;
    while (s->count + 1 < height && !s->failed)
        (void)add_line(s, TOP_PLAIN);
    if (s->count + 1 > height)
        s->count = height - 1;
    add_text(s, view, TOP_HINT, "%s",
             "q quit  h help  tab table  < > column  r reverse  up down scroll");
}

void top_screen_free(struct top_screen *s)
{
    free(s->lines);
    *s = (struct top_screen){0};
}

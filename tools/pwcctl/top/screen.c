/* Owns the terminal while it is open (screen.h). */
#include "tools/pwcctl/top/screen.h"
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int top_terminal_open(void)
{
    const char *term = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        fprintf(stderr, "pwcctl: top needs a terminal; \"pwcctl top --batch\" prints lines\n");
        return -ENOTTY;
    }
    setlocale(LC_CTYPE, "");
    if (newterm(NULL, stdout, stdin) == NULL) {
        fprintf(stderr,
                "pwcctl: TERM \"%s\" is no terminal that is known here: set another, or "
                "give --batch\n",
                term ? term : "");
        return -EINVAL;
    }
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(50);
    return 0;
}

void top_terminal_close(void)
{
    endwin();
}

void top_terminal_size(int *width, int *height)
{
    getmaxyx(stdscr, *height, *width);
}

static attr_t attribute_of(enum top_style style)
{
    switch (style) {
    case TOP_TITLE:
    case TOP_HEADER:
        return A_REVERSE;
    case TOP_NOTE:
        return A_BOLD;
    case TOP_HINT:
        return A_DIM;
    default:
        return A_NORMAL;
    }
}

void top_terminal_show(const struct top_screen *screen)
{
    int width, height;
    top_terminal_size(&width, &height);
    erase();
    for (size_t i = 0; i < screen->count && (int)i < height; i++) {
        const struct top_line *line = &screen->lines[i];
        attrset(attribute_of(line->style));
        if (line->style == TOP_HEADER) /* to the width of the screen */
            mvhline((int)i, 0, ' ', width);
        mvaddnstr((int)i, 0, line->text, width);
        if (line->marked > 0)
            mvchgat((int)i, (int)line->mark, (int)line->marked, A_BOLD | A_UNDERLINE, 0, NULL);
    }
    attrset(A_NORMAL);
    refresh();
}

int top_terminal_key(void)
{
    static const struct {
        int curses, key;
    } keys[] = {{KEY_UP, TOP_KEY_UP},         {KEY_DOWN, TOP_KEY_DOWN},
                {KEY_LEFT, TOP_KEY_LEFT},     {KEY_RIGHT, TOP_KEY_RIGHT},
                {KEY_PPAGE, TOP_KEY_PAGE_UP}, {KEY_NPAGE, TOP_KEY_PAGE_DOWN},
                {KEY_HOME, TOP_KEY_HOME}};
    int got = getch();
    if (got == ERR)
        return 0;
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (got == keys[i].curses)
            return keys[i].key;
    return got < 256 ? got : 0;
}

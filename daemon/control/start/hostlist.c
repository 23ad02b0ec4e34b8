/* Owns the expansion of Slurm's lists of hosts (hostlist.h). Thread: main. */
#include "daemon/control/start/hostlist.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BRACKETS_MAX = 8, DIGITS_MAX = 9 };

/* One item of the list, being expanded. */
struct expansion {
    struct hostlist *list;
    const char *end; /* of the item */
    char name[NODE_HOST_MAX];
    unsigned brackets; /* open brackets at this point */
};

static int append(struct hostlist *list, const char *name)
{
    if (list->count == NODES_MAX)
        return -E2BIG;
    if ((list->count & (list->count - 1)) == 0) { /* doubles the room at each power of two */
        void *names =
            realloc(list->names, (list->count ? 2u * list->count : 1u) * sizeof(*list->names));

        if (!names)
            return -ENOMEM;
        list->names = names;
    }
    snprintf(list->names[list->count++], NODE_HOST_MAX, "%s", name);
    return 0;
}

static bool in_name(char c)
{
    return isalnum((unsigned char)c) || c == '.' || c == '-' || c == '_';
}

/* Reads a number and returns how many digits it has. -EINVAL: it has none, or more than
 * DIGITS_MAX. */
static int number(const char **at, unsigned *out)
{
    int digits = 0;

    for (*out = 0; isdigit((unsigned char)**at); (*at)++, digits++) {
        if (digits == DIGITS_MAX)
            return -EINVAL;
        *out = *out * 10 + (unsigned)(**at - '0');
    }
    return digits > 0 ? digits : -EINVAL;
}

static int expand(struct expansion *e, size_t length, const char *at);

/* Expands "3" or "1-3"; what follows the bracket is appended to each number. */
static int expand_range(struct expansion *e, size_t length, const char **at, const char *rest)
{
    unsigned low, high;
    int width = number(at, &low), rc = width;

    high = low;
    if (rc > 0 && **at == '-') {
        (*at)++;
        rc = number(at, &high);
    }
    if (rc < 0 || high < low)
        return -EINVAL;
    for (unsigned value = low;; value++) {
        size_t room = sizeof(e->name) - length;
        size_t wrote = (size_t)snprintf(e->name + length, room, "%0*u", width, value);

        if (wrote >= room)
            return -EINVAL;
        rc = expand(e, length + wrote, rest);
        if (rc < 0 || value == high)
            return rc;
    }
}

static int expand_bracket(struct expansion *e, size_t length, const char *at)
{
    const char *close = memchr(at, ']', (size_t)(e->end - at));
    int rc;

    if (!close || e->brackets == BRACKETS_MAX)
        return -EINVAL;
    e->brackets++;
    do {
        at++; /* the bracket, or a comma */
        rc = expand_range(e, length, &at, close + 1);
    } while (rc == 0 && *at == ',');
    e->brackets--;
    return rc == 0 && at != close ? -EINVAL : rc;
}

/* Expands what follows `length` characters of the name. */
static int expand(struct expansion *e, size_t length, const char *at)
{
    for (; at < e->end && *at != '['; at++) {
        if (!in_name(*at) || length + 1 >= sizeof(e->name))
            return -EINVAL;
        e->name[length++] = *at;
    }
    if (at < e->end)
        return expand_bracket(e, length, at);
    e->name[length] = '\0';
    return length > 0 ? append(e->list, e->name) : -EINVAL;
}

/* Finds the next comma outside brackets, or the end of the text. */
static const char *item_end(const char *at)
{
    bool within = false;

    for (; *at && (within || *at != ','); at++)
        within = *at == '[' || (within && *at != ']');
    return at;
}

int hostlist_expand(struct hostlist *list, const char *text, char *why, size_t why_size)
{
    struct expansion e = {.list = list};
    const char *at = text;
    int rc;

    *list = (struct hostlist){0};
    do {
        e.end = item_end(at);
        rc = expand(&e, 0, at);
        if (rc == -EINVAL)
            snprintf(why, why_size, "list of hosts, \"%.*s\": give names such as n1,n[2-4]",
                     e.end - at > 64 ? 64 : (int)(e.end - at), at);
        else if (rc < 0)
            snprintf(why, why_size, "list of hosts: %s (at most %u)", strerror(-rc), NODES_MAX);
        at = e.end + 1;
    } while (rc == 0 && *e.end);
    if (rc < 0)
        hostlist_free(list);
    return rc;
}

void hostlist_free(struct hostlist *list)
{
    free(list->names);
    *list = (struct hostlist){0};
}

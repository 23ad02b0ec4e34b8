/* Owns the parsing of lists of nodes (nodes.h). Thread: any. */
#include "daemon/control/nodes/nodes.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 8 << 20 };

static bool port_valid(const char *text, size_t length)
{
    unsigned value = 0;

    if (length == 0 || length > 5)
        return false;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return false;
        value = value * 10 + (unsigned)(text[i] - '0');
    }
    return value >= 1 && value <= 65535;
}

static bool host_valid(const char *text, size_t length)
{
    if (length == 0 || length >= NODE_HOST_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(".-_:%", text[i]))
            return false;
    return true;
}

/* Parses one "host:port"; only a host in brackets may have colons. */
static int parse_one(const char *text, size_t length, struct node_address *out)
{
    const char *colon = memrchr(text, ':', length);
    const char *host = text, *end = colon;

    if (!colon || !port_valid(colon + 1, (size_t)(text + length - colon - 1)))
        return -EINVAL;
    if (*host == '[') {
        if (end[-1] != ']')
            return -EINVAL;
        host++;
        end--;
    } else if (memchr(host, ':', (size_t)(end - host))) {
        return -EINVAL;
    }
    if (!host_valid(host, (size_t)(end - host)))
        return -EINVAL;
    snprintf(out->host, sizeof(out->host), "%.*s", (int)(end - host), host);
    snprintf(out->port, sizeof(out->port), "%.*s", (int)(text + length - colon - 1), colon + 1);
    return 0;
}

static int append(struct node_list *list, const struct node_address *address)
{
    struct node_address *nodes;

    if (list->count == NODES_MAX)
        return -E2BIG;
    if ((list->count & (list->count - 1)) == 0) { /* doubles the room at each power of two */
        nodes = realloc(list->nodes, (list->count ? 2u * list->count : 1u) * sizeof(*nodes));
        if (!nodes)
            return -ENOMEM;
        list->nodes = nodes;
    }
    list->nodes[list->count++] = *address;
    return 0;
}

static void trim(const char **text, size_t *length)
{
    while (*length > 0 && isspace((unsigned char)**text)) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && isspace((unsigned char)(*text)[*length - 1]))
        (*length)--;
}

int node_list_parse(struct node_list *list, const char *text, char separator, char *why,
                    size_t why_size)
{
    bool lines = separator == '\n';
    const char *at = text;
    unsigned entry = 0;
    int rc = 0;

    *list = (struct node_list){0};
    while (rc == 0) {
        const char *end = strchrnul(at, separator), *item = at;
        size_t length = (size_t)(end - at);
        struct node_address address;

        entry++;
        if (lines && memchr(item, '#', length))
            length = (size_t)((const char *)memchr(item, '#', length) - item);
        trim(&item, &length);
        if (length > 0 || !lines) {
            rc = parse_one(item, length, &address);
            if (rc == 0)
                rc = append(list, &address);
            if (rc == -EINVAL)
                snprintf(why, why_size, "%s %u of the list of nodes, \"%.*s\": give host:port",
                         lines ? "line" : "entry", entry, length > 64 ? 64 : (int)length, item);
            else if (rc < 0)
                snprintf(why, why_size, "list of nodes: %s (at most %u)", strerror(-rc), NODES_MAX);
        }
        if (*end == '\0')
            break;
        at = end + 1;
    }
    if (rc == 0 && list->count == 0) {
        snprintf(why, why_size, "the list of nodes is empty: give one host:port for each node");
        rc = -EINVAL;
    }
    if (rc < 0)
        node_list_free(list);
    return rc;
}

int node_list_load(struct node_list *list, const char *path, char *why, size_t why_size)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t got;
    int rc;

    if (!file) {
        rc = -errno;
        snprintf(why, why_size, "nodes-file \"%s\": %s", path, strerror(-rc));
        return rc;
    }
    text = malloc(FILE_BYTES_MAX + 1);
    if (!text) {
        fclose(file);
        return -ENOMEM;
    }
    got = fread(text, 1, FILE_BYTES_MAX + 1, file);
    fclose(file);
    if (got > FILE_BYTES_MAX || memchr(text, '\0', got)) {
        /* Do not use a list that was read in part: it would describe another cluster. */
        snprintf(why, why_size, "nodes-file \"%s\": %s", path,
                 got > FILE_BYTES_MAX ? "it is too long for a list of nodes"
                                      : "it has a zero byte: give lines of text");
        rc = got > FILE_BYTES_MAX ? -E2BIG : -EINVAL;
    } else {
        text[got] = '\0';
        rc = node_list_parse(list, text, '\n', why, why_size);
    }
    free(text);
    return rc;
}

void node_list_free(struct node_list *list)
{
    free(list->nodes);
    *list = (struct node_list){0};
}

/* Counts rows of pwcctl's documents (census.h). Thread: any. */
#include "tests/system/census.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "tests/tools/command.h"
#include "tests/system/process.h"

#define LIMIT_S 20

static const struct timespec between = {.tv_nsec = 50000000};

/* The view's array, to be released by the caller, or NULL. */
static json_t *ask(const char *pwcctl, const struct cluster_node *node, const char *view)
{
    const char *const argv[] = {pwcctl, "--socket", node->socket, "--json", view, NULL};
    struct command *command = command_start(argv, NULL);
    json_error_t error = {.text = "no document"};
    json_t *document = NULL, *rows = NULL;

    if (command_finish(command) == 0)
        document = json_loads(command->out_text, 0, &error);
    rows = json_incref(json_object_get(document, view));
    if (!json_is_array(rows)) {
        fprintf(stderr, "pwcctl --json %s: %s%s\n%s\n", view, command->err_text, error.text,
                command->out_text);
        json_decref(rows);
        rows = NULL;
    }
    json_decref(document);
    command_free(command);
    return rows;
}

static int count(const char *pwcctl, const struct cluster_node *node, const char *view)
{
    json_t *rows = ask(pwcctl, node, view);
    int size = rows ? (int)json_array_size(rows) : -EIO;

    json_decref(rows);
    return size;
}

static int sum_grants(const char *pwcctl, const struct cluster_node *node)
{
    json_t *rows = ask(pwcctl, node, "regions"), *row;
    int sum = rows ? 0 : -EIO;
    size_t i;

    json_array_foreach(rows, i, row) sum += (int)json_integer_value(json_object_get(row, "grants"));
    json_decref(rows);
    return sum;
}

static int take(const char *pwcctl, const struct cluster_node *node, struct census *out)
{
    *out = (struct census){
        .clients = count(pwcctl, node, "clients"),
        .contexts = count(pwcctl, node, "queues"),
        .regions = count(pwcctl, node, "regions"),
        .ops = count(pwcctl, node, "ops"),
        .grants = sum_grants(pwcctl, node),
        .descriptors = process_descriptors(node->pid),
        .mappings = process_mappings(node->pid, "memfd:pwc-"),
    };
    return out->clients < 0 || out->contexts < 0 || out->regions < 0 || out->ops < 0 ||
                   out->grants < 0 || out->descriptors < 0 || out->mappings < 0
               ? -EIO
               : 0;
}

/* Operations come and go with the bystanders' traffic. */
static bool is_as_then(const struct census *now, const struct census *then)
{
    return now->clients == then->clients && now->contexts == then->contexts &&
           now->regions == then->regions && now->grants == then->grants &&
           now->descriptors == then->descriptors && now->mappings == then->mappings &&
           now->ops <= then->ops + 1;
}

/* A daemon closes what has left, pwcctl's connection too, some time after the other end. */
int census_take(const char *pwcctl, const struct cluster_node *node, struct census *out)
{
    time_t end = time(NULL) + LIMIT_S;
    struct census before;
    int rc = take(pwcctl, node, out);

    do {
        before = *out;
        nanosleep(&between, NULL);
        rc = rc < 0 ? rc : take(pwcctl, node, out);
    } while (rc == 0 && !is_as_then(out, &before) && time(NULL) < end);
    return rc;
}

/* A daemon that comes back may take longer to answer than pwcctl waits: it is asked again. */
bool census_returns_to(const char *pwcctl, const struct cluster_node *node,
                       const struct census *then)
{
    time_t end = time(NULL) + LIMIT_S;
    struct census now = {0};

    do {
        if (take(pwcctl, node, &now) == 0 && is_as_then(&now, then))
            return true;
        nanosleep(&between, NULL);
    } while (time(NULL) < end);
    fprintf(stderr,
            "%s: clients %d, were %d; contexts %d, %d; regions %d, %d; grants %d, %d; operations "
            "%d, %d; descriptors %d, %d; mappings %d, %d\n",
            node->socket, now.clients, then->clients, now.contexts, then->contexts, now.regions,
            then->regions, now.grants, then->grants, now.ops, then->ops, now.descriptors,
            then->descriptors, now.mappings, then->mappings);
    return false;
}

/* The key `collective` (collectives.h). Thread: any. */
#include "daemon/control/start/collectives.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MAX_BYTES = 32 };

/* Appends a name to a list, which is cut where there is no more room. */
static void append(char *list, size_t size, const char *name)
{
    size_t used = strlen(list);

    snprintf(list + used, size - used, "%s%s", used > 0 ? ", " : "", name);
}

/* The kind with this name, among those that engines have schedules for; TEAM_KINDS: there is
 * none. */
static uint32_t kind_of(const char *name)
{
    for (uint32_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++)
        if (strcmp(team_kind_name(kind), name) == 0)
            return kind;
    return TEAM_KINDS;
}

static int refuse_kind(const char *name, char *why, size_t why_size)
{
    char kinds[256] = "";

    for (uint32_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++)
        append(kinds, sizeof(kinds), team_kind_name(kind));
    snprintf(why, why_size, "collective: there is no kind '%s': give one of %s", name, kinds);
    return -EINVAL;
}

/* Whether an earlier row has the same kind and algorithm. */
static bool was_named(uint32_t number)
{
    const struct coll_row *row = coll_row(number);

    for (uint32_t i = 0; i < number; i++)
        if (coll_row(i)->kind == row->kind && coll_row(i)->algorithm == row->algorithm)
            return true;
    return false;
}

static int refuse_algorithm(uint32_t kind, const char *name, char *why, size_t why_size)
{
    char algorithms[256] = "";

    for (uint32_t i = 0; coll_row(i); i++)
        if (coll_row(i)->kind == kind && !was_named(i))
            append(algorithms, sizeof(algorithms), coll_row(i)->algorithm->name);
    snprintf(why, why_size, "collective: %s has no algorithm '%s': give one of %s",
             team_kind_name(kind), name, algorithms);
    return -EINVAL;
}

/* Reads one pair; `length` leaves out the comma after it. */
static int parse_pair(const char *text, size_t length, struct coll_choices *out, char *why,
                      size_t why_size)
{
    char pair[2 * WORD_MAX_BYTES], name[WORD_MAX_BYTES], algorithm[WORD_MAX_BYTES], more;
    uint32_t kind;

    if (length >= sizeof(pair)) {
        snprintf(why, why_size, "collective: '%.*s...' is too long for a kind and its algorithm",
                 WORD_MAX_BYTES, text);
        return -EINVAL;
    }
    memcpy(pair, text, length);
    pair[length] = '\0';
    if (sscanf(pair, " %31s %31s %c", name, algorithm, &more) != 2) {
        snprintf(why, why_size,
                 "collective: '%s' is not a kind and its algorithm: write allreduce ring, bcast "
                 "tree",
                 pair);
        return -EINVAL;
    }
    kind = kind_of(name);
    if (kind == TEAM_KINDS)
        return refuse_kind(name, why, why_size);
    if (out->by_kind[kind] > 0) {
        snprintf(why, why_size, "collective: %s stands there twice: leave one out", name);
        return -EINVAL;
    }
    return coll_replace(out, (enum team_kind)kind, algorithm) < 0
               ? refuse_algorithm(kind, algorithm, why, why_size)
               : 0;
}

int collectives_parse(const char *text, struct coll_choices *out, char *why, size_t why_size)
{
    int rc = 0;

    *out = (struct coll_choices){{0}};
    for (bool more = true; more && rc == 0;) {
        size_t length = strcspn(text, ",");

        rc = parse_pair(text, length, out, why, why_size);
        more = text[length] == ',';
        text += length + more;
    }
    return rc;
}

int collectives_check(const char *text, char *why, size_t why_size)
{
    struct coll_choices choices;

    return collectives_parse(text, &choices, why, why_size);
}

void collectives_print(const struct coll_choices *choices, char text[COLLECTIVES_TEXT_MAX])
{
    *text = '\0';
    for (uint32_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++) {
        const struct coll_row *row = coll_row(choices->by_kind[kind] - 1u);
        char pair[2 * WORD_MAX_BYTES];

        if (!row)
            continue;
        snprintf(pair, sizeof(pair), "%s %s", team_kind_name(kind), row->algorithm->name);
        append(text, COLLECTIVES_TEXT_MAX, pair);
    }
}

/* The algorithm that a kind has at all lengths. */
static const char *name_of(const struct coll_choices *choices, uint32_t kind)
{
    const struct coll_row *row = coll_row(choices->by_kind[kind] - 1u);

    return row ? row->algorithm->name : "the daemon's own choice";
}

bool collectives_agree(const struct coll_choices *ours, const char *theirs, char *why,
                       size_t why_size)
{
    struct coll_choices other = {{0}};

    if (*theirs != '\0' && collectives_parse(theirs, &other, why, why_size) < 0)
        return false;
    for (uint32_t kind = TEAM_BARRIER; kind <= TEAM_ALLTOALL; kind++) {
        if (ours->by_kind[kind] == other.by_kind[kind])
            continue;
        snprintf(
            why, why_size,
            "%s goes by %s there, and by %s at the job's home: give all nodes one `collective` "
            "in pwcd.conf",
            team_kind_name(kind), name_of(&other, kind), name_of(ours, kind));
        return false;
    }
    return true;
}

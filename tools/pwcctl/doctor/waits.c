/* Judges why programs make no progress: each check is one function, which looks at nothing but the
 * facts (doctor.h). */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include "tools/pwcctl/doctor/doctor.h"

enum { RANK_WORDS = 32 };

static struct doctor_finding finding(const char *mend, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A warning: programs may wait on purpose. */
static struct doctor_finding finding(const char *mend, const char *format, ...)
{
    struct doctor_finding f = {.level = DOCTOR_WARN};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f.found, sizeof(f.found), format, arguments);
    va_end(arguments);
    snprintf(f.mend, sizeof(f.mend), "%s", mend);
    return f;
}

#define OF(view) (1u << DOCTOR_##view)

/* The finding where nothing waits, as far as these views show. */
static struct doctor_finding none(const struct doctor_facts *f, unsigned views, const char *found)
{
    struct doctor_finding out = {.level = DOCTOR_OK};
    snprintf(out.found, sizeof(out.found), "%s", found);
    for (unsigned v = 0; v < DOCTOR_VIEWS; v++) {
        const struct doctor_unheard *u = &f->stalls.unheard[v];
        if ((views & 1u << v) == 0 || *u->socket == '\0')
            continue;
        out.level = DOCTOR_UNKNOWN;
        snprintf(out.found, sizeof(out.found), "not known: %s", u->why);
    }
    if (f->daemon.status != 0) {
        out.level = DOCTOR_UNKNOWN;
        snprintf(out.found, sizeof(out.found), "no daemon answers");
    }
    return out;
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* Writes " of rank N" where the rank is known. */
static const char *of_rank(int64_t rank, char to[RANK_WORDS])
{
    to[0] = '\0';
    if (rank >= 0)
        snprintf(to, RANK_WORDS, " of rank %" PRId64, rank);
    return to;
}

/* Writes for how long nothing has happened, in words; 0: the doctor has looked twice, a second
 * apart. */
static const char *quiet(uint64_t ns, char to[RANK_WORDS])
{
    snprintf(to, RANK_WORDS, "a second");
    if (ns > 0)
        snprintf(to, RANK_WORDS, "%.1f s", seconds(ns));
    return to;
}

struct doctor_finding doctor_judge_operations(const struct doctor_facts *f)
{
    const struct doctor_operation *o = &f->stalls.operation;
    char from[RANK_WORDS];
    if (o->count == 0)
        return none(f, OF(OPS), "no operation has waited for over a second");
    return finding("see whether that rank takes its events (the check \"events\"), and pwcctl ops",
                   "%u operations have waited for over a second; the oldest, a %s%s to "
                   "rank %u on node %u, for %.1f s",
                   o->count, o->kind, of_rank(o->origin, from), o->target, o->node,
                   seconds(o->age_ns));
}

struct doctor_finding doctor_judge_links(const struct doctor_facts *f)
{
    const struct doctor_operation *o = &f->stalls.cut;
    char from[RANK_WORDS];
    if (o->count == 0)
        return none(f, OF(OPS) | OF(NODES), "no operation waits for a link");
    return finding("see the log of that node's daemon, and the network between the nodes",
                   "%u operations wait for a link; the oldest, a %s%s to rank %u, for "
                   "%.1f s: node %u cannot be reached: %s",
                   o->count, o->kind, of_rank(o->origin, from), o->target, seconds(o->age_ns),
                   o->node, o->link);
}

struct doctor_finding doctor_judge_events(const struct doctor_facts *f)
{
    const struct doctor_full *e = &f->stalls.events;
    char from[RANK_WORDS], since[RANK_WORDS];
    const char *mend = "have that rank probe or wait; a debugger shows where it is";
    if (e->count == 0)
        return none(f, OF(QUEUES), "all contexts take their events");
    if (e->held == 0)
        return finding(mend,
                       "rank %u has taken no events for %s: %" PRIu64 " of %" PRIu64
                       " bytes of its ring are used, and %" PRIu64 " bytes spilled",
                       e->rank, quiet(e->quiet_ns, since), e->used, e->size, e->spilled);
    return finding(mend,
                   "rank %u has taken no events for %s: %" PRIu64 " of %" PRIu64
                   " bytes of its ring are used, and %" PRIu64 " bytes spilled; it holds up %u "
                   "operations, the oldest%s for %.1f s",
                   e->rank, quiet(e->quiet_ns, since), e->used, e->size, e->spilled, e->held,
                   of_rank(e->held_of, from), seconds(e->held_ns));
}

struct doctor_finding doctor_judge_neighbours(const struct doctor_facts *f)
{
    const struct doctor_full *r = &f->stalls.records;
    char since[RANK_WORDS];
    if (r->count == 0)
        return none(f, OF(QUEUES), "all neighbours read their rings");
    return finding("have that rank probe or wait; a debugger shows where it is",
                   "rank %u has read nothing of its neighbour rank %u for %s: %" PRIu64
                   " of %" PRIu64 " bytes of the ring between them are used, so puts of rank %u "
                   "find no room",
                   r->rank, r->writer, quiet(r->quiet_ns, since), r->used, r->size, r->writer);
}

struct doctor_finding doctor_judge_barriers(const struct doctor_facts *f)
{
    const struct doctor_barrier *b = &f->stalls.barrier;
    if (b->count == 0)
        return none(f, OF(JOBS), "no barrier or exchange waits for a rank");
    return finding("see where the ranks that are missing are",
                   "job %s: %u of %u ranks have waited %.1f s in %s %s for rank %s", b->job,
                   b->have, b->size, seconds(b->age_ns), b->kind[0] == 'e' ? "an" : "a", b->kind,
                   b->missing);
}

struct doctor_finding doctor_judge_waits(const struct doctor_facts *f)
{
    const struct doctor_still *s = &f->stalls.still;
    char since[RANK_WORDS];
    if (s->count == 0)
        return none(f, OF(QUEUES) | OF(CLIENTS),
                    "no job stands still while a rank waits for events");
    if (s->elsewhere[0] == '\0' && s->unseen > 0)
        return finding("give the sockets of all nodes of this machine, or ask on the other nodes",
                       "job %s: rank %s waits for events, nothing has come for %s, and %u ranks "
                       "are not on the nodes that were asked",
                       s->job, s->events, quiet(s->quiet_ns, since), s->unseen);
    if (s->elsewhere[0] == '\0')
        return finding("see which rank should put next, with a debugger",
                       "job %s: rank %s waits for events, all other ranks wait, too, and nothing "
                       "has been submitted for %s",
                       s->job, s->events, quiet(s->quiet_ns, since));
    return finding("see where the rank is that waits in no call, with a debugger",
                   "job %s: rank %s waits for events, rank %s waits in no call, and nothing has "
                   "been submitted for %s",
                   s->job, s->events, s->elsewhere, quiet(s->quiet_ns, since));
}

struct doctor_finding doctor_judge_ranks(const struct doctor_facts *f)
{
    const struct doctor_gone *g = &f->stalls.gone;
    if (g->count == 0)
        return none(f, OF(JOBS), "no rank has left a job that others are still in");
    return finding("if that rank died, end the job; who waits for it waits in vain",
                   "job %s: rank %s has ended, and %u of its ranks live on", g->job, g->ranks,
                   g->live);
}

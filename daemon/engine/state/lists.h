/*
 * Lists of flows, inflows and grants: those of an owner, those that end at a session, and those of
 * a region. The arena holds the first entry and each entry's next one; private memory holds the
 * entry before each, so that an entry leaves without a walk.
 *
 *     first (arena) --> newest --next--> ... --next--> oldest
 *                          <--before--
 *
 * Nothing reads the link before the first entry, so a rolled-back transaction that added an entry
 * leaves nothing wrong behind. A transaction in which an entry leaves is always committed. Thread:
 * the progress thread.
 */
#ifndef PWC_ENGINE_LISTS_H
#define PWC_ENGINE_LISTS_H

#include "daemon/engine/state/state.h"

/* Within a transaction: puts the flow, or the inflow, at the front of the list. */
static inline void list_flow(struct engine *e, uint32_t *first, uint32_t flow)
{
    e->flows[flow].next = *first;
    if (*first < e->config.flows_max)
        e->flow_before[*first] = flow;
    set32(e, first, flow);
}

static inline void list_inflow(struct engine *e, uint32_t *first, uint32_t inflow)
{
    e->inflows[inflow].next = *first;
    if (*first < e->config.flows_max)
        e->inflow_before[*first] = inflow;
    set32(e, first, inflow);
}

/* Within a transaction: takes the flow off the list. In a damaged arena the list may lack it. */
static inline void unlist_flow(struct engine *e, uint32_t *first, uint32_t flow)
{
    uint32_t before = e->flow_before[flow], next = e->flows[flow].next;

    if (*first == flow)
        set32(e, first, next);
    else if (before < e->config.flows_max && e->flows[before].next == flow)
        set32(e, &e->flows[before].next, next);
    if (next < e->config.flows_max)
        e->flow_before[next] = before;
}

static inline void unlist_inflow(struct engine *e, uint32_t *first, uint32_t inflow)
{
    uint32_t before = e->inflow_before[inflow], next = e->inflows[inflow].next;

    if (*first == inflow)
        set32(e, first, next);
    else if (before < e->config.flows_max && e->inflows[before].next == inflow)
        set32(e, &e->inflows[before].next, next);
    if (next < e->config.flows_max)
        e->inflow_before[next] = before;
}

static inline void list_grant(struct engine *e, uint32_t *first, uint32_t grant)
{
    e->grants[grant].next = *first;
    if (*first < e->config.remotes_max)
        e->grant_before[*first] = grant;
    set32(e, first, grant);
}

static inline void unlist_grant(struct engine *e, uint32_t *first, uint32_t grant)
{
    uint32_t before = e->grant_before[grant], next = e->grants[grant].next;

    if (*first == grant)
        set32(e, first, next);
    else if (before < e->config.remotes_max && e->grants[before].next == grant)
        set32(e, &e->grants[before].next, next);
    if (next < e->config.remotes_max)
        e->grant_before[next] = before;
}

/* After a restart: notes this entry as the one before its next. */
static inline void lists_inherit_flow(struct engine *e, uint32_t flow)
{
    uint32_t next = e->flows[flow].next;

    if (next < e->config.flows_max)
        e->flow_before[next] = flow;
}

static inline void lists_inherit_inflow(struct engine *e, uint32_t inflow)
{
    uint32_t next = e->inflows[inflow].next;

    if (next < e->config.flows_max)
        e->inflow_before[next] = inflow;
}

static inline void lists_inherit_grant(struct engine *e, uint32_t grant)
{
    uint32_t next = e->grants[grant].next;

    if (next < e->config.remotes_max)
        e->grant_before[next] = grant;
}

#endif

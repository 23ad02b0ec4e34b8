/*
 * Probes for tracers from outside (bpftrace, SystemTap, perf): USDT, provider pwcd. A probe costs a
 * nop while no tracer uses it, and nothing where <sys/sdt.h> is missing (meson option usdt).
 * Thread: the progress thread.
 */
#ifndef PWC_ENGINE_PROBES_H
#define PWC_ENGINE_PROBES_H

#include <stdint.h>

#ifdef PWC_USDT
#include <sys/sdt.h>
#else
#define DTRACE_PROBE1(provider, name, a)             (void)0
#define DTRACE_PROBE2(provider, name, a, b)          (void)0
#define DTRACE_PROBE3(provider, name, a, b, c)       (void)0
#define DTRACE_PROBE4(provider, name, a, b, c, d)    (void)0
#define DTRACE_PROBE5(provider, name, a, b, c, d, e) (void)0
#endif

/* A run of a handler, named by its offload's handle: its beginning; its end, with a fault (enum
 * run_fault) or 0; and two numbers that the handler gives. */
static inline void probe_handler_begin(uint32_t session, uint32_t offload, uint32_t stage)
{
    DTRACE_PROBE3(pwcd, handler_begin, session, offload, stage);
}

static inline void probe_handler_end(uint32_t session, uint32_t offload, uint32_t stage,
                                     uint64_t units, uint32_t fault)
{
    DTRACE_PROBE5(pwcd, handler_end, session, offload, stage, units, fault);
}

static inline void probe_handler_trace(uint32_t session, uint64_t a, uint64_t b)
{
    DTRACE_PROBE3(pwcd, handler_trace, session, a, b);
}

/* Taken from a client's ring: `count` puts that travel as one, or 1. */
static inline void probe_submit(uint32_t peer, uint32_t flow, uint64_t sequence, uint32_t count,
                                uint32_t bytes)
{
    DTRACE_PROBE5(pwcd, op_submit, peer, flow, sequence, count, bytes);
}

/* The fabric has the operation's payload or read, or the ledger has its record. */
static inline void probe_post(uint32_t peer, uint32_t flow, uint64_t sequence, uint32_t bytes)
{
    DTRACE_PROBE4(pwcd, op_post, peer, flow, sequence, bytes);
}

/* A payload or a read has ended. */
static inline void probe_complete(uint32_t peer, uint32_t flow, uint64_t sequence, int32_t status)
{
    DTRACE_PROBE4(pwcd, op_complete, peer, flow, sequence, status);
}

/* The operation is locally complete: its client has an event, if it wants one. */
static inline void probe_local(uint32_t peer, uint32_t flow, uint64_t sequence, int32_t status)
{
    DTRACE_PROBE4(pwcd, op_local, peer, flow, sequence, status);
}

/* The event at the target, or the event of a reply. */
static inline void probe_event(uint32_t session, uint32_t peer, uint32_t flow, uint64_t sequence,
                               uint64_t bytes)
{
    DTRACE_PROBE5(pwcd, op_event, session, peer, flow, sequence, bytes);
}

/* Records that leave in one write, and its end. */
static inline void probe_run(uint32_t peer, uint32_t run, uint64_t bytes)
{
    DTRACE_PROBE3(pwcd, run_post, peer, run, bytes);
}

static inline void probe_run_end(uint32_t peer, uint32_t run)
{
    DTRACE_PROBE2(pwcd, run_complete, peer, run);
}

static inline void probe_peer_up(uint32_t peer)
{
    DTRACE_PROBE1(pwcd, peer_up, peer);
}

static inline void probe_peer_down(uint32_t peer)
{
    DTRACE_PROBE1(pwcd, peer_down, peer);
}

static inline void probe_attach(uint32_t client, uint32_t uid, uint32_t pid, uint32_t rank)
{
    DTRACE_PROBE4(pwcd, client_attach, client, uid, pid, rank);
}

static inline void probe_detach(uint32_t client)
{
    DTRACE_PROBE1(pwcd, client_detach, client);
}

static inline void probe_quarantine(uint32_t client, uint32_t reason)
{
    DTRACE_PROBE2(pwcd, quarantine, client, reason);
}

#endif

/* Owns the tables of fields (fields.h). */
#include "views/fields.h"

#include <stdbool.h>
#include <string.h>
#include "views/rows.h"

/* Each line of a table begins with the key and the place in the row. */
#define DAEMON(member)      #member, offsetof(struct counters_header, member)
#define SESSION(member)     #member, offsetof(struct counters_session, member)
#define PEER(member)        #member, offsetof(struct counters_peer, member)
#define ENGINE(member)      #member, offsetof(struct view_engine, member)
#define NODE(member)        #member, offsetof(struct view_node, member)
#define CLIENT(member)      #member, offsetof(struct view_client, member)
#define USER(member)        #member, offsetof(struct view_user, member)
#define QUARANTINED(member) #member, offsetof(struct view_quarantined, member)
#define REGION(member)      #member, offsetof(struct view_region, member)
#define PROGRAM(member)     #member, offsetof(struct view_program, member)
#define OFFLOAD(member)     #member, offsetof(struct view_offload, member)
#define TEAM(member)        #member, offsetof(struct view_team, member)
#define COLLECTIVE(member)  #member, offsetof(struct view_collective, member)
#define JOB(member)         #member, offsetof(struct view_job, member)
#define EXCHANGE(member)    #member, offsetof(struct view_exchange, member)
#define OP(member)          #member, offsetof(struct view_op, member)
#define LATENCY(member)     #member, offsetof(struct view_latency, member)

static const char *const link_states[] = {"none", "wanted", "up", "down", NULL};
static const char *const rights[] = {"none", "write", "read", "read, write", NULL};
static const char *const region_states[] = {"free", "open", "revoking", NULL};
static const char *const step_parts[] = {"none", "commands", "intake", "peers",
                                         "poll", "sweep",    NULL};
static const char *const offload_states[] = {"none", "binding", "open", "disabled", NULL};
static const char *const offload_takes[] = {"messages",  "puts",        "placed",
                                            "puts+gets", "placed+gets", NULL};
static const char *const handlers[] = {"none", "header", "payload", "completion", NULL};
static const char *const team_phases[] = {"none",    "coming",  "opening", "ready",
                                          "started", "dropped", NULL};
static const char *const waits[] = {"-", "event", "flush", "barrier", "exchange", "room", NULL};
static const char *const op_states[] = {"queued", "ready", "placed", NULL};

const struct field fields_daemon[] = {
    {"pid", .kind = FIELD_OTHER},
    {"node", .kind = FIELD_OTHER},
    {"nodes", .kind = FIELD_OTHER, .each = {"nodes", "Nodes in the list, this one included."}},
    {"provider", .kind = FIELD_OTHER},
    {"uptime_ns", .kind = FIELD_OTHER},
    {"age_ns", .kind = FIELD_OTHER},
    {"start_ns_since_1970", offsetof(struct counters_header, started_day_ns),
     .each = {"start_time_seconds", "When the process started, in seconds of the time of day."}},
    {DAEMON(heartbeat), FIELD_COUNT},
    {DAEMON(cpu_ns), FIELD_COUNT, UNIT_NS},
    {DAEMON(work), FIELD_COUNT},
    {DAEMON(sleeps), FIELD_COUNT},
    {DAEMON(commands), FIELD_COUNT},
    {DAEMON(clients), .each = {"clients", "Processes that are attached."}},
    {"contexts", offsetof(struct counters_header, sessions),
     .each = {"contexts", "Contexts of clients."}},
    {DAEMON(segments), .each = {"segments", "Segments of clients."}},
    {DAEMON(regions), .each = {"regions", "Regions that peers may reach."}},
    {DAEMON(memory), FIELD_NOW, UNIT_BYTES,
     .each = {"memory_bytes", "Segments and rings of all clients."}},
    {DAEMON(quarantined), FIELD_COUNT,
     .each = {"clients_quarantined", "Clients that were ended because they broke the protocol."}},
    {DAEMON(refused), FIELD_COUNT, .each = {"requests_refused", "Requests beyond a quota."}},
    {DAEMON(put_ops), FIELD_COUNT, UNIT_COUNT,
     .each = {"operations kind=put",
              "Operations that the daemon has taken from clients, by kind."}},
    {DAEMON(put_bytes), FIELD_COUNT, UNIT_BYTES,
     .each = {"operation_bytes kind=put", "Payload of these operations."}},
    {DAEMON(get_ops), FIELD_COUNT, UNIT_COUNT, .each = {"operations kind=get"}},
    {DAEMON(get_bytes), FIELD_COUNT, UNIT_BYTES, .each = {"operation_bytes kind=get"}},
    {DAEMON(am_ops), FIELD_COUNT, UNIT_COUNT, .each = {"operations kind=am"}},
    {DAEMON(am_bytes), FIELD_COUNT, UNIT_BYTES, .each = {"operation_bytes kind=am"}},
    {DAEMON(atomic_ops), FIELD_COUNT, UNIT_COUNT, .each = {"operations kind=atomic"}},
    {DAEMON(atomic_bytes), FIELD_COUNT, UNIT_BYTES, .each = {"operation_bytes kind=atomic"}},
    {DAEMON(errors), FIELD_COUNT, UNIT_COUNT,
     .each = {"operation_errors", "Operations that ended with an error."}},
    {DAEMON(delivered), FIELD_COUNT, UNIT_COUNT,
     .each = {"events_delivered", "Remote events and messages that were delivered to clients."}},
    {DAEMON(spilled), FIELD_COUNT, UNIT_COUNT,
     .each = {"events_spilled",
              "Remote events that found a client's ring full, and went into its spill."}},
    {DAEMON(teams), .each = {"teams", "Parts of teams that the progress threads have."}},
    {DAEMON(teams_broken), FIELD_COUNT, .each = {"teams_broken", "Parts of teams that broke."}},
    {DAEMON(collectives), FIELD_COUNT,
     .each = {"collectives",
              "Collective calls that have ended, of teams that several progress threads share."}},
    {DAEMON(collective_bytes), FIELD_COUNT, UNIT_BYTES,
     .each = {"collective_bytes", "Bytes that a member gave or got in each of these calls."}},
    {DAEMON(collective_errors), FIELD_COUNT,
     .each = {"collective_errors", "Collective calls that were under way when their team broke."}},
    {DAEMON(collectives_under_way), FIELD_NOW, UNIT_COUNT,
     .each = {"collectives_under_way",
              "Collective calls that all members here have made, and that have not ended."}},
    {DAEMON(collective_oldest_ns), FIELD_NOW, UNIT_NS,
     .each = {"collective_oldest_seconds",
              "How long the oldest collective call has been under way."}},
    {DAEMON(offloads), .each = {"offloads", "Offloads of clients."}},
    {DAEMON(offloads_disabled),
     .each = {"offloads_disabled", "Offloads that a fault or their client has disabled."}},
    {DAEMON(handler_runs), FIELD_COUNT, .each = {"handler_runs", "Runs of handlers."}},
    {DAEMON(handler_units), FIELD_COUNT, UNIT_COUNT,
     .each = {"handler_units", "Units that these runs have taken, some 2 ns each."}},
    {DAEMON(handler_messages), FIELD_COUNT, UNIT_COUNT,
     .each = {"handler_messages", "Messages that handlers have dealt with."}},
    {DAEMON(handler_bytes), FIELD_COUNT, UNIT_BYTES,
     .each = {"handler_bytes", "Payload of these messages."}},
    {DAEMON(handler_dropped), FIELD_COUNT, UNIT_BYTES,
     .each = {"handler_dropped_bytes", "Payload that handlers have dropped."}},
    {DAEMON(handler_deferred), FIELD_COUNT,
     .each = {"handler_messages_deferred", "Messages that handlers have left to their clients."}},
    {DAEMON(handler_failed), FIELD_COUNT,
     .each = {"handler_messages_failed", "Messages to offloads that have failed."}},
    {DAEMON(handler_faults), FIELD_COUNT,
     .each = {"handler_faults", "Runs of handlers that have ended by a fault."}},
    {DAEMON(handler_sends), FIELD_COUNT,
     .each = {"handler_sends", "Puts, messages and replies that handlers have sent."}},
    {DAEMON(handler_sends_failed), FIELD_COUNT,
     .each = {"handler_sends_failed", "Sends of handlers that have ended with an error."}},
    {0},
};

const struct field fields_step[] = {
    {DAEMON(recent_step_ns), FIELD_NOW, UNIT_NS},
    {DAEMON(longest_step_ns), FIELD_NOW, UNIT_NS},
    {DAEMON(longest_step_part), FIELD_WORD, .words = step_parts},
    {0},
};

#define CONTEXT_OPS   "Operations that the daemon has taken from the context, by kind."
#define CONTEXT_RINGS "Bytes in the rings of the context."
#define ALL_RINGS     "Bytes in the rings of all contexts."
#define DIRECT_OPS    "Operations to neighbours without the daemon, as the client says."
#define THEIR_BYTES   "Payload of these operations."

const struct field fields_session[] = {
    {"session", .kind = FIELD_OTHER},
    {SESSION(client), .title = "client", .names = true},
    {SESSION(rank), .title = "rank", .names = true},
    {SESSION(context), .title = "ctx", .names = true},
    {SESSION(waits), FIELD_WORD, .title = "waits", .words = waits},
    {SESSION(waited_ns), FIELD_COUNT, UNIT_NS, "waited"},
    {SESSION(asleep_ns), FIELD_COUNT, UNIT_NS, "asleep"},
    {SESSION(submit_size), FIELD_NOW, UNIT_BYTES},
    {SESSION(submit_used), FIELD_NOW, UNIT_BYTES, "submit",
     .each = {"context_ring_used_bytes ring=submit", CONTEXT_RINGS},
     .sum = {"ring_used_bytes ring=submit", ALL_RINGS}},
    {SESSION(submit_high), FIELD_COUNT, UNIT_BYTES, "submit high"},
    {SESSION(local_size), FIELD_NOW, UNIT_BYTES},
    {SESSION(local_used), FIELD_NOW, UNIT_BYTES, "local",
     .each = {"context_ring_used_bytes ring=local"}, .sum = {"ring_used_bytes ring=local"}},
    {SESSION(local_high), FIELD_COUNT, UNIT_BYTES, "local high"},
    {SESSION(remote_size), FIELD_NOW, UNIT_BYTES},
    {SESSION(remote_used), FIELD_NOW, UNIT_BYTES, "remote",
     .each = {"context_ring_used_bytes ring=remote"}, .sum = {"ring_used_bytes ring=remote"}},
    {SESSION(remote_high), FIELD_COUNT, UNIT_BYTES, "remote high"},
    {SESSION(reply_size), FIELD_NOW, UNIT_BYTES},
    {SESSION(reply_used), FIELD_NOW, UNIT_BYTES, .each = {"context_ring_used_bytes ring=reply"},
     .sum = {"ring_used_bytes ring=reply"}},
    {SESSION(reply_high), FIELD_COUNT, UNIT_BYTES},
    {SESSION(submitted), FIELD_COUNT},
    {SESSION(ended), FIELD_COUNT},
    {SESSION(in_flight), FIELD_NOW, UNIT_COUNT, "flight",
     .each = {"context_operations_in_flight", "Operations of the context that have not ended."},
     .sum = {"operations_in_flight", "Operations that have not ended."}},
    {SESSION(delivered), FIELD_COUNT,
     .each = {"context_events_delivered",
              "Remote events and messages that were delivered to the context."}},
    {SESSION(put_ops), FIELD_COUNT, UNIT_COUNT, "puts",
     .each = {"context_operations kind=put", CONTEXT_OPS}},
    {SESSION(put_bytes), FIELD_COUNT, UNIT_BYTES, "put bytes",
     .each = {"context_operation_bytes kind=put", THEIR_BYTES}},
    {SESSION(get_ops), FIELD_COUNT, UNIT_COUNT, "gets", .each = {"context_operations kind=get"}},
    {SESSION(get_bytes), FIELD_COUNT, UNIT_BYTES, "get bytes",
     .each = {"context_operation_bytes kind=get"}},
    {SESSION(am_ops), FIELD_COUNT, UNIT_COUNT, "AMs", .each = {"context_operations kind=am"}},
    {SESSION(am_bytes), FIELD_COUNT, UNIT_BYTES, "AM bytes",
     .each = {"context_operation_bytes kind=am"}},
    {SESSION(atomic_ops), FIELD_COUNT, UNIT_COUNT, "atomics",
     .each = {"context_operations kind=atomic"}},
    {SESSION(atomic_bytes), FIELD_COUNT, UNIT_BYTES, "atomic bytes",
     .each = {"context_operation_bytes kind=atomic"}},
    {SESSION(pairs)},
    {SESSION(direct_put_ops), FIELD_COUNT, UNIT_COUNT, "direct puts",
     .each = {"context_direct_operations kind=put", DIRECT_OPS}},
    {SESSION(direct_put_bytes), FIELD_COUNT, UNIT_BYTES, "direct put bytes",
     .each = {"context_direct_operation_bytes kind=put", THEIR_BYTES}},
    {SESSION(direct_get_ops), FIELD_COUNT, UNIT_COUNT, "direct gets",
     .each = {"context_direct_operations kind=get"}},
    {SESSION(direct_get_bytes), FIELD_COUNT, UNIT_BYTES, "direct get bytes",
     .each = {"context_direct_operation_bytes kind=get"}},
    {SESSION(direct_am_ops), FIELD_COUNT, UNIT_COUNT,
     .each = {"context_direct_operations kind=am"}},
    {SESSION(direct_am_bytes), FIELD_COUNT, UNIT_BYTES,
     .each = {"context_direct_operation_bytes kind=am"}},
    {SESSION(replies_expected), FIELD_NOW, UNIT_COUNT, "awaits",
     .sum = {"replies_expected",
             "Requests of clients here that may be replied to and are not yet."}},
    {SESSION(replies_owed), FIELD_NOW, UNIT_COUNT, "owes",
     .sum = {"replies_owed",
             "Requests delivered to clients here that may be replied to and are not yet."}},
    {SESSION(errors), FIELD_COUNT, UNIT_COUNT, "errors",
     .each = {"context_operation_errors", "Operations of the context that ended with an error."}},
    {SESSION(spilled), FIELD_COUNT, UNIT_COUNT,
     .each = {"context_events_spilled", "Events that found the context's ring full."}},
    {SESSION(spill_bytes), FIELD_NOW, UNIT_BYTES, "spill",
     .each = {"context_spill_bytes", "Bytes of its remote events that wait in the spill now."},
     .sum = {"spill_bytes", "Bytes of remote events that wait in spills now."}},
    {SESSION(requests_started), FIELD_NOW, UNIT_COUNT, "started",
     .each = {"context_requests_started",
              "Requests of the context that wait for notifications now, as the client says."}},
    {SESSION(notices_unexpected), FIELD_NOW, UNIT_COUNT, "unexpected",
     .each = {"context_notifications_unexpected",
              "Notifications that no request has asked for yet, as the client says."}},
    {SESSION(notices_matched), FIELD_COUNT, UNIT_COUNT,
     .each = {"context_notifications_matched",
              "Notifications that requests of the context have taken, as the client says."}},
    {SESSION(handler_units), FIELD_COUNT, UNIT_COUNT, "units",
     .each = {"context_handler_units", "Units that handlers of the context's offloads have "
                                       "taken."}},
    {SESSION(pair_size), FIELD_NOW, UNIT_BYTES},
    {SESSION(pair_used), FIELD_NOW, UNIT_BYTES, "pair"},
    {SESSION(pair_rank)},
    {SESSION(ops_ended), FIELD_COUNT, UNIT_COUNT, "ended"},
    {SESSION(ops_failed), FIELD_COUNT, UNIT_COUNT, "failed"},
    {SESSION(ops_arrived), FIELD_COUNT, UNIT_COUNT, "arrived"},
    {0},
};

#define PEER_SECONDS "How long operations towards that node took in all, by step."

const struct field fields_peer[] = {
    {"node", .kind = FIELD_OTHER, .title = "node", .names = true},
    {PEER(state), FIELD_WORD, .words = link_states},
    {PEER(incarnation)},
    {PEER(tx_bytes), FIELD_NOW, UNIT_BYTES, "out size",
     .each = {"peer_ledger_bytes direction=out", "Size of the ledgers."}},
    {PEER(tx_tail), FIELD_NOW},
    {PEER(tx_sent), FIELD_NOW},
    {PEER(tx_consumed), FIELD_NOW},
    {PEER(bytes_out), FIELD_COUNT, UNIT_BYTES,
     .each = {"peer_ledger_traffic_bytes direction=out",
              "Records that went through the ledgers, and payload packed with them."}},
    {PEER(tx_credit), FIELD_NOW, UNIT_BYTES, "credit",
     .each = {"peer_ledger_credit_bytes", "Bytes that are free in the ledger towards that node."}},
    {PEER(records_out), FIELD_COUNT, UNIT_COUNT, "records out",
     .each = {"peer_records direction=out", "Records to and from that node."}},
    {PEER(sent_pending), FIELD_NOW, UNIT_COUNT, "awaited",
     .each = {"peer_operations_awaited", "Operations whose consumption by that node is awaited."}},
    {PEER(starved), FIELD_COUNT, UNIT_COUNT, "starved",
     .each = {"peer_ledger_starved", "How often a record waited for room in the ledger."}},
    {PEER(paused), FIELD_COUNT, UNIT_COUNT, "paused",
     .each = {"peer_clients_paused",
              "How often a client paused because another one uses the ledger little."}},
    {PEER(grown), FIELD_COUNT, UNIT_COUNT, "grown",
     .each = {"peer_ledger_grown", "How often a ledger was made larger."}},
    {PEER(rx_bytes), FIELD_NOW, UNIT_BYTES, "in size", .each = {"peer_ledger_bytes direction=in"}},
    {PEER(records_in), FIELD_COUNT, UNIT_COUNT, "records in",
     .each = {"peer_records direction=in"}},
    {PEER(rx_consumed), FIELD_NOW, UNIT_BYTES, "consumed"},
    {PEER(rx_acked), FIELD_NOW, UNIT_BYTES, "returned"},
    {PEER(bytes_in), FIELD_COUNT, UNIT_BYTES, .each = {"peer_ledger_traffic_bytes direction=in"}},
    {PEER(runs_out), FIELD_COUNT,
     .each = {"peer_runs direction=out",
              "Runs of records to and from that node, one fabric write each."}},
    {PEER(runs_in), FIELD_COUNT, .each = {"peer_runs direction=in"}},
    {PEER(queued_count), FIELD_COUNT,
     .each = {"peer_operations_timed step=queued", "How many of them there were."}},
    {PEER(queued_ns), FIELD_COUNT, UNIT_NS,
     .each = {"peer_operation_latency_seconds step=queued", PEER_SECONDS}},
    {PEER(fabric_count), FIELD_COUNT, .each = {"peer_operations_timed step=fabric"}},
    {PEER(fabric_ns), FIELD_COUNT, UNIT_NS, .each = {"peer_operation_latency_seconds step=fabric"}},
    {PEER(local_count), FIELD_COUNT, .each = {"peer_operations_timed step=local"}},
    {PEER(local_ns), FIELD_COUNT, UNIT_NS, .each = {"peer_operation_latency_seconds step=local"}},
    {0},
};

const struct field fields_engine[] = {
    {ENGINE(engine)},
    {ENGINE(responding),
     .each = {"progress_responding",
              "1 where the progress thread has answered within a second; 0: it is stuck."}},
    {ENGINE(clients), .title = "clients",
     .each = {"progress_clients", "Clients that the thread serves."}},
    {ENGINE(heartbeat), FIELD_COUNT, UNIT_COUNT, "rounds",
     .each = {"progress_rounds", "Rounds of the progress thread."}},
    {ENGINE(work), FIELD_COUNT, UNIT_COUNT, "work",
     .each = {"progress_work",
              "Records and events that it has handled, and steps that have only served reads."}},
    {ENGINE(sleeps), FIELD_COUNT, UNIT_COUNT, "sleeps",
     .each = {"progress_sleeps", "How often it went to sleep."}},
    {ENGINE(commands), FIELD_COUNT,
     .each = {"progress_commands", "Commands of the control thread that it has carried out."}},
    {ENGINE(progress_cpu_ns), FIELD_COUNT, UNIT_NS, "processor",
     .each = {"progress_cpu_seconds", "Processor time of the progress thread."}},
    {ENGINE(recent_step_ns), FIELD_NOW, UNIT_NS, "recent step",
     .each = {"progress_recent_step_seconds",
              "The longest step of the progress thread in the last second."}},
    {ENGINE(longest_step_ns), FIELD_NOW, UNIT_NS, "longest step",
     .each = {"progress_longest_step_seconds",
              "The longest step of the progress thread since the start."}},
    {ENGINE(longest_step_part), FIELD_WORD, .title = "part of it", .words = step_parts},
    {0},
};

const struct field fields_node[] = {
    {NODE(node), .title = "node", .names = true},
    {NODE(address), FIELD_TEXT, .title = "address"},
    {NODE(state), FIELD_TEXT, .title = "state"},
    {NODE(ledgers), FIELD_WORD, .title = "ledgers", .words = link_states},
    {NODE(incarnation), .title = "incarnation"},
    {NODE(runs_out), FIELD_COUNT, UNIT_COUNT, "runs out"},
    {NODE(runs_in), FIELD_COUNT, UNIT_COUNT, "runs in"},
    {NODE(reason), FIELD_TEXT, .title = "reason"},
    {0},
};

const struct field fields_client[] = {
    {CLIENT(client), .title = "client", .names = true},
    {CLIENT(job), FIELD_CHARS, .title = "job"},
    {CLIENT(rank), .title = "rank"},
    {CLIENT(size), FIELD_NOW, UNIT_RANKS, .title = "of"},
    {CLIENT(uid), .title = "uid"},
    {CLIENT(pid), .title = "pid"},
    {CLIENT(sessions), .title = "contexts"},
    {CLIENT(segments), .title = "segments"},
    {CLIENT(regions), .title = "regions"},
    {CLIENT(bytes), FIELD_NOW, UNIT_BYTES,
     .each = {"client_memory_bytes", "Segments and rings of the client."}},
    {CLIENT(quarantine), FIELD_TEXT, .title = "quarantine"},
    {0},
};

const struct field fields_user[] = {
    {USER(uid), .title = "user", .names = true},
    {USER(connections)},
    {USER(clients), .title = "clients"},
    {USER(contexts), .title = "contexts"},
    {USER(segments), .title = "segments"},
    {USER(regions), .title = "regions"},
    {USER(bytes), FIELD_NOW, UNIT_BYTES, "bytes"},
    {USER(refused), FIELD_COUNT, UNIT_COUNT, "refused"},
    {0},
};

const struct field fields_quarantined[] = {
    {QUARANTINED(client), .title = "gone", .names = true},
    {QUARANTINED(job), FIELD_TEXT, .title = "job"},
    {QUARANTINED(rank), .title = "rank"},
    {QUARANTINED(uid), .title = "uid"},
    {QUARANTINED(pid), .title = "pid"},
    {QUARANTINED(age_ns), FIELD_NOW, UNIT_NS, "ago"},
    {QUARANTINED(quarantine), FIELD_TEXT, .title = "why"},
    {0},
};

const struct field fields_region[] = {
    {REGION(slot), .title = "slot", .names = true},
    {REGION(generation), .title = "gen", .names = true},
    {REGION(client), .title = "client"},
    {REGION(segment), .title = "segment"},
    {REGION(offset), .title = "offset"},
    {REGION(length), FIELD_NOW, UNIT_BYTES, "length"},
    {REGION(rights), FIELD_WORD, .title = "rights", .words = rights},
    {REGION(state), FIELD_WORD, .title = "state", .words = region_states},
    {REGION(grants), .title = "grants"},
    {0},
};

const struct field fields_program[] = {
    {PROGRAM(program), .title = "program", .names = true},
    {PROGRAM(client), .title = "client"},
    {PROGRAM(instructions), .title = "instructions"},
    {PROGRAM(constants), FIELD_NOW, UNIT_BYTES, "constants"},
    {PROGRAM(bytes), FIELD_NOW, UNIT_BYTES, "memory"},
    {PROGRAM(offloads), .title = "offloads"},
    {0},
};

const struct field fields_offload[] = {
    {OFFLOAD(offload), .title = "offload", .names = true},
    {OFFLOAD(client), .title = "client"},
    {OFFLOAD(session)},
    {OFFLOAD(takes), FIELD_WORD, .title = "takes", .words = offload_takes},
    {OFFLOAD(index), .title = "index"},
    {OFFLOAD(region), .title = "region"},
    {OFFLOAD(program), .title = "program"},
    {OFFLOAD(state), FIELD_WORD, .title = "state", .words = offload_states},
    {OFFLOAD(messages), FIELD_COUNT, UNIT_COUNT, "packets"},
    {OFFLOAD(bytes), FIELD_COUNT, UNIT_BYTES, "bytes"},
    {OFFLOAD(dropped), FIELD_COUNT, UNIT_BYTES, "dropped"},
    {OFFLOAD(deferred), FIELD_COUNT, UNIT_COUNT, "deferred"},
    {OFFLOAD(failed), FIELD_COUNT},
    {OFFLOAD(units), FIELD_COUNT, UNIT_COUNT, "units"},
    {OFFLOAD(units_p50), FIELD_NOW, UNIT_COUNT, "run p50"},
    {OFFLOAD(units_p99), FIELD_NOW, UNIT_COUNT, "run p99"},
    {OFFLOAD(units_max), FIELD_NOW, UNIT_COUNT, "run max"},
    {OFFLOAD(sends), FIELD_COUNT, UNIT_COUNT, "sends"},
    {OFFLOAD(sends_failed), FIELD_COUNT},
    {OFFLOAD(gets), FIELD_NOW, UNIT_COUNT, "gets"},
    {OFFLOAD(queued), FIELD_NOW, UNIT_COUNT, "queued"},
    {OFFLOAD(held), FIELD_NOW, UNIT_COUNT, "held"},
    {OFFLOAD(faults), FIELD_COUNT, UNIT_COUNT, "faults"},
    {OFFLOAD(fault), FIELD_TEXT, .title = "last fault"},
    {OFFLOAD(fault_handler), FIELD_WORD, .title = "fault in", .words = handlers},
    {OFFLOAD(fault_place), .title = "fault at"},
    {OFFLOAD(fault_address)},
    {"counter_0", offsetof(struct view_offload, counters[0])},
    {"counter_1", offsetof(struct view_offload, counters[1])},
    {"counter_2", offsetof(struct view_offload, counters[2])},
    {"counter_3", offsetof(struct view_offload, counters[3])},
    {"counter_4", offsetof(struct view_offload, counters[4])},
    {"counter_5", offsetof(struct view_offload, counters[5])},
    {"counter_6", offsetof(struct view_offload, counters[6])},
    {"counter_7", offsetof(struct view_offload, counters[7])},
    {0},
};

const struct field fields_team[] = {
    {TEAM(number), .title = "number", .names = true},
    {TEAM(handle)},
    {TEAM(job), FIELD_CHARS, .title = "job"},
    {TEAM(uid)},
    {TEAM(size), .title = "size"},
    {TEAM(participants), .title = "engines"},
    {TEAM(members), .title = "here"},
    {TEAM(left), .title = "left"},
    {TEAM(window), .title = "window"},
    {TEAM(under_way), .title = "calls"},
    {TEAM(oldest_ns), FIELD_NOW, UNIT_NS, "oldest"},
    {TEAM(phase), FIELD_WORD, .title = "state", .words = team_phases},
    {TEAM(broken), FIELD_TEXT, .title = "broken"},
    {0},
};

const struct field fields_collective[] = {
    {COLLECTIVE(kind), FIELD_TEXT, .title = "kind", .names = true},
    {COLLECTIVE(algorithm), FIELD_TEXT, .title = "algorithm", .names = true},
    {COLLECTIVE(from), .title = "from bytes"},
    {COLLECTIVE(least), .title = "from engines"},
    {COLLECTIVE(most), .title = "most engines"},
    {COLLECTIVE(calls), FIELD_COUNT, UNIT_COUNT, "calls"},
    {COLLECTIVE(bytes), FIELD_COUNT, UNIT_BYTES, "bytes"},
    {COLLECTIVE(letters), FIELD_COUNT, UNIT_COUNT, "letters"},
    {COLLECTIVE(letter_bytes), FIELD_COUNT, UNIT_BYTES, "bytes in letters"},
    {0},
};

const struct field fields_job[] = {
    {JOB(job), FIELD_TEXT, .title = "job", .names = true},
    {JOB(uid), .title = "user"},
    {JOB(size), FIELD_NOW, UNIT_RANKS, .title = "size"},
    {JOB(live), .title = "live"},
    {JOB(left), .title = "left"},
    {JOB(names), FIELD_NOW, UNIT_COUNT, "names"},
    {JOB(gone), FIELD_TEXT, .title = "gone"},
    {0},
};

const struct field fields_exchange[] = {
    {EXCHANGE(job), FIELD_TEXT, .title = "job", .names = true},
    {EXCHANGE(kind), FIELD_TEXT, .title = "kind"},
    {EXCHANGE(uid)},
    {EXCHANGE(exchange), .title = "number"},
    {EXCHANGE(size), .title = "size"},
    {EXCHANGE(have), .title = "have called"},
    {EXCHANGE(age_ns), FIELD_NOW, UNIT_NS, "age"},
    {EXCHANGE(missing), FIELD_TEXT, .title = "missing"},
    {0},
};

const struct field fields_op[] = {
    {OP(client), .title = "client", .names = true},
    {OP(session), .title = "session", .names = true},
    {OP(sequence), .title = "sequence"},
    {OP(kind), FIELD_TEXT, .title = "kind"},
    {OP(state), FIELD_WORD, .title = "state", .words = op_states},
    {OP(flags)},
    {"node", .kind = FIELD_OTHER, .title = "node"},
    {OP(rank), .title = "rank"},
    {OP(context)},
    {OP(length), FIELD_NOW, UNIT_BYTES, "length"},
    {OP(age_ns), FIELD_NOW, UNIT_NS, "age"},
    {0},
};

const struct field fields_latency[] = {
    {"node", .kind = FIELD_OTHER, .title = "node", .names = true},
    {LATENCY(step), FIELD_TEXT, .title = "step", .names = true},
    {LATENCY(count), FIELD_COUNT, UNIT_COUNT, "count"},
    {LATENCY(sum_ns), FIELD_COUNT, UNIT_NS},
    {LATENCY(p50_ns), FIELD_NOW, UNIT_NS, "p50"},
    {LATENCY(p90_ns), FIELD_NOW, UNIT_NS, "p90"},
    {LATENCY(p99_ns), FIELD_NOW, UNIT_NS, "p99"},
    {LATENCY(p999_ns), FIELD_NOW, UNIT_NS, "p99.9"},
    {LATENCY(max_ns), FIELD_NOW, UNIT_NS, "max"},
    {0},
};

const struct field fields_config[] = {
    {"key", .kind = FIELD_TEXT, .title = "key", .names = true},
    {"value", .kind = FIELD_TEXT, .title = "value"},
    {"source", .kind = FIELD_TEXT, .title = "from"},
    {"place", .kind = FIELD_TEXT, .title = "where"},
    {0},
};

const struct view views[] = {
    {"status", {{"engines", fields_engine}}},
    {"nodes", {{"nodes", fields_node}}},
    {"clients",
     {{"clients", fields_client}, {"users", fields_user}, {"quarantined", fields_quarantined}}},
    {"queues", {{"queues", fields_session}}},
    {"ledgers", {{"ledgers", fields_peer}}},
    {"regions", {{"regions", fields_region}}},
    {"programs", {{"programs", fields_program}}},
    {"offloads", {{"offloads", fields_offload}}},
    {"teams", {{"teams", fields_team}}},
    {"collectives", {{"collectives", fields_collective}}},
    {"jobs", {{"jobs", fields_job}, {"exchanges", fields_exchange}}},
    {"ops", {{"ops", fields_op}}},
    {"latency", {{"latency", fields_latency}}},
    {"config", {{"config", fields_config}}},
    {"counters",
     {{"sessions", fields_session}, {"peers", fields_peer}, {"engines", fields_engine}}},
    {0},
};

const struct view *view_find(const char *name)
{
    for (const struct view *v = views; v->name; v++)
        if (strcmp(v->name, name) == 0)
            return v;
    return NULL;
}

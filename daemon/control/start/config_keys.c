/* Owns the table of keys: name, kind, default, bounds and help of each (config.h). Constant. */
#include "daemon/control/start/config.h"

#include <assert.h>
#include "daemon/control/start/collectives.h"
#include "daemon/control/watch/log.h"
#include "daemon/control/nodes/nodes.h"
#include "daemon/engine/engine.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TIB (1024 * GIB)

#define FIELD(member) offsetof(struct config, member)

#define SHARE_OF_ALL "seven eighths of all"
#define SHARE_OF_USER                                                                              \
    "seven eighths of all where others than the daemon's own user are served, else all"

/* A number, size or choice without `.initial` has the default 0, or the first choice. */
static const struct config_key keys[] = {
    {"socket", CONFIG_STRING, FIELD(socket), .what = "PATH",
     .unset = "/run/pwcd/pwcd.sock for root, $XDG_RUNTIME_DIR/pwcd/pwcd.sock for others",
     .help = "of the Unix socket for clients"},
    {"node", CONFIG_NUMBER, FIELD(node), .initial = UINT64_MAX, .max = 16383,
     .unset = "0 for a node alone, else none", .environment = "PWCD_NODE",
     .help = "which entry of the list of nodes this daemon is"},
    {"nodes", CONFIG_STRING, FIELD(nodes), .what = "LIST", .unset = "this node alone",
     .environment = "PWCD_NODES", .help = "of host:port,host:port,... of all nodes' control ports"},
    {"nodes-file", CONFIG_STRING, FIELD(nodes_file), .what = "FILE",
     .help = "with the list of nodes, one host:port a line, # begins a comment"},
    {"job-port", CONFIG_NUMBER, FIELD(job_port), .max = 65535,
     .zero = "16384 and the job's number modulo 16384; with PMIx any free port",
     .help = "control port of a job's daemons (--job)"},
    {"secret", CONFIG_STRING, FIELD(secret), .what = "FILE",
     .help = "with the secret that all nodes share: ours, mode 0600, 32 to 4096 bytes; needed with "
             "two nodes or more where MUNGE does not run"},
    {"auth", CONFIG_CHOICE, FIELD(auth), .choices = "auto|munge|secret",
     .help = "how daemons authenticate each other; auto: by the secret where one is given, else by "
             "MUNGE"},
    {"provider", CONFIG_STRING, FIELD(provider), .what = "NAME",
     .unset = "that of a card, else stream (with several rails: libfabric's first)",
     .help = "of the fabric: libfabric's provider, or stream"},
    {"address", CONFIG_STRING, FIELD(address), .what = "IP", .unset = "127.0.0.1",
     .environment = "PWCD_ADDRESS", .help = "or interface that the fabric binds to"},
    {"protocol", CONFIG_CHOICE, FIELD(protocol), .choices = "auto|ordered|reassemble|chain",
     .help = "how large puts announce themselves"},
    {"rails", CONFIG_CHOICE, FIELD(rails), .choices = "1|2|4",
     .help = "connections to each node, over which large puts travel side by side"},
    {"ledger-start", CONFIG_BYTES, FIELD(ledger_start), .initial = 16 * KIB, .min = 4 * KIB,
     .max = 256 * MIB, .help = "of a new ledger; a power of two"},
    {"ledger-max", CONFIG_BYTES, FIELD(ledger_max), .initial = MIB, .min = 4 * KIB,
     .max = 256 * MIB, .help = "that a ledger may grow to; a power of two"},
    {"ledger-bytes", CONFIG_BYTES, FIELD(ledger_bytes), .initial = 64 * MIB, .min = 16 * KIB,
     .max = TIB, .help = "of memory for all ledgers of an engine; a multiple of ledger-max"},
    /* At least 16 bytes, so that a put of a word is always packed, and its word appears by one
     * store, and so that the 16 bytes of a compare and swap fit. */
    {"packed-max", CONFIG_BYTES, FIELD(packed_max), .initial = 4 * KIB, .min = 16,
     .max = ENGINE_PACKED_MAX,
     .help = "up to which a payload leaves packed with its record; with ledger-start 4K at most "
             "256, with a larger one a quarter of it always fits"},
    {"spill-max", CONFIG_BYTES, FIELD(spill_max), .initial = MIB, .min = 1, .max = GIB,
     .help = "of events kept for a context that does not drain"},
    {"stripe-min", CONFIG_BYTES, FIELD(stripe_min), .initial = 64 * KIB, .min = 256, .max = GIB,
     .help = "from which on a payload travels over all rails at once"},
    {"collective", CONFIG_STRING, FIELD(collective), .what = "LIST", .unset = "by data and nodes",
     .check = collectives_check,
     .help = "of kinds of collectives with the algorithm that each has between nodes: allreduce "
             "ring, bcast tree; the same on all nodes"},
    {"keepalive-ms", CONFIG_NUMBER, FIELD(keepalive_ms), .initial = 1000, .min = 20, .max = 3600000,
     .help = "a node that is waited for and says nothing for so long is asked whether it lives; "
             "after three times as long its link begins anew"},
    {"peer-deadline-ms", CONFIG_NUMBER, FIELD(peer_deadline_ms), .initial = 5000, .min = 100,
     .max = 86400000, .help = "a node that cannot be reached for so long is given up"},
    {"allow-users", CONFIG_STRING, FIELD(allow_users), .what = "LIST",
     .help = "of users (names or numbers) whose processes are served beside our own user's"},
    {"allow-groups", CONFIG_STRING, FIELD(allow_groups), .what = "LIST",
     .help = "of groups whose members are served"},
    {"inspect-groups", CONFIG_STRING, FIELD(inspect_groups), .what = "LIST",
     .help = "of groups whose members see all clients in pwcctl, as root and our own user do; "
             "others see their own"},
    {"clients-max", CONFIG_NUMBER, FIELD(clients_max), .initial = 256, .min = 1, .max = 4096,
     .help = "clients at a time"},
    {"pairs", CONFIG_NUMBER, FIELD(pairs), .initial = 65536, .min = 64, .max = 1048576,
     .help = "of a context here and one that it sends to; as many again may send to contexts here; "
             "alike on all nodes. Memory is taken as they are used"},
    {"binds", CONFIG_NUMBER, FIELD(binds), .initial = 65536, .min = 64, .max = 1048576,
     .help = "of all clients; alike on all nodes. Memory is taken as they are used"},
    {"client-memory", CONFIG_BYTES, FIELD(client_memory), .initial = 4 * GIB, .min = 4 * KIB,
     .max = 64 * TIB, .help = "of segments and rings of one client"},
    {"client-segments", CONFIG_NUMBER, FIELD(client_segments), .initial = 256, .min = 1,
     .max = 1024, .help = "segments of one client"},
    {"client-contexts", CONFIG_NUMBER, FIELD(client_contexts), .initial = 64, .min = 1, .max = 512,
     .help = "contexts of one client"},
    {"client-regions", CONFIG_NUMBER, FIELD(client_regions), .initial = 4096, .min = 1,
     .max = 16384, .help = "regions of one client"},
    {"client-teams", CONFIG_NUMBER, FIELD(client_teams), .initial = 64, .min = 1, .max = 1024,
     .help = "teams that contexts of one client are members of"},
    {"client-programs", CONFIG_NUMBER, FIELD(client_programs), .initial = 64, .min = 1, .max = 1024,
     .help = "programs of handlers of one client"},
    {"client-program-bytes", CONFIG_BYTES, FIELD(client_program_bytes), .initial = 256 * KIB,
     .min = KIB, .max = 8 * MIB, .help = "of programs of handlers of one client"},
    {"client-offloads", CONFIG_NUMBER, FIELD(client_offloads), .initial = 256, .min = 1,
     .max = 1024, .help = "offloads of one client"},
    {"client-binds", CONFIG_NUMBER, FIELD(client_binds), .max = 1048576, .zero = SHARE_OF_ALL,
     .help = "binds of one client"},
    {"client-pairs", CONFIG_NUMBER, FIELD(client_pairs), .max = 1048576, .zero = SHARE_OF_ALL,
     .help = "contexts elsewhere that one client is bound to, and as many that are bound to it"},
    {"client-queue", CONFIG_BYTES, FIELD(client_queue), .max = 64 * MIB,
     .zero = "half of what other clients leave",
     .help = "of one client's operations in flight and spilled events"},
    {"user-clients", CONFIG_NUMBER, FIELD(user_clients), .max = 4096, .zero = SHARE_OF_USER,
     .help = "clients of one user"},
    {"user-memory", CONFIG_BYTES, FIELD(user_memory), .max = 64 * TIB, .zero = SHARE_OF_USER,
     .help = "of segments and rings of one user; all is what the machine has"},
    {"user-segments", CONFIG_NUMBER, FIELD(user_segments), .max = 1024, .zero = SHARE_OF_USER,
     .help = "segments of one user"},
    {"user-contexts", CONFIG_NUMBER, FIELD(user_contexts), .max = 512, .zero = SHARE_OF_USER,
     .help = "contexts of one user"},
    {"user-regions", CONFIG_NUMBER, FIELD(user_regions), .max = 16384, .zero = SHARE_OF_USER,
     .help = "regions of one user"},
    {"user-teams", CONFIG_NUMBER, FIELD(user_teams), .max = 262144, .zero = SHARE_OF_USER,
     .help = "teams of one user, each counted once a member; all is 64 for each client"},
    {"user-programs", CONFIG_NUMBER, FIELD(user_programs), .max = 1024, .zero = SHARE_OF_USER,
     .help = "programs of handlers of one user"},
    {"user-program-bytes", CONFIG_BYTES, FIELD(user_program_bytes), .max = 8 * MIB,
     .zero = SHARE_OF_USER, .help = "of programs of handlers of one user"},
    {"user-offloads", CONFIG_NUMBER, FIELD(user_offloads), .max = 1024, .zero = SHARE_OF_USER,
     .help = "offloads of one user"},
    {"user-binds", CONFIG_NUMBER, FIELD(user_binds), .max = 1048576, .zero = SHARE_OF_USER,
     .help = "binds of one user"},
    {"user-pairs", CONFIG_NUMBER, FIELD(user_pairs), .max = 1048576, .zero = SHARE_OF_USER,
     .help = "contexts that those of one user are bound to, and as many bound to them"},
    {"user-queue", CONFIG_BYTES, FIELD(user_queue), .max = 64 * MIB, .zero = SHARE_OF_USER,
     .help = "of one user's operations in flight and spilled events"},
    {"user-jobs", CONFIG_NUMBER, FIELD(user_jobs), .max = 1024,
     .zero = "half of what other users leave where others than the daemon's own user are served, "
             "else all",
     .help = "jobs of one user whose directory this node keeps, of 1024"},
    {"progress", CONFIG_CHOICE, FIELD(progress), .choices = "adaptive|dedicated|sleep",
     .help = "with nothing to do the daemon yields for a while, polls on, or sleeps at once"},
    {"progress-threads", CONFIG_NUMBER, FIELD(progress_threads), .initial = 1, .min = 1,
     .max = NODES_ENGINES_MAX,
     .help = "threads that progress, each with an engine and a share of the clients of its own; "
             "nodes may differ"},
    {"direct", CONFIG_CHOICE, FIELD(direct), .choices = "auto|off",
     .help = "whether clients of one user and one job on this node put and get through memory, "
             "without the daemon"},
    {"handlers", CONFIG_CHOICE, FIELD(handlers), .initial = CONFIG_HANDLERS_OWN,
     .choices = "off|own|on",
     .help =
         "whose programs of handlers are taken: nobody's, those of the daemon's own user, or of "
         "all who are served"},
    {"handler-units", CONFIG_NUMBER, FIELD(handler_units), .initial = 10000, .min = 100,
     .max = 1000000, .help = "of work that one handler may do: instructions and helpers"},
    {"handler-us", CONFIG_NUMBER, FIELD(handler_us), .initial = 50, .min = 1, .max = 1000,
     .help = "that one handler may take"},
    {"handler-turn", CONFIG_NUMBER, FIELD(handler_turn), .initial = 2048, .min = 64, .max = 1000000,
     .help = "units of work that the handlers of one client do before others' have their turn"},
    {"handler-share", CONFIG_NUMBER, FIELD(handler_share), .initial = 25, .min = 1, .max = 100,
     .help = "percent of the daemon's time that all handlers have while other clients have work"},
    {"delay-ns", CONFIG_NUMBER, FIELD(delay_ns), .max = 100000,
     .help = "for measuring only: whatever comes from the fabric is held back for so long"},
    {"log", CONFIG_CHOICE, FIELD(log), .initial = LOG_LEVEL_WARNING,
     .choices = "error|warning|info|debug", .help = "what is written to standard error"},
    {0},
};

static_assert(sizeof(keys) / sizeof(keys[0]) - 1 <= CONFIG_KEYS_MAX, "an origin for each key");

const struct config_key *config_keys(void)
{
    return keys;
}

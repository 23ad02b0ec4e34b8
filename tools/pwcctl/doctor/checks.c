/* Judges the facts: each check is one function, which looks at nothing but the facts (doctor.h). */
#include "tools/pwcctl/doctor/doctor.h"
#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "proto/provider_name.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* Descriptors of a daemon without clients, and of a client: connection, process, rings, segments.
 */
#define DESCRIPTORS_OWN    64u
#define DESCRIPTORS_CLIENT 8u
#define DESCRIPTORS_LEAST  256u

#define PINNED_LEAST  GIB /* bytes that a card's provider registers at least, with a few clients */
#define WINDOW_LEAST  MIB /* of TCP: bandwidth times delay of 10 Gbit/s and 1 ms is 1.2 MB */
#define SHM_OF_A_PEER (16 * MIB) /* bytes that the provider shm lays down for each peer */

static struct doctor_finding finding(enum doctor_level level, const char *mend, const char *format,
                                     ...) __attribute__((format(printf, 3, 4)));

static struct doctor_finding finding(enum doctor_level level, const char *mend, const char *format,
                                     ...)
{
    struct doctor_finding f = {.level = level};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f.found, sizeof(f.found), format, arguments);
    va_end(arguments);
    snprintf(f.mend, sizeof(f.mend), "%s", mend);
    return f;
}

struct size_text {
    char text[32];
};

static struct size_text size_of(uint64_t bytes)
{
    struct size_text out;
    if (bytes == DOCTOR_UNLIMITED)
        snprintf(out.text, sizeof(out.text), "unlimited");
    else if (bytes >= MIB)
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " MiB", bytes / MIB);
    else
        snprintf(out.text, sizeof(out.text), "%" PRIu64 " KiB", bytes / KIB);
    return out;
}

/* ---- fabrics of this machine ---------------------------------------------------------------- */

/* Returns the provider of the running daemon, else the one that a daemon would take; a node alone
 * needs none. */
static const char *provider_of(const struct doctor_facts *f)
{
    bool has_one = f->daemon.status == 0 && *f->daemon.provider != '\0' &&
                   strcmp(f->daemon.provider, "loop") != 0;
    return has_one                          ? f->daemon.provider
           : f->programs.provider_count > 0 ? f->programs.providers[0]
                                            : "";
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Returns whether the provider moves data with the processor, and pins no memory for a card. */
static bool in_software(const char *provider)
{
    return *provider == '\0' || provider_over_ip(provider) || begins(provider, "shm");
}

/* ---- the daemon --------------------------------------------------------------------------------
 */

/* The finding about a daemon that does not answer. */
static struct doctor_finding silent(const char *socket, int status, const char *why)
{
    switch (status) {
    case -ENOENT:
    case -ECONNREFUSED:
        return finding(DOCTOR_WRONG,
                       "start one (systemctl start pwcd, or pwcrun for a try), or say where it is "
                       "(--socket, PWC_SOCKET)",
                       "no daemon serves at %s", socket);
    case -EACCES:
    case -EPERM:
        return finding(DOCTOR_WRONG,
                       "have this user or one of its groups added to allow-users or allow-groups "
                       "(pwcd.conf(5)), or ask as the daemon's user",
                       "%s", why);
    case -ETIMEDOUT:
        return finding(DOCTOR_WRONG,
                       "pwcctl counters needs no answer; the daemon's log may say more; restart it",
                       "%s", why);
    default:
        return finding(DOCTOR_WRONG, "the daemon's log may say more", "%s", why);
    }
}

/* The first daemon, and where it serves, the others. */
static struct doctor_finding judge_daemon(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    if (d->status != 0)
        return silent(d->socket, d->status, d->why);
    for (unsigned v = 0; v < DOCTOR_VIEWS; v++) {
        const struct doctor_unheard *u = &f->stalls.unheard[v];
        if (u->status != 0)
            return silent(u->socket, u->status, u->why);
    }
    return finding(DOCTOR_OK, "", "node %u of %u serves at %s, process %d", d->node, d->nodes,
                   d->socket, (int)d->pid);
}

static struct doctor_finding judge_progress(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    if (d->status != 0)
        return finding(DOCTOR_UNKNOWN, "", "not known: no daemon answers");
    if (d->stuck)
        return finding(DOCTOR_WRONG,
                       "pwcctl counters shows whether it goes on; a stuck provider needs a restart "
                       "(systemctl restart pwcd)",
                       "a progress thread has not answered within a second");
    return finding(DOCTOR_OK, "", "%u progress thread%s, %s", d->threads,
                   d->threads == 1 ? "" : "s", d->progress);
}

static struct doctor_finding judge_versions(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    const struct doctor_programs *p = &f->programs;
    if (d->status == 0 && d->session_version != p->session_version)
        return finding(DOCTOR_WRONG,
                       "install one version, and have the daemon replaced: pwcctl upgrade, or "
                       "systemctl restart pwcd",
                       "the daemon has rings of version %u, what is installed here of version %u: "
                       "programs cannot attach",
                       d->session_version, p->session_version);
    if (d->status == 0 && *p->pwcd_version && strcmp(d->version, p->pwcd_version) != 0)
        return finding(DOCTOR_WARN, "pwcctl upgrade has the new one take its place",
                       "the daemon that runs is %s, %s is %s", d->version, p->pwcd,
                       p->pwcd_version);
    if (d->status == 0 && strcmp(d->version, p->version) != 0)
        return finding(DOCTOR_WARN, "install one version of all", "pwcctl is %s, the daemon %s",
                       p->version, d->version);
    if (*p->pwcd_version == '\0')
        return finding(DOCTOR_WARN, "install pwcd beside pwcctl, or name it in PWCD",
                       "the daemon's program is not found (%s)", p->pwcd);
    if (strcmp(p->pwcd_version, p->version) != 0)
        return finding(DOCTOR_WARN, "install one version of all", "pwcctl is %s, %s %s", p->version,
                       p->pwcd, p->pwcd_version);
    if (d->status != 0)
        return finding(DOCTOR_OK, "", "pwcctl and pwcd are %s", p->version);
    return finding(DOCTOR_OK, "", "%s everywhere", p->version);
}

static struct doctor_finding judge_peers(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    if (d->status != 0)
        return finding(DOCTOR_UNKNOWN, "", "not known: no daemon answers");
    if (d->nodes <= 1)
        return finding(DOCTOR_OK, "", "this node is alone");
    if (d->lost > 0)
        return finding(DOCTOR_WRONG,
                       "see that its daemon runs, has the same list of nodes and secret, and that "
                       "no firewall stands between; pwcctl nodes shows all",
                       "%u of %u other nodes not linked; node %u: %s", d->lost, d->nodes - 1,
                       d->lost_node, *d->lost_why ? d->lost_why : "not reached yet");
    return finding(DOCTOR_OK, "", "no link to %u other node%s is down", d->nodes - 1,
                   d->nodes == 2 ? "" : "s");
}

static struct doctor_finding judge_clients(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    if (d->status != 0)
        return finding(DOCTOR_UNKNOWN, "", "not known: no daemon answers");
    if (d->quarantined > 0)
        return finding(DOCTOR_WARN, "pwcctl clients shows which, and how",
                       "%u client%s broke the protocol", d->quarantined,
                       d->quarantined == 1 ? "" : "s");
    return finding(DOCTOR_OK, "", "none has broken the protocol");
}

static struct doctor_finding judge_provider(const struct doctor_facts *f)
{
    const struct doctor_programs *p = &f->programs;
    const char *provider = provider_of(f);
    char others[256] = "";
    if (*provider == '\0' && *p->pwcd_version == '\0')
        return finding(DOCTOR_WARN, "install pwcd beside pwcctl, or name it in PWCD",
                       "not known: the daemon's program cannot be asked");
    if (*provider == '\0')
        return finding(DOCTOR_WRONG,
                       "install libfabric's providers, and see that address (pwcd.conf(5)) is of "
                       "this machine; pwcd --providers lists what there is",
                       "no provider will do: %s", p->providers_why);
    for (unsigned i = 0; i < p->provider_count; i++) {
        size_t used = strlen(others);
        if (strcmp(p->providers[i], provider) != 0)
            snprintf(others + used, sizeof(others) - used, "%s%s",
                     used > 0 ? ", " : "; also: ", p->providers[i]);
    }
    return finding(DOCTOR_OK, "", "%s%s", provider, others);
}

/* ---- limits ------------------------------------------------------------------------------------
 */

static const char *who(const struct doctor_facts *f)
{
    return f->machine.of_daemon ? "the daemon" : "this shell";
}

static struct doctor_finding judge_memory_locked(const struct doctor_facts *f)
{
    const struct doctor_machine *m = &f->machine;
    const char *provider = provider_of(f);
    if (m->memory_exempt || m->memory_locked == DOCTOR_UNLIMITED)
        return finding(DOCTOR_OK, "", "%s may pin memory without a limit", who(f));
    if (in_software(provider))
        return finding(DOCTOR_OK, "", "%s may pin %s; %s pins none", who(f),
                       size_of(m->memory_locked).text, *provider ? provider : "a node alone");
    return finding(m->memory_locked < PINNED_LEAST ? DOCTOR_WRONG : DOCTOR_WARN,
                   "LimitMEMLOCK=infinity in the unit, or \"* - memlock unlimited\" in "
                   "/etc/security/limits.conf, and log in anew",
                   "%s may pin only %s, and %s pins all memory that clients share", who(f),
                   size_of(m->memory_locked).text, provider);
}

static struct doctor_finding judge_descriptors(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    uint64_t most = f->machine.descriptors, clients = d->status == 0 ? d->clients_max : 256;
    uint64_t needed = DESCRIPTORS_OWN + DESCRIPTORS_CLIENT * clients;
    static const char mend[] = "LimitNOFILE=infinity in the unit, or \"* - nofile 20000\" in "
                               "/etc/security/limits.conf, and log in anew";
    if (most < DESCRIPTORS_LEAST)
        return finding(DOCTOR_WRONG, mend, "%s may open only %" PRIu64 " descriptors", who(f),
                       most);
    if (most < needed)
        return finding(DOCTOR_WARN, mend,
                       "%s may open %" PRIu64 " descriptors; %" PRIu64
                       " clients need about %" PRIu64,
                       who(f), most, clients, needed);
    if (most == DOCTOR_UNLIMITED)
        return finding(DOCTOR_OK, "", "%s may open descriptors without a limit", who(f));
    return finding(DOCTOR_OK, "", "%s may open %" PRIu64 " descriptors", who(f), most);
}

static struct doctor_finding judge_processors(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    unsigned have = f->machine.processors, threads = d->status == 0 ? d->threads : 1;
    bool dedicated = d->status == 0 && strcmp(d->progress, "dedicated") == 0;
    if (dedicated && have <= threads)
        return finding(DOCTOR_WRONG, "progress = adaptive, or fewer progress-threads",
                       "%u processor%s, and %u progress thread%s that poll%s without end: nothing "
                       "is left to programs",
                       have, have == 1 ? "" : "s", threads, threads == 1 ? "" : "s",
                       threads == 1 ? "s" : "");
    if (threads > have)
        return finding(DOCTOR_WARN, "fewer progress-threads",
                       "%u progress threads share %u processor%s", threads, have,
                       have == 1 ? "" : "s");
    if (have < 2)
        return finding(DOCTOR_WARN,
                       "let the daemon use a second processor where latency matters: pwcrun --bind "
                       "none, or a wider affinity of its service",
                       "the daemon may use one processor: it and programs there take turns");
    return finding(DOCTOR_OK, "", "%u processors", have);
}

/* ---- the kernel --------------------------------------------------------------------------------
 */

static struct doctor_finding judge_membarrier(const struct doctor_facts *f)
{
    const int needed = MEMBARRIER_CMD_GLOBAL_EXPEDITED | MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    int commands = f->machine.membarrier;
    if (commands < 0)
        return finding(DOCTOR_WARN,
                       "a kernel with CONFIG_MEMBARRIER, or a sandbox that lets it "
                       "through",
                       "no membarrier: %s; clients of one node go through the daemon",
                       strerror(-commands));
    if ((commands & needed) != needed)
        return finding(DOCTOR_WARN, "Linux 4.16 or later",
                       "membarrier lacks the global expedited kind; clients of one node go through "
                       "the daemon");
    return finding(DOCTOR_OK, "", "membarrier has what neighbours need");
}

static struct doctor_finding judge_clock(const struct doctor_facts *f)
{
    /* These clocks are read without a system call. */
    static const char *const fast[] = {"tsc", "kvm-clock", "arch_sys_counter",
                                       "hyperv_clocksource_tsc_page"};
    const char *clock = f->machine.clock;
    if (*clock == '\0')
        return finding(DOCTOR_UNKNOWN, "", "not known");
    for (size_t i = 0; i < sizeof(fast) / sizeof(fast[0]); i++)
        if (strcmp(clock, fast[i]) == 0)
            return finding(DOCTOR_OK, "", "the kernel's clock is %s", clock);
    return finding(DOCTOR_WARN,
                   "see in the kernel's log why tsc was given up; boot with tsc=reliable where it "
                   "is steady",
                   "the kernel's clock is %s: each look at the time is a system call", clock);
}

static struct doctor_finding judge_shared_memory(const struct doctor_facts *f)
{
    const struct doctor_daemon *d = &f->daemon;
    uint64_t peers = d->status == 0 && d->nodes > 1 ? d->nodes : 2;
    uint64_t rails = d->status == 0 && d->rails > 0 ? d->rails : 1;
    uint64_t needed = peers * rails * SHM_OF_A_PEER, have = f->machine.shm_free;
    if (!begins(provider_of(f), "shm"))
        return finding(DOCTOR_OK, "", "%s free in /dev/shm; needed by provider shm alone",
                       size_of(have).text);
    if (have < needed)
        return finding(DOCTOR_WRONG, "mount -o remount,size=50% /dev/shm, and look what fills it",
                       "%s free in /dev/shm; %" PRIu64 " nodes need %s", size_of(have).text, peers,
                       size_of(needed).text);
    return finding(DOCTOR_OK, "", "%s free in /dev/shm", size_of(have).text);
}

static struct doctor_finding judge_huge_pages(const struct doctor_facts *f)
{
    const char *pages = f->machine.shm_pages, *provider = provider_of(f);
    bool none = strcmp(pages, "never") == 0 || strcmp(pages, "deny") == 0;
    if (*pages == '\0')
        return finding(DOCTOR_UNKNOWN, "", "not known");
    if (none && !in_software(provider))
        return finding(
            DOCTOR_WARN, "echo within_size >/sys/kernel/mm/transparent_hugepage/shmem_enabled",
            "shared memory has small pages only (%s): %s holds an entry for each", pages, provider);
    return finding(DOCTOR_OK, "", "huge pages of shared memory: %s", pages);
}

static struct doctor_finding judge_tcp(const struct doctor_facts *f)
{
    const struct doctor_machine *m = &f->machine;
    uint64_t least = m->tcp_receive_max < m->tcp_send_max ? m->tcp_receive_max : m->tcp_send_max;
    const char *provider = provider_of(f);
    if (!provider_over_ip(provider))
        return finding(DOCTOR_OK, "", "no sockets are used");
    if (least == 0)
        return finding(DOCTOR_UNKNOWN, "", "not known");
    if (least < WINDOW_LEAST)
        return finding(DOCTOR_WARN,
                       "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456' net.ipv4.tcp_wmem='4096 "
                       "16384 4194304'",
                       "a connection's buffers grow to %s only: too little for 10 Gbit/s",
                       size_of(least).text);
    return finding(DOCTOR_OK, "", "a connection's buffers grow to %s in, %s out (rmem_max %s)",
                   size_of(m->tcp_receive_max).text, size_of(m->tcp_send_max).text,
                   size_of(m->core_receive_max).text);
}

static struct doctor_finding judge_tracing(const struct doctor_facts *f)
{
    const struct doctor_machine *m = &f->machine;
    if (m->uid == 0 || (f->daemon.status == 0 && f->daemon.serves_others))
        return finding(DOCTOR_OK, "", "users cannot trace the daemon");
    if (m->ptrace_scope < 1)
        return finding(DOCTOR_WARN,
                       "sysctl -w kernel.yama.ptrace_scope=1, or a daemon with a user of its own "
                       "(docs/security.md)",
                       "every program of user %u can read the daemon's memory, the secret included",
                       (unsigned)m->uid);
    return finding(DOCTOR_OK, "", "programs trace only their own children (ptrace_scope %d)",
                   m->ptrace_scope);
}

const struct doctor_check *doctor_checks(void)
{
    static const struct doctor_check checks[] = {
        {"daemon", judge_daemon},
        {"progress", judge_progress},
        {"versions", judge_versions},
        {"peers", judge_peers},
        {"clients", judge_clients},
        {"operations", doctor_judge_operations},
        {"links", doctor_judge_links},
        {"events", doctor_judge_events},
        {"neighbours", doctor_judge_neighbours},
        {"barriers", doctor_judge_barriers},
        {"waits", doctor_judge_waits},
        {"ranks", doctor_judge_ranks},
        {"provider", judge_provider},
        {"memory-locked", judge_memory_locked},
        {"descriptors", judge_descriptors},
        {"processors", judge_processors},
        {"membarrier", judge_membarrier},
        {"clock", judge_clock},
        {"shared-memory", judge_shared_memory},
        {"huge-pages", judge_huge_pages},
        {"tcp", judge_tcp},
        {"tracing", judge_tracing},
        {0},
    };
    return checks;
}

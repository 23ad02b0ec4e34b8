"""The sides of pwcd: pwcperf, which pwcrun starts with its daemons."""
import shlex

from . import process
from .process import Failure
from .row import OUR_PUT_TYPED, OURS, Side
from .setting import NODE, TCP

PROVIDER = "stream"
LAYERED = "tcp;ofi_rxm"
RATE = ["put_rate", "--size", "8", "--window"]
MEDIUM = ["--size", "16384", "--window", "64", "--slots", "1"]
LARGE = ["--size", "1048576", "--window", "8", "--slots", "1"]

# row, pwcperf's arguments, name, what it does, key, scale, iterations, places; a name that ends in
# "rxm" is over libfabric
TESTS = [
    ("latency", ["put_lat", "--size", "8"], "pwcd put", "put, and its event at the target", "p50_us",
     1, 20000, (NODE, TCP)),
    ("latency", ["am_lat", "--kind", "medium", "--size", "8"], "pwcd am", "active message, and reply",
     "p50_us", 1, 20000, (NODE, TCP)),
    ("completion", ["put_bw", "--size", "8", "--window", "1"], "pwcd put",
     "put, until its local event; the target has one, too", "p50_us", 1, 20000, (TCP,)),
    ("completion", ["put_bw", "--size", "8", "--window", "1", "--no-event"], "pwcd put, no event",
     "put, until its local event; the target learns nothing", "p50_us", 1, 20000, (TCP,)),
    ("rate", [*RATE, "2048"], "pwcd put", "each with an event at the target, 2048 in flight",
     "rate_mps", 1, 4000000, (NODE, TCP)),
    ("rate", [*RATE, "2048", "--no-event"], "pwcd put, no event",
     "the target learns nothing; 2048 in flight", "rate_mps", 1, 4000000, (NODE, TCP)),
    ("rate", [*RATE, "64"], "pwcd put, 64 in flight",
     "each with an event at the target", "rate_mps", 1, 500000, (NODE, TCP)),
    ("rate", [*RATE, "64", "--no-event"], "pwcd put, no event, 64 in flight",
     "the target learns nothing", "rate_mps", 1, 500000, (NODE, TCP)),
    ("medium", ["put_bw", *MEDIUM], "pwcd put", "each with an event at the target", "bw_mbps", 0.001,
     60000, (TCP,)),
    ("bandwidth", ["put_bw", *LARGE], "pwcd put", "each with an event at the target", "bw_mbps", 0.001,
     1000, (NODE, TCP)),
    ("latency", ["put_lat", "--size", "8"], "pwcd put, rxm", "the same over libfabric's rxm", "p50_us",
     1, 20000, (TCP,)),
    ("rate", [*RATE, "2048"], "pwcd put, rxm", "the same over libfabric's rxm", "rate_mps", 1,
     4000000, (TCP,)),
    ("bandwidth", ["put_bw", *LARGE], "pwcd put, rxm", "the same over libfabric's rxm", "bw_mbps",
     0.001, 1000, (TCP,)),
    ("inject", ["inject", "--depth", "64", "--size", "8"], "pwcd put",
     "each with an event at the target", "p50_ns", 1, 1000, (NODE, TCP)),
    ("overlap", ["overlap", "--size", "8"], "pwcd put",
     "the target computes on its daemon's processor", "p50_us", 1, 380, (TCP,)),
    ("fetch", ["fetch_lat"], "pwcd fetch-add", "fetch-and-add, until its value is there", "p50_us", 1,
     20000, (TCP,)),
    ("fetch_busy", ["overlap", "--kind", "fetch"], "pwcd fetch-add",
     "the target computes on its daemon's processor", "p50_us", 1, 380, (TCP,)),
    ("gups", ["gups", "--window", "1024"], "pwcd xor", "1024 in flight, no event at the target",
     "rate_mps", 1, 4000000, (TCP,)),
    ("gups", ["gups", "--window", "64"], "pwcd xor, 64 in flight", "no event at the target",
     "rate_mps", 1, 1000000, (TCP,)),
    ("fetch", ["fetch_rate", "--contend"], "pwcd fetch-add",
     "without the daemon; the target adds by its own instruction all the time", "mean_us", 1000,
     4000000, (NODE,)),
]

# row, the command as docs/performance.md has it for people who check a figure, key, scale
TYPED = [
    ("node.latency", ["--", "pwcperf", "put_lat", "--size", "8"], "p50_us", 1),
    ("node.rate", ["--", "pwcperf", "put_rate"], "rate_mps", 1),
    ("node.bandwidth", ["--", "pwcperf", "put_bw", "--size", "1m"], "bw_mbps", 0.001),
    ("tcp.latency", ["--nodes", "2", "--", "pwcperf", "put_lat", "--size", "8"], "p50_us", 1),
    ("tcp.completion", ["--nodes", "2", "--", "pwcperf", "put_bw", "--size", "8", "--window", "1"],
     "p50_us", 1),
    ("tcp.rate", ["--nodes", "2", "--", "pwcperf", "put_rate"], "rate_mps", 1),
    ("tcp.bandwidth", ["--nodes", "2", "--", "pwcperf", "put_bw", "--size", "1m"], "bw_mbps", 0.001),
]


def tests_known(setting):
    """The names in pwcperf's usage."""
    try:
        usage = process.run([setting.ours("tools", "pwcperf", "pwcperf"), "--help"])
    except Failure:
        return ""
    return usage


def launch(setting, place, provider, arguments):
    """The command. On two nodes each daemon shares a processor with its rank. On one node each rank has
    a processor, and the kernel places the daemon."""
    pwcperf = setting.ours("tools", "pwcperf", "pwcperf")
    command = [setting.ours("tools", "pwcrun", "pwcrun"), "--bind", "none", "--daemon",
               setting.ours("daemon", "pwcd"), "--provider", provider, "-n", "2"]
    if place == TCP:
        return command + ["--nodes", "2", "--pin", "--", pwcperf, *arguments, "--pin", "--json"]
    rank = f"exec taskset -c $PWC_RANK {shlex.join([pwcperf, *arguments, '--json'])}"
    return command + ["--nodes", "1", "--", "sh", "-c", rank]


def typed(setting, words):
    """The typed command with the programs of the build, and with --json."""
    programs = [setting.ours("tools", "pwcperf", "pwcperf") if word == "pwcperf" else word
                for word in words]
    return [setting.ours("tools", "pwcrun", "pwcrun"), "--daemon", setting.ours("daemon", "pwcd"),
            *programs, "--json"]


def sides(setting):
    known = tests_known(setting)
    for row, words, key, scale in TYPED:
        command = typed(setting, words)
        yield Side(row, OUR_PUT_TYPED, "pwcrun " + shlex.join(words), OURS,
                   process.shown(command, hide=setting.hidden),
                   skip="" if known else "pwcperf is not built",
                   measure=lambda command=command, key=key, scale=scale:
                   process.json_field(process.run(command), key) * scale)
    for row, arguments, name, how, key, scale, count, places in TESTS:
        skip = ""
        if not known:
            skip = "pwcperf is not built"
        elif arguments[0] not in known:
            skip = f"this pwcperf has no test {arguments[0]}"
        for place in places:
            command = launch(setting, place, LAYERED if name.endswith("rxm") else PROVIDER,
                             arguments + ["--iters", setting.count(count)])
            yield Side(f"{place}.{row}", name, how, OURS,
                       process.shown(command, hide=setting.hidden), skip=skip,
                       measure=lambda command=command, key=key, scale=scale:
                       process.json_field(process.run(command), key) * scale)

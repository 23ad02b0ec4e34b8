"""libfabric itself: fi_writedata, which notifies its target (bench/direct)."""
from . import process
from .row import Side
from .setting import CPUS, NODE, TCP

PROVIDERS = {NODE: ("shm", "libfabric shm"), TCP: ("tcp;ofi_rxm", "libfabric rxm")}


def sides(setting):
    for place, (provider, name) in PROVIDERS.items():
        for what, arguments, key, scale, count in (
                ("latency", [], "p50_us", 1, 20000),
                ("rate", ["--window", "64"], "rate_mps", 1, 200000),
                ("bandwidth", ["--window", "8", "--size", "1048576"], "bw_mbps", 0.001, 1000)):
            yield side(setting, f"{place}.{what}", name, provider,
                       arguments + ["--iters", setting.count(count)], key, scale)


def side(setting, row, name, provider, arguments, key, scale):
    command = [setting.ours("bench", "direct_writedata"), "--provider", provider, "--cpu", CPUS,
               *arguments]
    return Side(row, name, "fi_writedata, and its event in the target's queue",
                command=process.shown(command, hide=setting.hidden),
                measure=lambda: process.json_field(process.run(command), key) * scale)

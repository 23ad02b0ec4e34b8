"""The machine: its description, and the state that it is in.

The machine is virtual, and its host moves its two processors: for minutes at a time they are near each
other, or far. Then a cache line's round trip takes about 0.1 us, or 0.25 to 0.5 us, and every figure
changes with this time.
"""
import datetime
import os
import platform
import subprocess
from dataclasses import dataclass

from . import process
from .setting import CPUS

NEAR, FAR = "near", "far"
FAR_FROM = 0.2      # us: from this round trip of a cache line on, the processors are far
CHANGED_BY = 2.0    # factor between two probes of one repetition that shows a change of state


@dataclass(frozen=True)
class Probe:
    round_trip: float  # us
    others: int        # processes that were running besides us


def runnable():
    with open("/proc/loadavg", encoding="ascii") as file:
        return max(int(file.read().split()[3].split("/")[0]) - 1, 0)


def probe(setting):
    """Probes by the median of 64 short batches: other programs delay only few of them."""
    others = runnable()
    said = process.run([setting.ours("bench", "memory_limits"), "cache_line", "--cpu", CPUS,
                        "--iters", "12800"])
    return Probe(2 * process.json_field(said, "p50_us"), others)


def state(trips):
    """The state that the probes of a repetition show: near or far; None: they differ."""
    states = {NEAR if trip < FAR_FROM else FAR for trip in trips}
    if len(states) > 1 or max(trips) > CHANGED_BY * min(trips):
        return None
    return states.pop()


def first_line(command, folder=None):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    except OSError:
        return ""
    return (done.stdout.strip().splitlines() or [""])[0]


def processor():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def virtual():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        return " hypervisor" in file.read()


def system():
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.system()


def versions():
    packages = ["libfabric1", "libucx0", "openmpi-bin", "mpich"]
    found = []
    for package in packages:
        version = first_line(["dpkg-query", "-W", "-f", "${Version}", package])
        if version:
            found.append(f"{package} {version}")
    return found


def describe(source):
    """Facts for the head of the table."""
    commit = first_line(["git", "describe", "--always", "--dirty"], source)
    return {
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "machine": f"{'virtual machine, ' if virtual() else ''}{os.cpu_count()} processors "
                   f"({processor()}), {system()}, kernel "
                   f"{'.'.join(platform.release().split('.')[:2])}",
        "versions": versions(),
        "load": os.getloadavg()[0],
    }

"""Open MPI and MPICH: the programs of bench/mpi, the same source built against each."""
import os

from . import process
from .row import Side
from .setting import CPUS, NODE, TCP

# Between two processes of a machine, Open MPI's puts use shared memory with any btl, unless osc is
# pt2pt; MPICH's puts do so without NOLOCAL.
LAUNCH = {
    ("openmpi", NODE): ["--mca", "pml", "ob1", "--mca", "btl", "vader,self"],
    ("openmpi", TCP): ["--mca", "pml", "ob1", "--mca", "osc", "pt2pt", "--mca", "btl", "tcp,self",
                       "--mca", "btl_tcp_if_include", "lo"],
    ("mpich", NODE): [],
    ("mpich", TCP): ["-env", "MPIR_CVAR_NOLOCAL", "1", "-env", "UCX_TLS", "tcp,self", "-env",
                     "UCX_NET_DEVICES", "lo"],
}
LAUNCHER = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none",
                "--mca", "mpi_yield_when_idle", "0", "-n", "2"],
    "mpich": ["mpirun.mpich", "-bind-to", "none", "-n", "2"],
}
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}
MEDIUM = ["--size", "16384", "--window", "64"]
LARGE = ["--size", "1048576", "--window", "8"]

# row, program, arguments, name, what it does, key, scale, iterations, places
TESTS = [
    ("latency", "two_sided", ["latency"], "send", "matched by a receive", "p50_us", 1, 20000,
     (NODE, TCP)),
    ("latency", "one_sided", ["latency"], "put, flush, flag", "the flag is a second put, polled",
     "p50_us", 1, 10000, (NODE,)),
    ("latency", "one_sided", ["latency", "--flag", "send"], "put, flush, flag",
     "the flag is a message (a put as flag takes longer here)", "p50_us", 1, 5000, (TCP,)),
    ("completion", "one_sided", ["completion"], "put, flush", "the target waits in a barrier",
     "p50_us", 1, 10000, (TCP,)),
    ("rate", "two_sided", ["rate"], "send", "windows of 64", "rate_mps", 1, 100000, (NODE, TCP)),
    ("rate", "one_sided", ["rate"], "put", "windows of 64 and a flush; the target learns nothing",
     "rate_mps", 1, 200000, (NODE, TCP)),
    ("medium", "two_sided", ["bandwidth", *MEDIUM], "send", "windows of 64", "bw_mbps", 0.001, 16000,
     (TCP,)),
    ("medium", "one_sided", ["bandwidth", *MEDIUM], "put",
     "windows of 64 and a flush; the target learns nothing", "bw_mbps", 0.001, 8000, (TCP,)),
    ("bandwidth", "two_sided", ["bandwidth", *LARGE], "send", "windows of 8", "bw_mbps", 0.001, 800,
     (NODE, TCP)),
    ("bandwidth", "one_sided", ["bandwidth", *LARGE], "put",
     "windows of 8 and a flush; the target learns nothing", "bw_mbps", 0.001, 400, (NODE, TCP)),
    ("inject", "one_sided", ["inject"], "put", "MPI_Put alone; the flush is not in the time",
     "p50_ns", 1, 64000, (NODE, TCP)),
    ("overlap", "one_sided", ["overlap"], "put, flush", "the target's process computes",
     "p50_us", 1, 20, (TCP,)),
    ("fetch", "atomics", ["fetch"], "fetch_and_op, flush", "the target waits in a barrier", "p50_us", 1,
     10000, (TCP,)),
    ("fetch_busy", "atomics", ["overlap"], "fetch_and_op, flush", "the target's process computes",
     "p50_us", 1, 20, (TCP,)),
    ("gups", "atomics", ["gups", "--window", "1024"], "accumulate", "windows of 1024 and a flush",
     "rate_mps", 1, 200000, (TCP,)),
    ("fetch", "atomics", ["fetch"], "fetch_and_op, flush",
     "the target waits in a barrier, and changes nothing", "p50_us", 1000, 100000, (NODE,)),
]


def sides(setting):
    for mpi, name in NAMES.items():
        for row, program, arguments, what, how, key, scale, count, places in TESTS:
            for place in places:
                yield side(setting, mpi, place, row, program,
                           arguments + ["--cpu", CPUS, "--iters", setting.count(count)],
                           f"{name} {what}", how, key, scale)


def side(setting, mpi, place, row, program, arguments, name, how, key, scale):
    path = setting.program(f"{program}.{mpi}")
    command = LAUNCHER[mpi] + LAUNCH[mpi, place] + [path] + arguments
    return Side(f"{place}.{row}", name, how, command=process.shown(command, hide=setting.hidden),
                mapped=place == NODE and program == "one_sided",
                skip="" if os.path.exists(path) else f"{program}.{mpi} is not built",
                measure=lambda: process.json_field(process.run(command), key) * scale)

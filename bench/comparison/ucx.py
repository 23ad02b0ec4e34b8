"""UCX: ucx_perftest, and bench/ucx/put_flag.c where ucx_perftest has no such test."""
import os
import shutil

from . import process
from .process import Failure
from .row import ROWS, Side
from .setting import CPUS, NODE, TCP

TRANSPORTS = {NODE: "posix", TCP: "tcp"}
MEDIUM, MEBI = 1 << 14, 1 << 20

# ucx_perftest -v: iterations, percentile, average and overall latency, bandwidths, message rates.
LATENCY, BANDWIDTH, RATE = 1, 5, 7

WINDOWS = {"rate": "64", "medium": "64", "bandwidth": "8"}  # sends in flight; the default is 32

# row, ucx_perftest's test, size, name, what it does, column, scale, iterations, mapped
TESTS = [
    ("latency", "tag_lat", 8, "UCX tag", "tag_lat: matched by a receive", LATENCY, 1, 50000, False),
    ("latency", "ucp_am_lat", 8, "UCX am", "am_lat: active message", LATENCY, 1, 50000, False),
    ("latency", "ucp_put_lat", 8, "UCX put, data polled",
     "put_lat: the target polls the last byte of the data itself", LATENCY, 1, 50000, True),
    ("rate", "tag_bw", 8, "UCX tag", "tag_bw", RATE, 1e-6, 500000, False),
    ("rate", "ucp_am_bw", 8, "UCX am", "am_bw", RATE, 1e-6, 500000, False),
    ("rate", "ucp_put_bw", 8, "UCX put", "put_bw: the target learns nothing", RATE, 1e-6, 500000,
     True),
    ("medium", "tag_bw", MEDIUM, "UCX tag", "tag_bw", BANDWIDTH, MEBI / 1e9, 20000, False),
    ("medium", "ucp_am_bw", MEDIUM, "UCX am", "am_bw", BANDWIDTH, MEBI / 1e9, 20000, False),
    ("medium", "ucp_put_bw", MEDIUM, "UCX put", "put_bw: the target learns nothing", BANDWIDTH,
     MEBI / 1e9, 20000, False),
    ("bandwidth", "tag_bw", MEBI, "UCX tag", "tag_bw", BANDWIDTH, MEBI / 1e9, 1000, False),
    ("bandwidth", "ucp_am_bw", MEBI, "UCX am", "am_bw", BANDWIDTH, MEBI / 1e9, 1000, False),
    ("bandwidth", "ucp_put_bw", MEBI, "UCX put", "put_bw: the target learns nothing", BANDWIDTH,
     MEBI / 1e9, 1000, True),
]

# row, arguments, name, what it does, iterations
PROGRAMS = [
    ("latency", ["latency"], "UCX put, flush, flag", "the flag is a second put, polled", 10000),
    ("latency", ["latency", "--order", "fence"], "UCX put, fence, flag",
     "the same; the origin does not learn of placement", 10000),
    ("completion", ["completion"], "UCX put, flush", "the target progresses", 10000),
    ("overlap", ["overlap"], "UCX put, flush", "the target's process computes", 20),
]
NAMES = {row.name for row in ROWS}  # not every test has a row at each place


def environment(place):
    env = {"UCX_TLS": TRANSPORTS[place], "UCX_WARN_UNUSED_ENV_VARS": "n"}
    return dict(env, UCX_NET_DEVICES="lo") if place == TCP else env


def column(text, number):
    """Field `number` of the last line with figures in the output of ucx_perftest -f -v."""
    for line in reversed(text.splitlines()):
        fields = line.strip().rstrip(",").split(",")
        if len(fields) > number and fields[0].isdigit():
            try:
                return float(fields[number])
            except ValueError:
                break
    raise Failure(f"ucx_perftest printed no figures: {text.strip()[-200:]!r}")


def perftest(client, env, number, scale):
    """Runs server and client; the client sends the server the name of the test."""
    port = str(process.free_port())
    first, second = CPUS.split(",")
    server = process.start(["ucx_perftest", "-c", second, "-p", port], env)
    try:
        process.wait_listening(server, int(port))
        out = process.run(["ucx_perftest", "127.0.0.1", "-c", first, "-p", port, *client], env)
    finally:
        process.stop(server)
    return column(out, number) * scale


def sides(setting):
    for place in TRANSPORTS:
        env = environment(place)
        for row, test, size, name, how, number, scale, count, mapped in TESTS:
            if f"{place}.{row}" not in NAMES:
                continue
            if place == TCP and (test, size) in (("ucp_am_bw", 8), ("ucp_put_bw", MEBI)):
                count //= 5
            client = ["-t", test, "-s", str(size), "-n", setting.count(count),
                      *(["-O", WINDOWS[row]] if row in WINDOWS else []), "-f", "-v"]
            yield Side(f"{place}.{row}", name, how, mapped=mapped and place == NODE,
                       command=process.shown(["ucx_perftest", *client], env),
                       skip="" if shutil.which("ucx_perftest") else "ucx_perftest is not installed",
                       measure=lambda client=client, env=env, number=number, scale=scale:
                       perftest(client, env, number, scale))
        for row, arguments, name, how, count in PROGRAMS:
            if f"{place}.{row}" in NAMES:
                yield program(setting, f"{place}.{row}", arguments, name, how, count, env)


def program(setting, row, arguments, name, how, count, env):
    path = setting.program("put_flag")
    command = [path, *arguments, "--cpu", CPUS, "--iters", setting.count(count)]
    return Side(row, name, how, command=process.shown(command, env, setting.hidden),
                skip="" if os.path.exists(path) else "put_flag is not built",
                measure=lambda: process.json_field(process.run(command, env), "p50_us"))

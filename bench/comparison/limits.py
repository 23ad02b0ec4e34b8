"""The bare limits: the best figures that the machine gives to any program (bench/limits)."""
from . import process
from .row import LIMIT, Side
from .setting import CPUS


def sides(setting):
    memory, tcp = setting.ours("bench", "memory_limits"), setting.ours("bench", "tcp_limits")

    def side(row, name, how, command, key, scale=1.0, scale_count=None):
        command = command + ["--cpu", CPUS]
        if scale_count:
            command += ["--iters", setting.count(scale_count)]
        return Side(row, name, how, LIMIT, process.shown(command, hide=setting.hidden),
                    lambda: process.json_field(process.run(command), key) * scale)

    for row, how, doubled in (("tcp.latency", "half a round trip of 64-byte records", 1),
                              ("tcp.completion", "a whole round trip", 2)):
        yield side(row, "TCP, 2 processes", how, [tcp, "latency"], "p50_us", doubled, 20000)
        yield side(row, "TCP, chain of 4", how + ", a relay on either side yields", [
            tcp, "latency", "--chain"], "p50_us", doubled, 20000)
    for row, key, scale in (("tcp.rate", "rate_mps", 1), ("tcp.bandwidth", "bw_mbps", 0.001)):
        yield side(row, "TCP, 2 processes", "64-byte records, 64 KiB a write", [tcp, "stream"], key,
                   scale, 10000000)
        yield side(row, "TCP, chain of 4", "the same through rings and relays",
                   [tcp, "stream", "--chain"], key, scale, 10000000)
    yield side("tcp.overlap", "TCP, chain of 4", "a round trip between processes that do not compute",
               [tcp, "latency", "--chain"], "p50_us", 2, 20000)
    yield side("node.latency", "cache line", "half a round trip", [memory, "cache_line"], "p50_us")
    yield side("node.rate", "slots", "8-byte slots in a ring", [memory, "slot_stream"], "rate_mps", 1,
               20000000)
    yield side("node.fetch", "bare instruction", "another process adds to the same word all the time",
               [memory, "shared_word"], "p50_ns", 1, 4000000)
    yield side("node.fetch", "bare instruction, spaced",
               "the same, with 20 multiplications, some 25 ns, between two additions",
               [memory, "shared_word", "--between", "20"], "p50_ns", 1, 4000000)
    yield side("node.bandwidth", "memcpy", "1 MiB, one process", [memory, "copy"], "bw_mbps", 0.001,
               4000)

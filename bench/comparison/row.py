"""A row is one question to all libraries; a side is the answer of one, and how to measure it."""
from dataclasses import dataclass, field
from typing import Callable, Optional


OUR_PUT = "pwcd put"
OUR_PUT_TYPED = "pwcd put, as typed"  # by the short command that the documents show


@dataclass(frozen=True)
class Row:
    name: str
    title: str
    unit: str
    lower_is_better: bool
    ours: str = OUR_PUT  # our side, with which the others are compared


ROWS = [
    Row("node.latency", "Same node: 8 bytes that the target learns of, half a round trip", "us",
        True),
    Row("node.rate", "Same node: 8 bytes, one way, 64 in flight or as named", "M/s", False),
    Row("node.bandwidth", "Same node: 1 MiB, one way, 8 in flight, one buffer", "GB/s", False),
    Row("node.inject", "Same node: submitting 8 bytes, batches of 64", "ns", True),
    Row("tcp.latency", "Two nodes, TCP: 8 bytes that the target learns of, half a round trip", "us",
        True),
    Row("tcp.completion", "Two nodes, TCP: 8 bytes put, until the origin knows that they are placed",
        "us", True),
    Row("tcp.rate", "Two nodes, TCP: 8 bytes, one way, 64 in flight or as named", "M/s", False),
    Row("tcp.medium", "Two nodes, TCP: 16 KiB, one way, 64 in flight", "GB/s", False),
    Row("tcp.bandwidth", "Two nodes, TCP: 1 MiB, one way, 8 in flight, one buffer", "GB/s", False),
    Row("tcp.inject", "Two nodes, TCP: submitting 8 bytes, batches of 64", "ns", True),
    Row("tcp.overlap", "Two nodes, TCP: 8 bytes put and placed while the target computes 20 ms "
        "without a call", "us", True),
    Row("tcp.fetch", "Two nodes, TCP: fetch-and-add on a 64-bit word, round trip", "us", True,
        "pwcd fetch-add"),
    Row("tcp.fetch_busy", "Two nodes, TCP: fetch-and-add while the target computes 20 ms without a call",
        "us", True, "pwcd fetch-add"),
    Row("tcp.gups", "Two nodes, TCP: 64-bit exclusive or at random places of 16 MiB (GUPS)", "M/s",
        False, "pwcd xor"),
    Row("node.fetch", "Same node: fetch-and-add on a word that two processes change", "ns", True,
        "pwcd fetch-add"),
]

LIMIT, PEER, OURS, CITED = "limit", "peer", "ours", "cited"


@dataclass
class Side:
    """`measure` gives a number in the row's unit; `skip` says why there is none."""
    row: str
    name: str
    how: str  # the program's work, for people who read the table
    kind: str = PEER
    command: str = ""
    measure: Optional[Callable[[], float]] = field(default=None, repr=False)
    skip: str = ""
    cited: float = 0.0
    mapped: bool = False  # the origin writes into the target's mapped memory

    @property
    def key(self):
        return f"{self.row}/{self.name}"

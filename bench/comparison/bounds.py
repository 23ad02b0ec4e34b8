"""The bounds that pwcd's figures must keep, and whether they do."""
from dataclasses import asdict, dataclass
from typing import Optional

from .row import CITED, OUR_PUT, OUR_PUT_TYPED, ROWS

ENOUGH = 5  # repetitions, for a bound to be judged
MAPPED = "the fastest mapped put"


@dataclass(frozen=True)
class Bound:
    """Our figure must keep to `factor` times the other side's, or without another side to `factor`."""
    row: str
    factor: float
    other: str = ""
    note: str = ""
    ours: str = ""  # our side that is judged, if not the row's own


@dataclass(frozen=True)
class Verdict:
    row: str
    text: str
    measured: Optional[float]
    count: int
    met: Optional[bool]  # None: not judged
    remark: str


BOUNDS = [
    Bound("node.latency", 1.0, "UCX tag"),
    Bound("node.rate", 1.5, "UCX tag"),
    Bound("node.bandwidth", 0.9, MAPPED),
    Bound("tcp.latency", 0.75, "Photon"),
    Bound("tcp.latency", 0.85, "UCX put, flush, flag"),
    Bound("tcp.latency", 0.85, "UCX put, data polled",
          "stricter: a put without flush, which its target finds by polling the data"),
    Bound("tcp.latency", 2.0, "UCX am"),
    Bound("tcp.rate", 4.0, "Open MPI put"),
    Bound("tcp.bandwidth", 0.9, "libfabric rxm"),
    Bound("tcp.inject", 40),
    Bound("tcp.overlap", 100),
    Bound("tcp.overlap", 1 / 150, "Open MPI put, flush"),
    Bound("tcp.overlap", 1 / 150, "MPICH put, flush"),
    Bound("tcp.fetch", 1.8, "Open MPI fetch_and_op, flush"),
    Bound("tcp.fetch", 1.8, "MPICH fetch_and_op, flush"),
    Bound("tcp.fetch_busy", 100),
    Bound("tcp.fetch_busy", 1 / 150, "Open MPI fetch_and_op, flush"),
    Bound("tcp.fetch_busy", 1 / 150, "MPICH fetch_and_op, flush"),
    Bound("tcp.gups", 5),
    Bound("tcp.gups", 2.0, "Open MPI accumulate"),
    Bound("tcp.gups", 2.0, "MPICH accumulate"),
    Bound("node.fetch", 2.0, "bare instruction"),
    # A figure by the short command that a newcomer types is within a tenth of the row's figure.
    *[Bound(row, 1.1, OUR_PUT, ours=OUR_PUT_TYPED)
      for row in ("node.latency", "tcp.latency", "tcp.completion")],
    *[Bound(row, 0.9, OUR_PUT, ours=OUR_PUT_TYPED)
      for row in ("node.rate", "node.bandwidth", "tcp.rate", "tcp.bandwidth")],
]


def resolve(bound, sides, figures):
    """The side that the bound names; None: there is none."""
    if bound.other != MAPPED:
        return next((s for s in sides if s.row == bound.row and s.name == bound.other), None)
    mapped = [(figures.of(s.row, s.name), s) for s in sides if s.row == bound.row and s.mapped]
    return max(((f.median, s) for f, s in mapped if f), default=(0, None), key=lambda x: x[0])[1]


def verdict(bound, sides, figures):
    row = next(r for r in ROWS if r.name == bound.row)
    sign = "<=" if row.lower_is_better else ">="
    judged = bound.ours or row.ours
    ours = figures.of(bound.row, judged)
    other, remark, limit = None, bound.note, bound.factor
    text = f"{sign} {bound.factor:g} {row.unit}"
    if bound.other:
        other = resolve(bound, sides, figures)
        text = f"{sign} {bound.factor:g} x {bound.other}"
        remark = remark or bound.ours
    if bound.other == MAPPED and other:
        remark = f"that is {other.name}"
    if not bound.other:
        measured = ours
    elif other is None:
        measured = None
    elif other.kind == CITED:
        measured, limit = ours, bound.factor * other.cited
        text += f" ({other.cited:g} {row.unit})"
        state = figures.state(bound.row)
        remark = (f"cited, of another run with cores near; this run: cores {state}; not in Debian")
    else:
        measured = figures.ratio(bound.row, judged, other.name)
    return judge(bound, row, text, measured, limit, remark)


def judge(bound, row, text, measured, limit, remark):
    if measured is None:
        return Verdict(bound.row, text, None, 0, None, remark or "not measured")
    met = measured.median <= limit if row.lower_is_better else measured.median >= limit
    if measured.count < ENOUGH:
        remark = "; ".join(filter(None, [remark, f"{measured.count} of {ENOUGH} repetitions"]))
    return Verdict(bound.row, text, measured.median, measured.count, met, remark)


def verdicts(sides, figures):
    return [verdict(bound, sides, figures) for bound in BOUNDS
            if any(s.row == bound.row for s in sides)]


def record(found):
    return [asdict(v) for v in found]

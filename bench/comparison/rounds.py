"""Rounds: every row's sides in turn, again and again, with the machine's state probed in between.

A repetition is one row's sides, one after the other, the order turned by one each time. It is kept
only when all its probes say the same state; else it is thrown away and made up for later, within
twice the repetitions that were asked for.
"""
from dataclasses import asdict, dataclass, field

from . import machine
from .process import Failure

FAILURES = 2  # in a row, after which a side is left out


@dataclass
class Repetition:
    row: str
    state: str
    round_trips: list  # of the probes, us
    others: int        # the most processes that ran besides us at a probe
    values: dict = field(default_factory=dict)  # by side's name


class Rounds:
    """`probe()` and the sides' `measure()` are all that touches the machine."""

    def __init__(self, sides, probe, tell=lambda text: None):
        self.sides = {}
        for side in sides:
            if side.measure and not side.skip:
                self.sides.setdefault(side.row, []).append(side)
        self.probe = probe
        self.tell = tell
        self.kept = []
        self.discarded = []
        self.attempts = {row: 0 for row in self.sides}
        self.failures = {}

    def run(self, rounds):
        """At least `rounds` repetitions of each row in one state, or twice as many attempts."""
        for number in range(2 * rounds):
            missing = [row for row in self.sides if self.in_one_state(row) < rounds]
            for row in missing:
                self.attempt(row)
            self.tell(f"round {number + 1}: {len(self.kept)} repetitions kept, "
                      f"{len(self.discarded)} discarded")
            if not missing:
                break

    def in_one_state(self, row):
        """Kept repetitions, in the state that has more of them."""
        states = [r.state for r in self.kept if r.row == row]
        return max((states.count(state) for state in set(states)), default=0)

    def attempt(self, row):
        turn = self.attempts[row] % max(len(self.sides[row]), 1)
        self.attempts[row] += 1
        probes, values = [self.probe()], {}
        for side in self.sides[row][turn:] + self.sides[row][:turn]:
            value = self.measured(side)
            if value is not None:
                values[side.name] = value
            probes.append(self.probe())
            if machine.state(probes) is None:
                break
        state = machine.state(probes)
        trips = [p.round_trip for p in probes]
        repetition = Repetition(row, state or "changed", trips, max(p.others for p in probes), values)
        (self.kept if state else self.discarded).append(repetition)
        self.tell(f"  {row}: {repetition.state}, a cache line {min(trips):.2f} to {max(trips):.2f} us"
                  + ("" if state else ": discarded"))

    def measured(self, side):
        """None where a side has failed; it is tried again until it has failed in a row."""
        before, why = self.failures.get(side.key, (0, ""))
        if before >= FAILURES:
            return None
        try:
            value = side.measure()
        except Failure as failure:
            why = str(failure)
            self.tell(f"  {side.key}: {why}")
            self.failures[side.key] = (before + 1, why)
            if before + 1 >= FAILURES:
                side.skip = why
            return None
        self.failures.pop(side.key, None)
        return value

    def record(self):
        return {"kept": [asdict(r) for r in self.kept],
                "discarded": [asdict(r) for r in self.discarded]}

"""Rounds: the sides of every row are measured in turn, again and again, and the machine's state is probed
before and after each.

A repetition measures the sides of one row, one after the other; the next one begins with the next side.
The first three probes of a repetition must agree on a state, and all others must show it, too. A state
lasts for minutes, but may change for some milliseconds. So if the state is another after a side, and
soon is as before, this side is measured again. Otherwise the whole repetition is discarded, and repeated
later; at most twice as many repetitions are tried as were asked for.
"""
import time
from dataclasses import asdict, dataclass, field

from . import machine
from .process import Failure

FAILURES = 2  # in a row, after which a side is left out
AGREEING = 3  # probes, before a repetition starts
TRIES = 3     # of a side, until the probes before and after it agree
LOOKS = 10    # probes until a state must be steady, or be back
PAUSE = 0.05  # seconds between these probes


@dataclass
class Repetition:
    row: str
    state: str
    round_trips: list  # of the probes, us
    others: int        # the most processes that ran besides us at a probe
    spoiled: int       # sides that were measured again
    values: dict = field(default_factory=dict)  # by side's name


class Rounds:
    """Measures in rounds. Only `probe()`, `pause(seconds)` and `measure()` of sides touch the machine."""

    def __init__(self, sides, probe, report=lambda text: None, pause=time.sleep):
        self.sides = {}
        for side in sides:
            if side.measure and not side.skip:
                self.sides.setdefault(side.row, []).append(side)
        self.probe = probe
        self.report = report
        self.pause = pause
        self.kept = []
        self.discarded = []
        self.attempts = {row: 0 for row in self.sides}
        self.failures = {}

    def run(self, rounds):
        """Runs until each row has `rounds` repetitions in one state, or twice as many attempts."""
        for number in range(2 * rounds):
            missing = [row for row in self.sides if self.in_one_state(row) < rounds]
            if not missing:
                break
            for row in missing:
                self.attempt(row)
            self.report(f"round {number + 1}: {len(self.kept)} repetitions kept, "
                      f"{len(self.discarded)} discarded")

    def in_one_state(self, row):
        """The number of kept repetitions in the state that has more of them."""
        states = [r.state for r in self.kept if r.row == row]
        return max((states.count(state) for state in set(states)), default=0)

    def attempt(self, row):
        turn = self.attempts[row] % len(self.sides[row])
        self.attempts[row] += 1
        found = Repetition(row, "", [], 0, 0)
        steady = self.settle(found)
        for side in self.sides[row][turn:] + self.sides[row][:turn]:
            steady = steady and self.take(found, side)
        found.state = machine.state(found.round_trips) if steady else "changed"
        (self.kept if steady else self.discarded).append(found)
        trips = found.round_trips or [0]
        self.report(f"  {row}: {found.state}, a cache line {min(trips):.2f} to {max(trips):.2f} us" +
                  ("" if steady else ": discarded"))

    def settle(self, repetition):
        """Probes until some probes in a row agree; the last one is the probe before the first side."""
        for _ in range(LOOKS):
            if not self.look(repetition):
                repetition.round_trips = []
            elif len(repetition.round_trips) == AGREEING:
                return True
            self.pause(PAUSE)
        return False

    def back(self, repetition):
        """Whether the repetition's state comes back soon."""
        for _ in range(LOOKS):
            if self.look(repetition):
                return True
            self.pause(PAUSE)
        return False

    def look(self, repetition):
        """Probes and notes the result. False, and nothing noted: the state is not the repetition's."""
        probe = self.probe()
        repetition.others = max(repetition.others, probe.others)
        if machine.state(repetition.round_trips + [probe.round_trip]) is None:
            return False
        repetition.round_trips.append(probe.round_trip)
        return True

    def take(self, repetition, side):
        """Measures a side between two probes of the repetition's state. False: the state has changed."""
        for _ in range(TRIES):
            value = self.measured(side)
            if self.look(repetition):
                if value is not None:
                    repetition.values[side.name] = value
                return True
            repetition.spoiled += 1
            if not self.back(repetition):
                return False
        return False

    def measured(self, side):
        """The value of a side; None: it has failed. A side that fails FAILURES times in a row is left out."""
        before, why = self.failures.get(side.key, (0, ""))
        if before >= FAILURES:
            return None
        try:
            value = side.measure()
        except Failure as failure:
            why = str(failure)
            self.report(f"  {side.key}: {why}")
            self.failures[side.key] = (before + 1, why)
            if before + 1 >= FAILURES:
                side.skip = why
            return None
        self.failures.pop(side.key, None)
        return value

    def record(self):
        return {"kept": [asdict(r) for r in self.kept],
                "discarded": [asdict(r) for r in self.discarded]}

"""Medians, spread and ratios of the repetitions that were kept.

Repetitions in different states are never mixed: a row's figures are those of the state that has more
repetitions. A ratio is taken within each repetition, and the median of the ratios is reported.
"""
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    median: float
    least: float
    most: float
    count: int


def figure(values):
    return Figure(statistics.median(values), min(values), max(values), len(values))


class Figures:
    """`repetitions` are dicts, as in the JSON file."""

    def __init__(self, repetitions):
        self.repetitions = repetitions

    def states(self, row):
        """How many repetitions were kept, by state."""
        counts = {}
        for repetition in self.repetitions:
            if repetition["row"] == row:
                counts[repetition["state"]] = counts.get(repetition["state"], 0) + 1
        return counts

    def state(self, row):
        """The state whose figures are printed: the one with more repetitions, or near if equal."""
        counts = self.states(row)
        return max(counts, key=lambda state: (counts[state], state == "near"), default=None)

    def kept(self, row):
        state = self.state(row)
        return [r["values"] for r in self.repetitions if r["row"] == row and r["state"] == state]

    def of(self, row, side):
        """The figure of a side; None: the side has no value."""
        found = [values[side] for values in self.kept(row) if side in values]
        return figure(found) if found else None

    def ratio(self, row, side, other):
        """The ratio side / other; None: no repetition has both."""
        ratios = [values[side] / values[other] for values in self.kept(row)
                  if side in values and values.get(other)]
        return figure(ratios) if ratios else None

"""Figures of libraries that Debian does not have, measured once on a machine of this kind, in the state
"near". The table shows these figures, too, although they are not of its run."""
from .row import CITED, Side

FIGURES = [
    ("tcp.latency", "Photon", "pwc_put, and its event; libfabric backend", 12.3),
    ("node.latency", "Aeron IPC", "a publication of 8 bytes", 0.055),
    ("node.latency", "GASNet smp", "active message", 0.125),
]


def sides(_setting):
    for row, name, how, value in FIGURES:
        yield Side(row, name, how, CITED, cited=value)

"""Tables and the plot of bench/scale, and how fast each figure may grow."""
import math

# Rows of (title of the table, figure, words for it).
TIME, MESSAGES, MEMORY = "Time, us", "Messages a node", "Memory, KiB"
SHOWN = [
    (TIME, "us", ""),
    (TIME, "us_within_node", ", of that within a node"),
    (TIME, "us_by_rank", ", rank by rank"),
    (TIME, "us_by_client", ", or by clients"),
    (TIME, "bind_us", ", to bind all"),
    (MESSAGES, "messages_a_node", ""),
    (MESSAGES, "messages_a_node_by_rank", ", rank by rank"),
    (MESSAGES, "messages_a_node_by_client", ", or by clients"),
    (MESSAGES, "frames_a_node", ", frames of control"),
    (MEMORY, "kib_a_node", ", of a node"),
    (MEMORY, "kib_empty", ", of a node before"),
    (MEMORY, "kib_a_rank", ", of each rank"),
    (MEMORY, "kib_unlinked", ", without links"),
    (MEMORY, "kib_linked", ", with N"),
    (MEMORY, "kib_a_link", ", each link"),
]
# How fast a figure of a row may grow: the exponent of a power of the number of nodes.
CONSTANT, LOGARITHM, LINEAR = 0.1, 0.3, 1.1
MAY_GROW = {
    "neighbours": CONSTANT, "peers-8": CONSTANT, "peers-64": CONSTANT, "all-to-all": LINEAR,
    "pairs-64": LINEAR, "pairs-128": LINEAR, "pairs-256": LINEAR,
    "hub": LINEAR, "team-barrier-1": LOGARITHM, "team-barrier-64": LOGARITHM,
    "team-allreduce-64k": LOGARITHM, "team-allreduce-1m": LOGARITHM, "team-allreduce-1": LOGARITHM, "team-allreduce-64": LOGARITHM, "attach-1": LINEAR, "attach-64": LINEAR, "memory-1024": CONSTANT, "memory-16384": CONSTANT,
    "barrier-1": LOGARITHM, "barrier-64": LOGARITHM, "allreduce-8-1": LOGARITHM,
    "allreduce-8-64": LOGARITHM, "allreduce-1m-1": LOGARITHM, "allreduce-1m-64": LOGARITHM,
    "alltoall-1": LINEAR, "alltoall-64": LINEAR, "forward-8": LOGARITHM, "forward-64k": LOGARITHM,
    "outlive-8": LOGARITHM, "product-16": LINEAR, "product-4k": LINEAR,
}
FREE = {"kib_linked", "us_by_rank", "us_by_client", "messages_a_node_by_rank",
        "messages_a_node_by_client"}  # a sum, and figures of other ways than ours
MANY = 128  # from so many nodes on, growth is judged: with fewer, a logarithm grows too fast
PANELS = [
    ("Exchanges", ["neighbours", "peers-8", "peers-64", "all-to-all", "hub"], ["us"]),
    ("Attaching", ["attach-1", "attach-64"], ["us"]),
    ("Barrier and allreduce of 8 bytes",
     ["team-barrier-1", "team-allreduce-64", "barrier-64", "allreduce-8-64"],
     ["us", "us_by_rank"]),
    ("Allreduce of 1 MiB, alltoall of 8 bytes",
     ["allreduce-1m-1", "allreduce-1m-64", "alltoall-1", "alltoall-64"], ["us", "us_by_rank"]),
    ("Messages", ["neighbours", "peers-64", "all-to-all", "barrier-64", "alltoall-64"],
     ["messages_a_node", "messages_a_node_by_rank"]),
    ("Memory of a node", ["neighbours", "peers-64", "all-to-all", "memory-16384", "team-barrier-64"],
     ["kib_a_node", "kib_linked"]),
]
UNITS = {"us": "us", "messages_a_node": "messages a node", "kib_a_node": "KiB"}


def series(facts, row, figure):
    """{nodes: value} of a figure; empty: the row does not have this figure."""
    return {run["nodes"]: run[figure] for run in facts["figures"]
            if run["row"] == row and figure in run}


def exponent(values):
    """The exponent of the growth between the two greatest numbers of nodes; None: it cannot be computed."""
    if len(values) < 2 or 0 in values.values():
        return None
    (few, before), (many, after) = sorted(values.items())[-2:]
    return math.log(after / before) / math.log(many / few)


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(facts, title):
    counts = sorted({run["nodes"] for run in facts["figures"]})
    lines = [f"| {title} | " + " | ".join(f"{n:,}" for n in counts) + " | grows by |",
             "|---" * (len(counts) + 2) + "|"]
    for row, words in facts["words"].items():
        for _, figure, more in (shown for shown in SHOWN if shown[0] == title):
            values = series(facts, row, figure)
            if not values:
                continue
            power = exponent(values)
            cells = [number(values[n]) if n in values else "" for n in counts]
            lines.append(f"| {words}{more} | " + " | ".join(cells) +
                         f" | {'' if power is None else f'N^{power:.2f}'} |")
    return "\n".join(lines)


def markdown(facts):
    tables = [table(facts, title) for title in (TIME, MESSAGES, MEMORY)]
    return "\n\n".join([*tables, f"    {facts['command']}",
                        f"{facts['date']}, commit {facts['commit']}; {facts['seconds']:.0f} s, "
                        f"{facts['gib']:.1f} GiB."])


def too_fast(facts):
    """A line of text for each figure that grows faster than it may, with MANY nodes or more."""
    found = []
    for row in facts["words"]:
        for _, figure, _ in SHOWN:
            values = series(facts, row, figure)
            if figure in FREE or min(sorted(values)[-2:], default=0) < MANY:
                continue
            power = exponent(values)
            if power is not None and power > MAY_GROW[row]:
                found.append(f"{row}: {figure} grows by N^{power:.2f}, at most N^{MAY_GROW[row]}")
    return found


def draw(axis, facts, panel):
    title, rows, figures = panel
    for place, row in enumerate(rows):
        for figure in figures:
            values = series(facts, row, figure)
            if values:
                by_rank = figure.endswith("_by_rank")
                axis.plot(list(values), list(values.values()), marker="o", markersize=3,
                          color=f"C{place}", linestyle="--" if by_rank else "-",
                          label=row + (", rank by rank" if by_rank else ""))
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.set_title(title, fontsize=10)
    axis.set_xlabel("nodes", fontsize=8)
    axis.set_ylabel(UNITS[figures[0]], fontsize=8)
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=6, framealpha=0.5)


def plot(facts, path):
    """Draws the plot. False: matplotlib is missing."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    chart, axes = pyplot.subplots(3, 2, figsize=(13, 12))
    for axis, panel in zip((axis for pair in axes for axis in pair), PANELS):
        draw(axis, facts, panel)
    chart.suptitle(f"{facts['command']}, {facts['date']}, {facts['commit']}", fontsize=9)
    chart.tight_layout()
    chart.savefig(path, dpi=80)
    pyplot.close(chart)
    return True

"""The PNG of bench/handlers: a panel for each use, two bars for each row."""
import re

CLIENT, HANDLERS = "tab:blue", "tab:orange"
PANELS = ["ping-pong", "a key's value", "rendezvous", "product", "broadcast", "4 MiB to blocks", "RAID-5"]
COLUMNS = 2


def panel_of(name):
    """The panel of a row: the row's name contains the panel's."""
    return next((panel for panel in PANELS if panel in name), "others")


def paper_ratio(words):
    """The number at the beginning of the paper's column, or None if there is none."""
    found = re.match(r"\d+(\.\d+)?", words)
    return float(found.group()) if found else None


def draw(axis, panel, rows, colors):
    """Draws a panel. The axis grows upwards, so rows are drawn in reverse order."""
    labels = []
    for place, (row, found) in enumerate(reversed(rows)):
        axis.barh(place + 0.2, found.theirs, 0.38, color=colors[0])
        axis.barh(place - 0.2, found.ours, 0.38, color=colors[1])
        axis.text(max(found.ours, found.theirs), place, f"  {found.ratio:.3g}", va="center", fontsize=7)
        if row.bound is not None:
            most = row.bound if row.absolute else row.bound * found.theirs
            axis.plot([most, most], [place - 0.4, place], color="tab:red", linewidth=1.5)
        paper = paper_ratio(row.paper)
        if paper is not None:
            axis.plot(paper * found.theirs, place - 0.2, marker="D", color="k", markersize=4)
        labels.append(row.name)
    axis.set_yticks(range(len(labels)), labels, fontsize=7)
    axis.set_xscale("log")
    axis.set_xlabel("us, less is better", fontsize=8)
    axis.set_title(panel, fontsize=9)
    axis.margins(x=0.15)
    axis.grid(True, axis="x", alpha=0.3)


def panels(summaries):
    """[(panel, [(row, summary)])] of the measured rows, in the order of PANELS."""
    shown = {}
    for row, found in summaries:
        if found:
            shown.setdefault(panel_of(row.name), []).append((row, found))
    return [(panel, shown[panel]) for panel in [*PANELS, "others"] if panel in shown]


def plot(facts, summaries, path):
    """Draws the plot. False: matplotlib is missing, or there is nothing to draw."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import patches, pyplot
    shown = panels(summaries)
    if not shown:
        return False
    lines = (len(shown) + COLUMNS - 1) // COLUMNS
    most = max(len(rows) for _, rows in shown)
    height = (1.2 + 0.35 * most) * lines + 0.8
    chart, axes = pyplot.subplots(lines, COLUMNS, figsize=(16, height), squeeze=False)
    flat = [axis for pair in axes for axis in pair]
    for axis, (panel, rows) in zip(flat, shown):
        draw(axis, panel, rows, (CLIENT, HANDLERS))
    for axis in flat[len(shown):]:
        axis.set_visible(False)
    keys = [patches.Patch(color=CLIENT, label="client, or the other side"),
            patches.Patch(color=HANDLERS, label="handlers; beside the bars: the ratio"),
            pyplot.Line2D([], [], color="tab:red", label="the bound of the handlers' time"),
            pyplot.Line2D([], [], color="k", marker="D", linestyle="", markersize=4,
                          label="the client's time by the paper's ratio")]
    chart.legend(handles=keys, loc="lower center", ncol=4, fontsize=8)
    chart.suptitle(f"bench/handlers, {facts['date']}, {facts['commit']}; {facts['machine']}", fontsize=9)
    chart.tight_layout(rect=(0, 0.5 / height, 1, 1 - 0.1 / height))
    chart.savefig(path, dpi=80)
    pyplot.close(chart)
    return True

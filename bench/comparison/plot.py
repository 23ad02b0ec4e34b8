"""The PNG: in each row a bar for each side, with the median, the least and the most."""
from .row import CITED, LIMIT, OURS, PEER, ROWS
from .table import number, order

COLORS = {LIMIT: "0.7", PEER: "tab:blue", OURS: "tab:orange", CITED: "tab:gray"}
COLUMNS = 2


def bars(row, sides, figures):
    """(name, kind, median, least, most) of each bar, the best last: bars are drawn from below."""
    found = []
    for side in order(row, figures, [s for s in sides if s.row == row.name]):
        figure = figures.of(row.name, side.name)
        if figure:
            found.append((side.name, side.kind, figure.median, figure.least, figure.most))
        elif side.kind == CITED:
            found.append((f"{side.name} (cited)", side.kind, side.cited, side.cited, side.cited))
    return found[::-1]


def draw(axis, row, shown):
    places = range(len(shown))
    middles = [bar[2] for bar in shown]
    spread = [[bar[2] - bar[3] for bar in shown], [bar[4] - bar[2] for bar in shown]]
    axis.barh(places, middles, xerr=spread, color=[COLORS[bar[1]] for bar in shown],
              error_kw={"elinewidth": 1, "capsize": 2, "ecolor": "0.3"})
    axis.set_yticks(list(places), [bar[0] for bar in shown], fontsize=8)
    axis.set_xscale("log")
    axis.set_xlabel(f"{row.unit}, {'less' if row.lower_is_better else 'more'} is better", fontsize=8)
    axis.set_title(row.title, fontsize=9)
    for place, bar in zip(places, shown):
        axis.text(bar[4], place, f"  {number(bar[2])}", va="center", fontsize=7)
    axis.margins(x=0.15)
    axis.grid(True, axis="x", alpha=0.3)


def plot(facts, sides, figures, path):
    """Draws the plot. False: matplotlib is missing, or there is nothing to draw."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    shown = [(row, bars(row, sides, figures)) for row in ROWS]
    shown = [(row, found) for row, found in shown if found]
    if not shown:
        return False
    lines = (len(shown) + COLUMNS - 1) // COLUMNS
    chart, axes = pyplot.subplots(lines, COLUMNS, figsize=(15, 3.4 * lines), squeeze=False)
    flat = [axis for pair in axes for axis in pair]
    for axis, (row, found) in zip(flat, shown):
        draw(axis, row, found)
    for axis in flat[len(shown):]:
        axis.set_visible(False)
    chart.suptitle(f"{facts['date']}, {facts['commit']}", fontsize=9)
    chart.tight_layout()
    chart.savefig(path, dpi=80)
    pyplot.close(chart)
    return True

"""The table and the plot of bench/applications: one column for each side, one line for each row."""
from . import mpi
from .applications import (APPS, BOUNDS, CASES, OUR_BLOCKING, OUR_NAME, PLACES, WAYS,
                           verdicts)
from .table import number, table

COLORS = {"send": "tab:blue", "ring": "tab:green", "fence": "tab:red", "pscw": "tab:purple",
          "reduce": "tab:brown", "blocking": "tab:blue", "overlapped": "tab:green"}


def head(facts):
    kept, discarded = len(facts["kept"]), len(facts["discarded"])
    return [f"{facts['date']}, commit {facts['commit']}; {facts['machine']}; "
            f"{', '.join(facts['versions']) or 'no peers'}.", "", f"    {facts['command']}", "",
            f"{kept} repetitions kept, {discarded} discarded because the machine's state changed on "
            "the way. Medians; ratios are taken within each repetition.", ""]


def columns(app, figures):
    """Names of the sides with a figure in a row of the application: ours, then by way."""
    wanted = [OUR_NAME, OUR_BLOCKING] + [f"{name} {way}" for way in WAYS[app] for name in mpi.NAMES.values()]
    return [name for name in wanted
            if any(figures.of(case.name, name) for case in CASES if case.app == app)]


def cell(case, figures, name):
    found = figures.of(case.name, name)
    return number(found.median) if found else "-"


def app_table(app, figures):
    cases = [case for case in CASES if case.app == app and figures.states(case.name)]
    if not cases:
        return []
    names = columns(app, figures)
    lines = [f"### {app.capitalize()}", "",
             f"{cases[0].unit}, {'less' if cases[0].lower_is_better else 'more'} is better.", ""]
    return lines + table(
        ["", *names, "repetitions"],
        [[f"{PLACES[case.place]}, {case.title}", *(cell(case, figures, name) for name in names),
          " and ".join(f"{count} {state}" for state, count in figures.states(case.name).items())]
         for case in cases])


def bounds_table(figures):
    rows = [[case.name, f"{'<=' if case.lower_is_better else '>='} {bound.factor:g} x the best of "
             + ", ".join(bound.ways), other, f"{number(measured.least)} to {number(measured.most)}",
             number(measured.median), "yes" if met else "**no**"]
            for case, bound, measured, other, met in verdicts(figures)]
    return ["### Bounds", ""] + table(["row", "pwcd", "that is", "from, to", "median", "met"], rows)


def markdown(facts, figures):
    lines = head(facts) + (bounds_table(figures) if BOUNDS else [])
    for app in APPS:
        lines += app_table(app, figures)
    for key, why in facts["failures"].items():
        lines.append(f"- {key}: {why}")
    return "\n".join(lines)


def draw(axis, app, place, figures):
    """Draws one line for each side over the sizes. False: nothing was measured."""
    cases = [case for case in CASES if (case.app, case.place) == (app, place)]
    drawn = False
    for name in columns(app, figures):
        found = [(case, figures.of(case.name, name)) for case in cases]
        found = [(case, figure) for case, figure in found if figure]
        if not found:
            continue
        drawn = True
        ours, way = name == OUR_NAME, name.split()[-1]
        middles = [figure.median for _, figure in found]
        axis.errorbar([case.along for case, _ in found], middles,
                      yerr=[[figure.median - figure.least for _, figure in found],
                            [figure.most - figure.median for _, figure in found]],
                      label=name, color="tab:orange" if ours else COLORS[way], capsize=2,
                      linestyle="-" if ours or name.startswith("Open") else "--", marker="o",
                      markersize=4, linewidth=2.5 if ours else 1.2)
    if drawn:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set_xticks([case.along for case in cases], [case.title for case in cases], fontsize=8)
        axis.minorticks_off()
        axis.set_title(f"{app.capitalize()}, {PLACES[place].lower()}", fontsize=10)
        axis.set_ylabel(f"{cases[0].unit}, {'less' if cases[0].lower_is_better else 'more'} is better",
                        fontsize=8)
        axis.grid(True, alpha=0.3)
        axis.legend(fontsize=7)
    return drawn


def plot(facts, figures, path):
    """Draws the plot. False: matplotlib is missing, or there is nothing to draw."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot
    shown = list(dict.fromkeys((case.app, case.place) for case in CASES if figures.states(case.name)))
    if not shown:
        return False
    lines = (len(shown) + 1) // 2
    chart, axes = pyplot.subplots(lines, 2, figsize=(13, 4 * lines), squeeze=False)
    flat = [axis for pair in axes for axis in pair]
    for axis, (app, place) in zip(flat, shown):
        draw(axis, app, place, figures)
    for axis in flat[len(shown):]:
        axis.set_visible(False)
    chart.suptitle(f"{facts['date']}, {facts['commit']}", fontsize=9)
    chart.tight_layout()
    chart.savefig(path, dpi=80)
    pyplot.close(chart)
    return True

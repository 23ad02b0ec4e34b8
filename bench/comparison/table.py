"""The Markdown: machine and command, bounds, rows where pwcd is behind, and a table for each row."""
from .row import CITED, LIMIT, OURS, PEER, ROWS


def number(value):
    """Formats a number with about three significant digits."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(cells) + " |" for cells in rows] + [""]


def worse(row, ratio):
    return ratio > 1 if row.lower_is_better else ratio < 1


def head(facts):
    lines = [f"{facts['date']}, commit {facts['commit']}; {facts['machine']}; "
             f"{', '.join(facts['versions']) or 'no peers'}.", "", f"    {facts['command']}", ""]
    kept, discarded = len(facts["kept"]), len(facts["discarded"])
    busy = sum(1 for r in facts["kept"] if r["others"] > 0)
    spoiled = sum(r["spoiled"] for r in facts["kept"])
    lines += [f"{kept} repetitions kept, {discarded} discarded because the machine's state changed "
              f"on the way, and {spoiled} single measurements made again because it did so for a "
              f"moment; besides {busy} of those kept something else was running (load "
              f"{facts['load']:.1f} at the start). Medians, least to most; ratios are taken within "
              "each repetition.", ""]
    return lines


def bounds_table(verdicts):
    words = {True: "yes", False: "**no**", None: "not judged"}
    return ["### Bounds", ""] + table(
        ["row", "pwcd's", "measured", "met", ""],
        [[v.row, v.text, "-" if v.measured is None else number(v.measured), words[v.met], v.remark]
         for v in verdicts])


def behind(sides, figures):
    """Each peer that does better than our put, and by how much."""
    lines = []
    for row in ROWS:
        found = []
        for side in (s for s in sides if s.row == row.name and s.kind == PEER):
            ratio = figures.ratio(row.name, row.ours, side.name)
            if ratio and worse(row, ratio.median):
                factor = ratio.median if row.lower_is_better else 1 / ratio.median
                found.append((factor, side.name))
        if found:
            lines.append(f"- {row.name}: " + ", ".join(
                f"{name} {factor:.3g} times better" for factor, name in sorted(found, reverse=True)))
    return ["### Where pwcd is behind", ""] + (lines or ["Nowhere in this run."]) + [""]


def order(row, figures, sides):
    """The order of sides: limits, then the measured ones from best to worst, then the others."""
    def place(side):
        found = figures.of(row.name, side.name)
        value = found.median if found else side.cited
        rank = 0 if side.kind == LIMIT else 1 if value else 2
        return rank, value if row.lower_is_better else -value
    return sorted(sides, key=place)


def line(row, side, figures):
    name = f"**{side.name}**" if side.kind == OURS else side.name
    if side.kind == CITED:
        return [name, f"{side.how}; cited, not of this run", number(side.cited), "", ""]
    found = figures.of(row.name, side.name)
    if not found:
        return [name, side.how, "-", f"not measured: {side.skip or 'no repetition was kept'}", ""]
    against = ""
    ratio = figures.ratio(row.name, row.ours, side.name)
    if ratio and side.name != row.ours:
        against = f"{ratio.median:.2f}"
        if side.kind == PEER and worse(row, ratio.median):
            against = f"**{against}**"
    return [name, side.how, number(found.median),
            f"{number(found.least)} to {number(found.most)}", against]


def row_tables(sides, figures):
    lines = []
    for row in ROWS:
        asked = [side for side in sides if side.row == row.name]
        if not asked:
            continue
        counts = figures.states(row.name)
        states = ", ".join(f"{count} with cores {state}" for state, count in sorted(counts.items()))
        lines += [f"### {row.title}", "",
                  f"`{row.name}`, {row.unit}, "
                  f"{'less' if row.lower_is_better else 'more'} is better; repetitions: "
                  f"{states or 'none'}"
                  + (f", of which those with cores {figures.state(row.name)} are shown"
                     if len(counts) > 1 else "") + ".", ""]
        lines += table(["", "what it does", row.unit, "least to most", f"{row.ours} / it"],
                       [line(row, side, figures) for side in order(row, figures, asked)])
    return lines


def markdown(facts, sides, figures, verdicts):
    text = head(facts) + bounds_table(verdicts) + behind(sides, figures)
    return "\n".join(text + row_tables(sides, figures))

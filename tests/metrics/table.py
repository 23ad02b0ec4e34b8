"""The table of docs/metrics.md: | `metric` | type | labels | what it says |"""
import re
import sys

ROW = re.compile(r"\| `(pwcd_\w+)` \| (\w+) \| (.*?) \| (.*) \|\Z")


def read(page):
    """Reads the page's table: {name of a sample: (type, labels, help)}."""
    with open(page, encoding="utf-8") as lines:
        rows = [ROW.match(line.rstrip("\n")) for line in lines]
    return {row.group(1): (row.group(2), tuple(re.findall(r"`(\w+)`", row.group(3))), row.group(4))
            for row in rows if row}


def rows_of(families):
    """The same rows, made from the metrics that a daemon exposes."""
    suffix = {"counter": "_total", "info": "_info"}
    return {family.name + suffix.get(family.type, ""):
            (family.type,
             tuple(sorted({name for _, labels in family.samples for name, _ in labels} - {"le"})),
             family.help)
            for family in families.values()}


def compare(families, page):
    said, written = rows_of(families), read(page)
    wrong = sorted(f"{name}: {said.get(name)} of the daemon, {written.get(name)} of the table"
                   for name in said.keys() | written.keys()
                   if name not in said or name not in written or
                   (said[name][0], set(said[name][1]), said[name][2]) !=
                   (written[name][0], set(written[name][1]), written[name][2]))
    if wrong:
        sys.exit(f"{page} is not what the daemon says:\n" + "\n".join(wrong))

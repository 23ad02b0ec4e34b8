"""A strict reader of OpenMetrics text: everything that the format forbids is an error, with its line."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|\Z)')
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\Z")
SUFFIXES = {"gauge": [""], "counter": ["_total", "_created"], "info": ["_info"],
            "histogram": ["_bucket", "_sum", "_count", "_created"], "unknown": [""]}


class FormatError(Exception):
    pass


class Family:
    def __init__(self, name):
        self.name = name
        self.type = self.unit = self.help = None
        self.samples = {}  # (name, labels) -> value, in the order of the text


def read_labels(text):
    labels, at = [], 0
    while at < len(text):
        match = LABEL.match(text, at)
        if not match or (match.group(3) == "," and match.end() == len(text)):
            raise FormatError(f"labels {{{text}}}")
        labels.append((match.group(1), match.group(2)))
        at = match.end()
    if len({name for name, _ in labels}) != len(labels):
        raise FormatError(f"a label twice: {{{text}}}")
    return tuple(sorted(labels))


def read_number(text):
    if text in ("+Inf", "-Inf", "NaN"):
        return float(text)
    if not NUMBER.match(text):
        raise FormatError(f"{text} is no number")
    return float(text)


def describe(family, word, text):
    if family.samples:
        raise FormatError(f"{word} behind samples")
    if getattr(family, word.lower()) is not None:
        raise FormatError(f"{word} twice")
    if word == "TYPE" and text not in SUFFIXES:
        raise FormatError(f"type {text}")
    if word == "UNIT" and text and not family.name.endswith("_" + text):
        raise FormatError(f"the name does not end with its unit, {text}")
    if word == "HELP" and re.search(r"\\[^\\\"n]|\\\Z", text):
        raise FormatError("an escape that is none")
    setattr(family, word.lower(), text)


def add_sample(family, name, labels, value):
    suffixes = SUFFIXES[family.type or "unknown"]
    if not any(name == family.name + suffix for suffix in suffixes):
        raise FormatError(f"{name} is no sample of {family.name}, a {family.type}")
    if (name, labels) in family.samples:
        raise FormatError(f"{name}{dict(labels)} twice")
    if family.type in ("counter", "histogram") and not (0 <= value < float("inf")):
        raise FormatError(f"{name} is {value}")
    if family.type == "info" and value != 1:
        raise FormatError(f"{name} is {value}, not 1")
    family.samples[name, labels] = value


def check_histogram(family):
    groups = {}
    for (name, labels), value in family.samples.items():
        rest = tuple(label for label in labels if label[0] != "le")
        group = groups.setdefault(rest, {"bounds": []})
        if name.endswith("_bucket"):
            if "le" not in dict(labels):
                raise FormatError(f"{name} without le")
            group["bounds"].append((read_number(dict(labels)["le"]), value))
        else:
            group[name[len(family.name):]] = value
    for rest, group in groups.items():
        bounds = group["bounds"]
        if bounds != sorted(bounds) or len({bound for bound, _ in bounds}) != len(bounds) or \
           [count for _, count in bounds] != sorted(count for _, count in bounds):
            raise FormatError(f"{family.name}{dict(rest)}: buckets do not grow")
        if not bounds or bounds[-1][0] != float("inf") or "_sum" not in group or \
           bounds[-1][1] != group.get("_count"):
            raise FormatError(f"{family.name}{dict(rest)}: +Inf, _count and _sum do not fit")


def check_family(family):
    if family.type is None or not family.help:
        raise FormatError(f"{family.name} without type or help")
    if family.type == "histogram":
        check_histogram(family)


def read(text):
    """Returns the families by name. A FormatError names the error and its line."""
    families, current = {}, None
    lines = text.split("\n")
    if text[-6:] != "# EOF\n" or lines.count("# EOF") != 1:
        raise FormatError("the end is not one line # EOF")
    for number, line in enumerate(lines[:-2], 1):
        try:
            word = re.match(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)\Z", line)
            sample = SAMPLE.match(line)
            if word:
                if current is None or current.name != word.group(2):
                    if word.group(2) in families:
                        raise FormatError(f"{word.group(2)} comes again")
                    current = families[word.group(2)] = Family(word.group(2))
                describe(current, word.group(1), word.group(3))
            elif sample and current:
                add_sample(current, sample.group(1), read_labels(sample.group(2) or ""),
                           read_number(sample.group(3)))
            else:
                raise FormatError(f"neither a sample nor a word about one: {line[:80]!r}")
        except FormatError as error:
            raise FormatError(f"line {number}: {error}") from None
    taken = {}
    for family in families.values():
        check_family(family)
        for suffix in SUFFIXES[family.type]:
            other = taken.setdefault(family.name + suffix, family.name)
            if other != family.name:
                raise FormatError(f"{family.name} and {other} have samples of one name")
    return families

"""The applications: over pwcd in examples/apps, over MPI in bench/apps, with the same computations."""
import os
from dataclasses import dataclass

from . import mpi, process
from .row import OURS, Side
from .setting import CPUS, NODE, TCP

PROVIDER = "stream"
OUR_NAME = "pwcd"
OUR_BLOCKING = "pwcd blocking"
STENCIL, TREE, CHOLESKY, CONJUGATE = "stencil", "tree", "cholesky", "conjugate"
PARTS = {STENCIL: "grid.c", TREE: "sums.c", CHOLESKY: "tiles.c", CONJUGATE: "poisson.c"}  # of examples/apps
APPS = tuple(PARTS)
PLACES = {TCP: "Two nodes, TCP", NODE: "One node"}
WAYS = {STENCIL: ("send", "fence", "pscw"), TREE: ("send", "fence", "pscw", "reduce"),
        CHOLESKY: ("send", "ring", "fence", "pscw"), CONJUGATE: ("blocking", "overlapped")}
PUTS = ("ring", "fence", "pscw")


@dataclass(frozen=True)
class Case:
    """A row: an application at a place with a size; `title` says the size in words."""
    app: str
    place: str
    ranks: int
    size: int
    title: str
    unit: str
    key: str
    scale: float
    lower_is_better: bool = False

    @property
    def along(self):
        """The number in which an application's rows differ: ranks, or the size."""
        return self.ranks if self.app == TREE else self.size

    @property
    def name(self):
        return f"{self.app}.{self.place}.{self.along}"


@dataclass(frozen=True)
class Bound:
    """Our figure must keep to `factor` times the best MPI's that moves data in one of `ways`."""
    app: str
    places: tuple
    sizes: tuple
    factor: float
    ways: tuple


CASES = [
    *(Case(STENCIL, place, 2, size, f"{size} columns a rank", "M rows/s", "rows_per_s", 1e-6)
      for place in (TCP, NODE) for size in (64, 320, 1280)),
    *(Case(TREE, NODE, ranks, 1, f"{ranks} ranks", "us a round", "round_us", 1, True)
      for ranks in (17, 33)),
    *(Case(CHOLESKY, place, 2, size, f"{size} x {size} tiles", "Gflop/s", "gflops", 1)
      for place in (TCP, NODE) for size in (4, 8, 16)),
    *(Case(CONJUGATE, place, 2, size, f"{size} x {size} cells", "iterations/s", "iterations_per_s", 1)
      for place in (TCP, NODE) for size in (64, 256)),
]

BOUNDS = [
    Bound(STENCIL, (TCP,), (64,), 2.17, ("send",)),
    Bound(STENCIL, (TCP,), (1280,), 1.2, ("send",)),
    Bound(STENCIL, (NODE,), (64,), 1.2, ("send",)),
    Bound(STENCIL, (NODE,), (320, 1280), 1.0, ("send",)),
    Bound(STENCIL, (TCP, NODE), (64,), 2.17, PUTS),
    Bound(TREE, (NODE,), (1,), 0.8, ("send",)),
    Bound(TREE, (NODE,), (1,), 1.0, ("reduce",)),
    Bound(CHOLESKY, (TCP, NODE), (4, 8, 16), 1.2, ("send",)),
    Bound(CHOLESKY, (TCP, NODE), (4, 8, 16), 1.5, PUTS),
]

# Rounds, chosen so that a run takes about half a second. MPICH's ranks never yield a processor, so
# a tree of more ranks than processors takes MPICH a thousand times as long.
ROUNDS = {
    (STENCIL, TCP): {"send": 60, "fence": 6, "pscw": 10, OUR_NAME: 200},
    (STENCIL, NODE): {"send": 400, "fence": 150, "pscw": 200, OUR_NAME: 400},
    (TREE, NODE): {"send": 4000, "fence": 1000, "pscw": 4000, "reduce": 4000, OUR_NAME: 4000},
    (CHOLESKY, TCP): {"send": 80, "ring": 20, "fence": 80, "pscw": 80, OUR_NAME: 200},
    (CHOLESKY, NODE): {"send": 400, "ring": 200, "fence": 200, "pscw": 200, OUR_NAME: 400},
    (CONJUGATE, TCP): {"blocking": 20, "overlapped": 20, OUR_NAME: 20},
    (CONJUGATE, NODE): {"blocking": 40, "overlapped": 40, OUR_NAME: 40},
}
MPICH_TREE = {"send": 10, "pscw": 5, "reduce": 5}


def rounds(case, way, which=""):
    if (which, case.app) == ("mpich", TREE):
        return MPICH_TREE.get(way, 0)
    count = ROUNDS[case.app, case.place].get(way, 0)
    large = {CHOLESKY: 16, CONJUGATE: 256}.get(case.app)
    return max(count // 4, 4) if count and large and case.size >= large else count


def commands(bench, out):
    """Yields the compiler and the command for each program over MPI; -O3, as meson builds ours."""
    shared = os.path.join(os.path.dirname(bench), "examples", "apps")
    for which in mpi.NAMES:
        compiler = f"mpicc.{which}"
        for app, part in PARTS.items():
            yield (compiler, [compiler, "-D_GNU_SOURCE", "-std=gnu11", "-O3", "-w",
                              "-I" + os.path.dirname(bench), "-o", os.path.join(out, f"{app}.{which}"),
                              os.path.join(bench, "apps", f"{app}.c"),
                              os.path.join(bench, "apps", "ranks.c"),
                              os.path.join(bench, "mpi", "ranks.c"),
                              os.path.join(shared, part), os.path.join(shared, "app.c"), "-lm"])


def options(setting, case, count):
    return ["--size", str(case.size), "--rounds", str(max(int(setting.count(count)), 2))]


def launcher(which, ranks):
    """The launcher's words. With more ranks than processors the ranks yield, if the MPI can."""
    words = [*mpi.LAUNCHER[which][:-1], str(ranks)]
    if ranks > 2 and which == "openmpi":
        words[words.index("mpi_yield_when_idle") + 1] = "1"
    return words


def peer(setting, case, which, way):
    path = setting.program(f"{case.app}.{which}")
    command = [*launcher(which, case.ranks), *mpi.LAUNCH[which, case.place], path, way, "--cpu", CPUS,
               *options(setting, case, rounds(case, way, which))]
    return Side(case.name, f"{mpi.NAMES[which]} {way}", way,
                command=process.shown(command, hide=setting.hidden),
                skip="" if os.path.exists(path) else f"{case.app}.{which} is not built",
                measure=lambda: process.json_field(process.run(command), case.key) * case.scale)


def ours(setting, case, name=OUR_NAME):
    path = setting.ours("examples", case.app)
    command = [setting.ours("tools", "pwcrun", "pwcrun"), "--bind", "none", "--daemon", setting.ours("daemon", "pwcd"),
               "--provider", PROVIDER, "-n", str(case.ranks)]
    # Two nodes: each daemon shares a processor with its rank.
    command += ["--nodes", "2", "--pin", "--", path] if case.place == TCP else [
        "--nodes", "1", "--", path, "--cpu", CPUS]
    command += [*name.split()[1:], *options(setting, case, rounds(case, OUR_NAME))]
    return Side(case.name, name, "", OURS, process.shown(command, hide=setting.hidden),
                skip="" if os.path.exists(path) else f"{path} is not built",
                measure=lambda: process.json_field(process.run(command), case.key) * case.scale)


def sides(setting):
    for case in CASES:
        yield ours(setting, case)
        if case.app == CONJUGATE:
            yield ours(setting, case, OUR_BLOCKING)
        for which in mpi.NAMES:
            for way in WAYS[case.app]:
                if rounds(case, way, which):
                    yield peer(setting, case, which, way)


# ---- figures for the table and the plot --------------------------------------------------------


def better(case, one, other):
    return one < other if case.lower_is_better else one > other


def hardest(case, figures, ways):
    """The ratio of our figure to the best other side's in one of `ways`, and this side's name."""
    found = []
    for name in mpi.NAMES.values():
        for way in ways:
            ratio = figures.ratio(case.name, OUR_NAME, f"{name} {way}")
            if ratio:
                found.append((ratio, f"{name} {way}"))
    if not found:
        return None, ""
    pick = max if case.lower_is_better else min
    return pick(found, key=lambda pair: pair[0].median)


def verdicts(figures):
    """Yields (case, bound, ratio, other side, met) for each bound of each row that was measured."""
    for case in CASES:
        for bound in BOUNDS:
            if (bound.app != case.app or case.place not in bound.places
                    or case.size not in bound.sizes):
                continue
            measured, other = hardest(case, figures, bound.ways)
            if measured:
                met = not better(case, bound.factor, measured.median)
                yield case, bound, measured, other, met

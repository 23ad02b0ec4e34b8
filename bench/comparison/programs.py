"""The small programs that users of other libraries must write, built by these libraries' compilers."""
import os
import shutil
import subprocess

FLAGS = ["-D_GNU_SOURCE", "-std=gnu11", "-O2"]


def commands(source, out):
    """Yields the compiler and the command for each program."""
    mpi = os.path.join(source, "mpi")
    for compiler in ("mpicc.openmpi", "mpicc.mpich"):
        for name in ("atomics", "one_sided", "two_sided", "vector_put"):
            yield (compiler, [compiler, *FLAGS, "-w", "-I" + os.path.dirname(source), "-o",
                              os.path.join(out, f"{name}.{compiler.split('.')[1]}"),
                              os.path.join(mpi, f"{name}.c"), os.path.join(mpi, "ranks.c")])
        yield (compiler, [compiler, *FLAGS, "-w", "-I" + os.path.dirname(source), "-o",
                          os.path.join(out, f"collective.{compiler.split('.')[1]}"),
                          os.path.join(source, "collective", "measure.c"),
                          os.path.join(source, "collective", "calls_mpi.c")])
    yield ("cc", ["cc", *FLAGS, "-o", os.path.join(out, "put_flag"),
                  os.path.join(source, "ucx", "put_flag.c"), "-lucp", "-lucs"])


def build(source, out, wanted=commands):
    """Builds the programs that can be built. Returns texts that say which could not, and why."""
    os.makedirs(out, exist_ok=True)
    missing = []
    for compiler, command in wanted(source, out):
        name = os.path.basename(command[command.index("-o") + 1])
        if not shutil.which(compiler):
            missing.append(f"{name}: {compiler} is not installed")
            continue
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = (done.stderr.strip().splitlines() or ["nothing said"])[0]
            missing.append(f"{name}: does not build: {said}")
    return missing

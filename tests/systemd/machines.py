"""Machines for tests: Debian with a real systemd, booted in containers, each in a network namespace of
its own on a bridge. Everything that is made has the process's number in its name, and is removed when
the world is closed, except for the root file system, which is kept for the next run.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

BASE = ["systemd", "systemd-sysv", "dbus", "libsystemd0", "iproute2", "passwd"]
BOOT_S = 60


def run(*words, check=True, timeout=600, **options):
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, **options)
    if check and done.returncode != 0:
        raise OSError(f"{' '.join(map(str, words))}: "
                      f"{(done.stderr + done.stdout).strip() or done.returncode}")
    return done


def wait_for(condition, seconds, step=0.02):
    """Returns whether the condition becomes true in time; looks every `step` seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(step)
    return bool(condition())


def packages_of(binaries):
    """The Debian packages that have the libraries of these programs."""
    paths = set()
    for line in run("ldd", *binaries, check=False).stdout.splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == "=>" and words[2].startswith("/"):
            paths |= {words[2], os.path.realpath(words[2])}
    found = set()
    for path in paths:
        for name in (path, "/usr" + path):
            said = run("dpkg-query", "-S", name, check=False).stdout
            found |= {line.split(":")[0] for line in said.splitlines()}
    return sorted(found - {"libc6"})


class Root:
    """The root file system below every machine's own one: made once, and kept."""

    def __init__(self, cache):
        self.path = pathlib.Path(cache) / "systemd-root"
        self.names = self.path / "etc" / "pwcd-trial-packages"

    def open(self, packages):
        have = set(self.names.read_text().split()) if self.names.exists() else set()
        need = have | set(BASE) | set(packages)
        if need == have:
            return 0.0
        began = time.monotonic()
        partial = self.path.with_suffix(f".{os.getpid()}")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        release = dict(line.split("=", 1) for line in
                       pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
        try:
            run("debootstrap", "--variant=minbase", "--include=" + ",".join(sorted(need)),
                release.get("VERSION_CODENAME", "bookworm"), str(partial), timeout=1200)
            (partial / self.names.relative_to(self.path)).write_text("\n".join(sorted(need)))
            shutil.rmtree(self.path, ignore_errors=True)
            partial.rename(self.path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return time.monotonic() - began


class Machine:
    """One booted system."""

    def __init__(self, world, number):
        self.world, self.number = world, number
        self.name = f"{world.stem}-{number}"
        self.address = f"10.77.77.{number + 1}"
        self.folder = world.folder / str(number)
        self.root = self.folder / "root"
        self.process = self.init = None

    def mount(self, below):
        for name in ("root", "upper", "work"):
            (self.folder / name).mkdir(parents=True)
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir={below},upperdir={self.folder}/upper,workdir={self.folder}/work",
            str(self.root))
        (self.root / "etc" / "hostname").write_text(f"n{self.number}\n")
        (self.root / "etc" / "machine-id").write_text("")

    def begin_boot(self):
        with open(self.folder / "console", "w") as console:
            self.process = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "-D", str(self.root), "--boot", "--register=no",
                 "--keep-unit", f"--network-namespace-path=/run/netns/{self.name}",
                 f"--machine={self.name}", "--console=passive"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True)

    def end_boot(self):
        """Waits until the boot has ended. Returns systemd's state, "running" when all is well."""
        children = f"/proc/{self.process.pid}/task/{self.process.pid}/children"

        def booted():
            with open(children) as file:
                self.init = next(iter(file.read().split()), None)
            return self.init and self.ask("systemctl", "is-system-running") in (
                "running", "degraded")
        if not wait_for(booted, BOOT_S, 0.1):
            raise OSError(f"{self.name} does not boot: {self.said()}")
        return self.ask("systemctl", "is-system-running")

    def said(self):
        return (self.folder / "console").read_text(errors="replace")[-2000:]

    def words(self, *words, user=None, **environment):
        """The command line that runs these words inside the machine."""
        inside = [f"{key}={value}" for key, value in environment.items()]
        if user:
            words = ("runuser", "-u", user, "--", "env") + tuple(inside) + words
        elif inside:
            words = ("env",) + tuple(inside) + words
        return ["nsenter", "-t", self.init, "-a", "--"] + list(words)

    def run(self, *words, check=True, timeout=60, **options):
        return run(*self.words(*words, **options), check=check, timeout=timeout)

    def ask(self, *words, **options):
        return self.run(*words, check=False, **options).stdout.strip()

    def start(self, *words, log, **options):
        return subprocess.Popen(self.words(*words, **options), stdin=subprocess.DEVNULL,
                                stdout=log, stderr=log)

    def show(self, unit, key):
        return self.ask("systemctl", "show", "--value", "-p", key, unit)

    def outside(self, pid):
        """The number that a process inside the machine has outside."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                for line in (process / "status").read_text().splitlines():
                    if line.startswith("NSpid:") and line.split()[-1] == str(pid) and \
                            len(line.split()) > 2 and \
                            os.path.samefile(process / "ns" / "pid", f"/proc/{self.init}/ns/pid"):
                        return int(process.name)
            except OSError:
                continue
        raise OSError(f"{self.name}: no process {pid}")

    def power_off(self):
        if self.init:
            self.run("systemctl", "poweroff", check=False, timeout=20)

    def close(self):
        if self.process and self.process.poll() is None:
            for ending in (self.power_off, self.process.terminate, self.process.kill):
                try:
                    ending()
                    self.process.wait(20)
                    break
                except subprocess.TimeoutExpired:
                    continue
        if os.path.ismount(self.root):
            run("umount", str(self.root), check=False)


class World:
    """The machines, and the network between them."""

    def __init__(self, count):
        self.stem = f"pwcd{os.getpid()}"
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="pwcd-trial-"))
        self.machines = [Machine(self, number) for number in range(count)]
        self.made = []

    def open(self, root):
        # A tmpfs of its own: /tmp may be on an overlay, which cannot be the upper layer of another one.
        run("mount", "-t", "tmpfs", "-o", "mode=0755", "pwcd-trial", str(self.folder))
        run("ip", "netns", "add", self.stem)
        self.made.append(self.stem)
        run("ip", "-n", self.stem, "link", "add", "name", "br0", "type", "bridge")
        run("ip", "-n", self.stem, "link", "set", "br0", "up")
        for machine in self.machines:
            run("ip", "netns", "add", machine.name)
            self.made.append(machine.name)
            run("ip", "-n", self.stem, "link", "add", f"v{machine.number}", "type", "veth", "peer",
                "name", "eth0", "netns", machine.name)
            run("ip", "-n", self.stem, "link", "set", f"v{machine.number}", "master", "br0", "up")
            run("ip", "-n", machine.name, "addr", "add", machine.address + "/24", "dev", "eth0")
            for link in ("lo", "eth0"):
                run("ip", "-n", machine.name, "link", "set", link, "up")
            machine.mount(root.path)

    def boot(self):
        for machine in self.machines:
            machine.begin_boot()
        return [machine.end_boot() for machine in self.machines]

    def close(self):
        for machine in self.machines:
            machine.close()
        for name in reversed(self.made):
            run("ip", "netns", "del", name, check=False)
        if os.path.ismount(self.folder) and run("umount", str(self.folder), check=False).returncode:
            run("umount", "--lazy", str(self.folder), check=False)
        self.folder.rmdir()

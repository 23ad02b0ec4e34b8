"""Two daemons on this machine, each a node, and the programs of the siege (scripts/siege)."""
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

START_S, STOP_S, ANSWER_S = 20, 10, 10
SAMPLE_S = 0.05
LAST_LINES = 40  # lines shown of a daemon that does not end well
LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


class Failure(Exception):
    pass


def dies_with_us():
    """Runs in a child before its program: the child dies with the siege, also when that is killed."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def line_of(stream, seconds, what):
    """Reads the next line of a program, within a deadline. The stream is unbuffered."""
    end, text = time.monotonic() + seconds, b""
    while not text.endswith(b"\n"):
        left = end - time.monotonic()
        if left <= 0 or not select.select([stream], [], [], left)[0]:
            raise Failure(f"{what} does not answer within {seconds} s")
        byte = os.read(stream.fileno(), 1)
        if not byte:
            raise Failure(f"{what} has ended")
        text += byte
    return text.decode()


class Daemon:
    def __init__(self, nodes, number):
        self.nodes, self.number = nodes, number
        self.socket = os.path.join(nodes.folder, f"{number}.sock")
        self.peak_kib = self.private_kib = self.first_kib = self.descriptors = 0
        self.process, self.last = None, None

    def start(self):
        reading, writing = os.pipe()
        self.log = open(os.path.join(self.nodes.folder, f"{self.number}.log"), "w+b")
        words = [self.nodes.program, "--config", "none", "--socket", self.socket, "--node", str(self.number),
                 "--nodes", self.nodes.list, "--secret", self.nodes.secret, "--address", "127.0.0.1",
                 "--provider", self.nodes.provider, "--ready-fd", str(writing), *self.nodes.words]
        self.process = subprocess.Popen(self.as_service(words), stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, pass_fds=(writing,), start_new_session=True,
                                        preexec_fn=dies_with_us)
        os.close(writing)
        return reading

    def as_service(self, words):
        """The daemon's user, and the one capability that pwcd.service gives it."""
        if self.nodes.user is None:
            return words
        user, only = str(self.nodes.user), "-all,+linux_immutable"
        return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set", only,
                "--inh-caps", only, "--ambient-caps", only, "--pdeathsig", "KILL", *words]

    def await_ready(self, reading):
        try:
            if not select.select([reading], [], [], START_S)[0] or not os.read(reading, 16):
                raise Failure(f"daemon {self.number} does not come to serve: {self.said()[-400:]}")
        finally:
            os.close(reading)

    def said(self):
        self.log.flush()
        with open(self.log.name, encoding="utf-8", errors="replace") as text:
            return text.read()

    def sample(self):
        """Reads the daemon's memory use from the kernel, and keeps the largest private part."""
        try:
            with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
                fields = dict(line.split(":", 1) for line in status)
            self.peak_kib = int(fields["VmHWM"].split()[0])
            private = int(fields["RssAnon"].split()[0])
            self.private_kib = max(self.private_kib, private)
            self.first_kib = self.first_kib or private
            self.descriptors = max(self.descriptors, len(os.listdir(f"/proc/{self.process.pid}/fd")))
        except (OSError, KeyError):  # the process has ended
            pass

    def ask(self, view):
        """Returns a view, read by pwcctl, or None."""
        try:
            asked = subprocess.run([self.nodes.pwcctl, "--socket", self.socket, "--json", view],
                                   stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_S, check=True)
            return json.loads(asked.stdout)
        except (subprocess.SubprocessError, ValueError):
            return None

    def listeners(self):
        """The addresses at which the daemon listens, as host:port."""
        inodes = set()
        for fd in os.listdir(f"/proc/{self.process.pid}/fd"):
            try:
                target = os.readlink(f"/proc/{self.process.pid}/fd/{fd}")
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        found = []
        with open("/proc/net/tcp", encoding="ascii") as table:
            for row in list(table)[1:]:
                fields = row.split()
                if fields[3] == "0A" and fields[9] in inodes:
                    host, port = fields[1].split(":")
                    address = socket.inet_ntoa(bytes.fromhex(host)[::-1])
                    found.append(f"{address if address != '0.0.0.0' else '127.0.0.1'}:{int(port, 16)}")
        return found

    def stop(self):
        """Stops the daemon. Returns its exit status; None: it had ended before."""
        if self.process is None:
            return 0
        early = self.process.poll()
        if early is None:
            self.process.terminate()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for name in os.listdir("/dev/shm"):
            if name.startswith(f"pwcd-{self.process.pid}."):
                os.unlink(os.path.join("/dev/shm", name))
        self.last = "; ".join(self.said().splitlines()[-LAST_LINES:])
        self.log.close()
        return None if early is not None else self.process.returncode


class Nodes:
    """A folder, a secret and two daemons. `users`: those of (daemon, victim, attacker); None: all ours."""

    def __init__(self, build, provider, users, words):
        self.pwcctl = os.path.join(build, "tools/pwcctl/pwcctl")
        self.provider, self.words = provider, list(words)
        self.user, self.victim_user, self.attacker_user = users or (None, None, None)
        self.daemons, self.over = [], threading.Event()
        self.folder = tempfile.mkdtemp(prefix="pwc-siege.")
        try:
            self.prepare(build, users)
            self.start()
        except BaseException:
            self.close()
            raise

    def prepare(self, build, users):
        # A copy of pwcd, so that the daemons' user can execute it.
        self.program = os.path.join(self.folder, "pwcd")
        shutil.copy2(os.path.join(build, "daemon/pwcd"), self.program)
        self.secret = os.path.join(self.folder, "secret")
        with open(os.open(self.secret, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(os.urandom(64))
        if users:
            self.words += ["--allow-users", f"{self.victim_user},{self.attacker_user}"]
            os.chmod(self.program, 0o755)
            os.chown(self.secret, self.user, self.user)
            os.chown(self.folder, self.user, self.user)
            os.chmod(self.folder, 0o755)
        host = socket.inet_ntoa((0x7FC00000 | os.getpid() & 0x1FFFFF).to_bytes(4, "big"))
        probes = [socket.socket() for _ in range(2)]
        for probe in probes:
            probe.bind((host, 0))
        self.control = [f"{host}:{probe.getsockname()[1]}" for probe in probes]
        for probe in probes:
            probe.close()
        self.list = ",".join(self.control)

    def start(self):
        ready = []
        for number in range(2):
            self.daemons.append(Daemon(self, number))
            ready.append(self.daemons[-1].start())
        for daemon, reading in zip(self.daemons, ready):
            daemon.await_ready(reading)
        self.sampler = threading.Thread(target=self.sample, daemon=True)
        self.sampler.start()

    def sample(self):
        while not self.over.wait(SAMPLE_S):
            for daemon in self.daemons:
                daemon.sample()

    def data_ports(self):
        return [port for daemon in self.daemons for port in daemon.listeners() if port not in self.control]

    def await_calm(self, clients, seconds=ANSWER_S):
        """Waits until the daemons together have at most so many clients. Returns the number of each."""
        end = time.monotonic() + seconds
        while True:
            seen = [(daemon.ask("status") or {}).get("clients") for daemon in self.daemons]
            if None not in seen and sum(seen) <= clients or time.monotonic() > end:
                return seen
            time.sleep(0.05)

    def wrong(self):
        """Returns, as text, what no attacker may cause: a daemon has ended, or has given up a node."""
        found = []
        for daemon in self.daemons:
            if daemon.process.poll() is not None:
                found.append(f"daemon {daemon.number} has ended with {daemon.process.returncode}")
            said = daemon.said()
            if "given up" in said:
                found.append(f"daemon {daemon.number} gave a node up")
        return found

    def close(self):
        """Stops both daemons. Returns, as text, which of them did not end well."""
        self.over.set()
        wrong = []
        for daemon in self.daemons:
            status = daemon.stop()
            if status:
                wrong.append(f"daemon {daemon.number} ends with {status}; its log: {daemon.last}")
        shutil.rmtree(self.folder, ignore_errors=True)
        return wrong


class Program:
    """A program of tests/siege, which gets commands as lines."""

    def __init__(self, words, log):
        self.words = words
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                        start_new_session=True, preexec_fn=dies_with_us, bufsize=0)
        self.name = os.path.basename(words[0])

    def line(self, seconds):
        return line_of(self.process.stdout, seconds, self.name)

    def ask(self, command, seconds):
        try:
            self.process.stdin.write(f"{command}\n".encode())
        except OSError as error:
            raise Failure(f"{self.name} has ended") from error
        return json.loads(self.line(seconds))

    def end(self, seconds=STOP_S):
        """Ends the program's input. Returns its last line."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            said = self.process.stdout.read().decode() if select.select(
                [self.process.stdout], [], [], seconds)[0] else ""
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            said = ""
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()
            self.process.stdout.close()
        return said

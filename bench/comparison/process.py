"""Programs that are run and measured. Each runs in a session of its own, whose processes are ended with
the program. From the first one on SIGTERM is KeyboardInterrupt, as SIGINT is, so that nothing is left behind.
Where an interruption arrives while nobody waits for a program, the end of ours ends it."""
import atexit
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import time

TIMEOUT = 25  # seconds; no program takes 10
INTERRUPTIONS = {signal.SIGTERM, signal.SIGINT}
REAPER, REAPER_S = "pwcrun-reaper", 15  # the process of pwcrun that cleans up after it, and its time
begun = set()  # the processes that neither `stop` nor `finish` has seen end


class Failure(Exception):
    """A program did not give its figure, or ended badly; the text says why."""

    def __init__(self, why, out=""):
        super().__init__(why)
        self.out = out  # the text that the process had printed


def start(command, env=None):
    """Interruptions wait until the process that has begun is in the set."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    former = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True,
                                   env=dict(os.environ, **(env or {})),
                                   preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, former))
        begun.add(process)
        return process
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, former)


def session(leader):
    """The processes of a session. Launchers put ranks into groups of their own, but keep the session."""
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.getsid(int(name)) == leader:
                yield int(name)
        except ProcessLookupError:
            pass


def is_reaper(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as name:
            return name.read().strip() == REAPER
    except OSError:  # the process has ended
        return False


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def await_end(pid, seconds):
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    select.select([ended], [], [], seconds)
    os.close(ended)


def stop(process):
    """Sends SIGTERM first, so that launchers clean up; then kills the whole session, the reapers of pwcrun last:
    namespaces and folders are theirs. May be repeated."""
    if process.poll() is None:
        process.terminate()
        try:
            process.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            pass
    kill([pid for pid in session(process.pid) if not is_reaper(pid)])
    for pid in filter(is_reaper, list(session(process.pid))):
        await_end(pid, REAPER_S)
    kill(list(session(process.pid)))
    process.communicate()
    begun.discard(process)


@atexit.register
def stop_all():
    """A second interruption leaves nothing behind either."""
    signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
    for process in list(begun):
        stop(process)


def finish(process, command, timeout=TIMEOUT):
    """Waits for the program, and returns what it has printed."""
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        stop(process)
        raise Failure(f"{command[0]}: not ended within {timeout} s") from None
    except BaseException:  # the user's interruption
        stop(process)
        raise
    begun.discard(process)
    if process.returncode != 0:
        said = (err.strip() or out.strip() or "nothing said").splitlines()[-1]
        raise Failure(f"{os.path.basename(command[0])}: status {process.returncode}: {said}", out)
    return out


def run(command, env=None, timeout=TIMEOUT):
    return finish(start(command, env), command, timeout)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_listening(process, port, timeout=10):
    """Waits until a process listens on the port. Looks into /proc/net/tcp: a test connection would be
    taken for the client."""
    wanted = f":{port:04X} 00000000:0000 0A"
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with open("/proc/net/tcp", encoding="ascii") as table:
            if wanted in table.read():
                return
        if process.poll() is not None:
            raise Failure(f"the server ended with status {process.returncode} before it listened")
        time.sleep(0.01)
    raise Failure(f"nobody listens on port {port} after {timeout} s")


def json_field(text, key):
    """A number of the last line, which is a JSON object."""
    lines = [line for line in text.splitlines() if line.startswith("{")]
    try:
        return float(json.loads(lines[-1])[key])
    except (IndexError, KeyError, TypeError, ValueError):
        raise Failure(f"no number \"{key}\" in: {text.strip()[-200:]!r}") from None


def shown(command, env=None, hide=None):
    """The command as a user would type it; `hide` maps paths to shorter words."""
    text = " ".join([f"{key}={shlex.quote(value)}" for key, value in (env or {}).items()] +
                    [shlex.quote(word) for word in command])
    for path, word in (hide or {}).items():
        text = text.replace(path, word)
    return text

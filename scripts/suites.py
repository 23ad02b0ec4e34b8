"""Test suites of a build folder: lists their tests, runs a suite, and gives results as rows of text.

A row is "RESULT<tab>FOLDER<tab>SUITE<tab>TEST<tab>WHY" with the result passed, failed or skipped.
"""
import json
import os
import signal
import subprocess

PASSED = {"OK", "EXPECTEDFAIL"}
SKIPPED = {"SKIP"}
WAITING = {"control", "metrics"}
INTERRUPTIONS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def heed_signals():
    """From now on SIGTERM and SIGHUP interrupt as SIGINT does, so run_suites ends its tests: `timeout` makes a
    process group of its own, which no signal for ours reaches. Under nohup SIGHUP stays ignored."""
    for number in INTERRUPTIONS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)


def introspect(build, what):
    listed = subprocess.run(["meson", "introspect", what, build], check=True, capture_output=True,
                            text=True)
    return json.loads(listed.stdout)


def tests_of(build):
    """(suite, name, words of the command) of each test."""
    return [(test["suite"][0].split(":")[-1], test["name"], test["cmd"])
            for test in introspect(build, "--tests")]


def wanted(tests, suite, only):
    return [test for test in tests if test[0] == suite and (not only or test[1] in only)]


def build_needed(build, tests):
    """Builds the programs that the tests' commands name, by a path that begins at the folder or at the
    root, and everything else that the tests depend on."""
    root = os.path.abspath(build)
    listed = introspect(build, "--targets")
    targets = {name for target in listed for name in target["filename"]}
    words = {os.path.join(root, word) for _, _, command in tests for word in command}
    names = {(suite, name) for suite, name, _ in tests}
    depends = {target for test in introspect(build, "--tests") for target in test["depends"]
               if (test["suite"][0].split(":")[-1], test["name"]) in names}
    more = {name for target in listed if target["id"] in depends for name in target["filename"]}
    needed = sorted(os.path.relpath(name, root) for name in words & targets | more)
    subprocess.run(["ninja", "-C", build] + needed, check=True)


def reason_of(text):
    """The reason why a test is skipped: its last line that is not a line of pwcrun."""
    lines = [line.strip() for line in text.splitlines()]
    reasons = [line for line in lines if line and not line.startswith("pwcrun: ")]
    return reasons[-1] if reasons else "no reason given"


def results_of(log, names):
    """(suite, name, passed or failed or skipped, why, text) of each test of these suites that has ended, by
    meson's log."""
    if not os.path.exists(log):
        return []
    with open(log, encoding="utf-8", errors="replace") as lines:
        tests = [json.loads(line) for line in lines if line.strip()]
    results = []
    for test in tests:
        text = (test.get("stdout") or "") + (test.get("stderr") or "")
        word = ("passed" if test["result"] in PASSED else
                "skipped" if test["result"] in SKIPPED else "failed")
        why = reason_of(text) if word == "skipped" else test["result"]
        # "pwcd:suite / name", or "name" where the folder has one suite.
        *where, name = test["name"].split(" / ")
        suite = where[0].split(":")[-1] if where else names[0]
        results.append((suite, name, word, why, text))
    return results


def run_suites(build, names, only, seconds, options=(), quiet=False, environment={}):
    """Runs suites together, or the tests `only` of one; all has to end within so many seconds. Variables of
    the caller go before those of `environment`."""
    base = "testlog-" + "-".join(names)
    log = os.path.join(build, "meson-logs", base + ".json")
    if os.path.exists(log):
        os.remove(log)
    # Tests wait now and then, those of WAITING for half of their time.
    processors = len(os.sched_getaffinity(0))
    processes = str(2 * processors + 3 if WAITING.intersection(names) else processors + 2)
    command = ["timeout", "--signal=INT", "--kill-after=20", str(seconds), "meson", "test", "-C",
               build, "--no-rebuild", "--num-processes", processes,
               *(word for name in names for word in ("--suite", name)),
               "--logbase", base, *options, *only]
    # Interruptions wait until `running` is there: it may have begun before.
    former = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL if quiet else None,
                          env={**environment, **os.environ},
                          preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_SETMASK, former)) as running:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
            running.wait()
        except BaseException: # interrupted: the tests end before we do
            running.send_signal(signal.SIGINT)
            running.wait()
            raise
    return results_of(log, names)

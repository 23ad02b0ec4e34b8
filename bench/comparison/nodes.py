"""Nodes as network namespaces, for MPI: memory within a node, TCP over veth between nodes.

Each node has its own host name, so MPI's launchers and libraries believe that it is another machine.
pwcrun --netns makes such nodes for pwcd. Needs root.
"""
import os
import signal
import subprocess
import tempfile

from . import process

# The launchers call this script in place of rsh. It ignores options of ssh.
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    shift
done
exec ip netns exec "$1" unshare --uts sh -c 'hostname "$0"; exec sh -c "$*"' "$@"
"""
# MPI_Wait polls; with more ranks than processors, a parameter makes it yield between polls.
OPEN_MPI = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca",
            "pml", "ob1", "--mca", "btl", "vader,tcp,self", "--mca", "btl_tcp_if_include", "eth0",
            "--mca", "oob_tcp_if_include", "eth0"]
MPICH = ["mpirun.mpich", "-bind-to", "none", "-launcher", "rsh", "-iface", "eth0", "-env", "UCX_TLS",
         "tcp,self", "-env", "UCX_NET_DEVICES", "eth0"]


def ip(*words):
    process.run(["ip", *words])


class Nodes:
    """So many nodes, which exist inside a block of `with`."""

    def __init__(self, count):
        self.bridge = f"pwcbench-{os.getpid()}-bridge"
        self.names = [f"pwcbench-{os.getpid()}-{node}" for node in range(count)]
        self.folder = None

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        try:
            with open(self.agent, "w", encoding="ascii") as file:
                file.write(AGENT)
            os.chmod(self.agent, 0o755)
            ip("netns", "add", self.bridge)
            ip("-n", self.bridge, "link", "add", "br0", "type", "bridge")
            ip("-n", self.bridge, "link", "set", "br0", "up")
            for node, name in enumerate(self.names):
                ip("netns", "add", name)
                ip("link", "add", "eth0", "netns", name, "type", "veth", "peer", "name", f"n{node}",
                   "netns", self.bridge)
                ip("-n", self.bridge, "link", "set", f"n{node}", "master", "br0", "up")
                ip("-n", name, "addr", "add", f"10.78.0.{node + 1}/16", "dev", "eth0")
                ip("-n", name, "link", "set", "eth0", "up")
                ip("-n", name, "link", "set", "lo", "up")
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *_):
        self.remove()

    @property
    def agent(self):
        return os.path.join(self.folder.name, "agent")

    def leftovers(self):
        """Ends processes that a launcher has left in a node."""
        for name in self.names:
            listed = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True,
                                    check=False)
            for pid in listed.stdout.split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def remove(self):
        self.leftovers()
        for name in (*self.names, self.bridge):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self.folder.cleanup()

    def command(self, library, ranks, idle):
        """The launcher's words before the program; `ranks` are those of a node."""
        if library == "openmpi":
            words = [*OPEN_MPI, "--mca", "plm_rsh_agent", self.agent, "--mca",
                     "mpi_yield_when_idle", "1" if idle else "0", "--host",
                     ",".join(f"{name}:{ranks}" for name in self.names)]
        else:
            words = [*MPICH, "-launcher-exec", self.agent, *(["-env", "MPIR_CVAR_POLLS_BEFORE_YIELD",
                     "1"] if idle else []), "-hosts", ",".join(self.names), "-ppn", str(ranks)]
        first = self.names[0]
        return ["ip", "netns", "exec", first, "unshare", "--uts", "sh", "-c",
                'hostname "$0"; exec "$@"', first, *words, "-n", str(ranks * len(self.names))]

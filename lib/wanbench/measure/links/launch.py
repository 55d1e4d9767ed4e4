"""Start the supervisor of a local lab in its own namespaces, and end it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from wanbench.errors import LabError

from .control import Client

PROGRAM = ("-m", "wanbench.measure.links.lab_supervisor")
_PACKAGES = Path(__file__).parents[3]
_LAST_S = 5.0
_RIGHTS = 1 << 12 | 1 << 21  # CAP_NET_ADMIN and CAP_SYS_ADMIN: capability.h


def is_rootless() -> bool:
    """Whether the other namespaces need a user namespace, for lack of root's rights."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16) & _RIGHTS != _RIGHTS
    return os.geteuid() != 0


def search_path() -> str:
    """Folders to search for programs: the usual ones, and those only in root's PATH."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def unshare_arguments() -> list[str]:
    """The arguments that start a program in new PID, mount and network namespaces; its death ends all in them."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--net", "--mount"]
    return [*command, "--user", "--map-root-user"] if is_rootless() else command


class SupervisorProcess:
    """
    A running supervisor: the first process of a PID namespace that dies with this process.

    `client` sends it requests. Raises LabError if it does not start.
    """

    def __init__(self):
        ours, theirs = socket.socketpair()
        this_process = os.pidfd_open(os.getpid())
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._unshare = subprocess.Popen(
                [*unshare_arguments(), sys.executable, "-P", *PROGRAM, str(theirs.fileno()), str(this_process)],
                pass_fds=(theirs.fileno(), this_process),
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                start_new_session=True,
                env={**os.environ, "PATH": search_path(), "PYTHONPATH": _python_path()},
            )
        except OSError as error:
            ours.close()
            raise LabError(f"the lab's supervisor cannot be started: {error}") from None
        finally:
            theirs.close()
            os.close(this_process)
        self.client = Client(ours)
        try:
            self.ask("hello")
            self.pid = self._find()
        except BaseException:
            self.close()
            raise

    def ask(self, verb: str, **arguments):
        """Send a request and return its result; LabError, with the last output of the supervisor if it is gone."""
        try:
            return self.client.ask(verb, **arguments)
        except LabError as error:
            output = self.last_output()
            raise LabError(f"{error} Its last output: {output}" if output else str(error)) from None

    def entering(self, namespace: int) -> list[str]:
        """
        The arguments to put before a command so that it runs in one of the supervisor's network namespaces.

        Parameters
        ----------
        namespace : int
            Descriptor of the network namespace in the supervisor.
        """
        user = ["--user", "--preserve-credentials"] if is_rootless() else []
        network = f"--net=/proc/{self.pid}/fd/{namespace}"
        return ["nsenter", f"--target={self.pid}", *user, "--pid", "--mount", network, "--root", "--wd", "--"]

    def last_output(self) -> str:
        """The end of the supervisor's output: empty, unless it failed."""
        size = os.fstat(self._printed.fileno()).st_size
        return os.pread(self._printed.fileno(), 2000, max(0, size - 2000)).decode(errors="replace").strip()

    def close(self) -> None:
        """End the supervisor and everything in its namespaces, and wait until it is gone. Safe to call twice."""
        self.client.close()
        try:
            self._unshare.wait(_LAST_S)
        except BaseException as error:
            self._unshare.kill()
            self._unshare.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise

    def _find(self):
        front = self._unshare.pid
        children = Path(f"/proc/{front}/task/{front}/children").read_text().split()
        if not children:
            raise LabError("the lab's supervisor is gone.")
        return int(children[0])


def _python_path():
    given = os.environ.get("PYTHONPATH")
    return os.pathsep.join([str(_PACKAGES), given] if given else [str(_PACKAGES)])

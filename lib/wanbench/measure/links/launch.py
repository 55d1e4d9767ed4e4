"""Start and end the supervisor of a local lab, and find out why it cannot start on this machine."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from wanbench.errors import LabError

from .control import Client

DEAF = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")  # runs a command that ignores SIGINT from its very start
PROGRAM = ("-m", "wanbench.measure.links.lab_supervisor")
_RIGHTS = 1 << 12 | 1 << 21  # CAP_NET_ADMIN and CAP_SYS_ADMIN: capability.h


def is_rootless() -> bool:
    """
    Return whether this process lacks the capabilities to make namespaces, so that it needs a user namespace first.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16) & _RIGHTS != _RIGHTS
    return os.geteuid() != 0


def search_path() -> str:
    """Return PATH, extended by the folders that usually only root's PATH has."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def unshare_arguments() -> list[str]:
    """
    Return the arguments that start a program in new PID, mount and network namespaces; when that program ends, the
    kernel kills all processes in them.
    """
    command = ["unshare", "--pid", "--fork", "--kill-child", "--net", "--mount"]
    return [*command, "--user", "--map-root-user"] if is_rootless() else command


class SupervisorProcess:
    """
    A running supervisor, which ends with this process; `client` sends requests to it. Raise LabError if the supervisor
    does not start.
    """

    def __init__(self):
        ours, theirs = socket.socketpair()
        packages = filter(None, [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH")])
        this_process = os.pidfd_open(os.getpid())
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._unshare = subprocess.Popen(
                [*DEAF, *unshare_arguments(), sys.executable, "-P", *PROGRAM, str(theirs.fileno()), str(this_process)],
                pass_fds=(theirs.fileno(), this_process),
                stdin=subprocess.DEVNULL,
                stdout=self._printed,
                stderr=self._printed,
                start_new_session=True,
                env={**os.environ, "PATH": search_path(), "PYTHONPATH": os.pathsep.join(packages)},
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
            children = Path(f"/proc/{self._unshare.pid}/task/{self._unshare.pid}/children").read_text().split()
            if not children:
                raise LabError("the lab's supervisor has ended.")
            self.pid = int(children[0])
        except BaseException:
            self.close()
            raise

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Send a request and return its result; if it fails, raise LabError with the supervisor's last output."""
        try:
            return self.client.ask(verb, **arguments)
        except LabError as error:
            output = self.last_output()
            raise LabError(f"{error} Its last output: {output}" if output else str(error)) from None

    def entering(self, namespace: int) -> list[str]:
        """
        Return the arguments to put before a command so that the command runs in one of the supervisor's network
        namespaces; `namespace` is the supervisor's file descriptor of this namespace.
        """
        user = ["--user", "--preserve-credentials"] if is_rootless() else []
        network = f"--net=/proc/{self.pid}/fd/{namespace}"
        return ["nsenter", f"--target={self.pid}", *user, "--pid", "--mount", network, "--root", "--wd", "--"]

    def last_output(self) -> str:
        """Return the last part of the supervisor's output, which is empty unless the supervisor failed."""
        size = os.fstat(self._printed.fileno()).st_size
        return os.pread(self._printed.fileno(), 2000, max(0, size - 2000)).decode(errors="replace").strip()

    def close(self) -> None:
        """End the supervisor and everything in its namespaces, and wait until it has ended. Safe to call twice."""
        self.client.close()
        try:
            self._unshare.wait(5.0)
        except BaseException as error:
            self._unshare.kill()
            self._unshare.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise


PROGRAMS = ("unshare", "nsenter", "setsid", "mount", "ip", "ping", "iperf3")


def why_not() -> str | None:
    """Return a sentence that says why no local lab can be opened on this machine, or None if one can be opened."""
    if not sys.platform.startswith("linux"):
        return f"the local lab needs Linux (network namespaces); this is {sys.platform}."
    if missing := [program for program in PROGRAMS if shutil.which(program, path=search_path()) is None]:
        return f"programs are missing: {', '.join(missing)}; `wanbench doctor` says how to install them."
    if not Path("/proc/self/task").is_dir() or not list(Path("/proc/self/task").glob("*/children")):
        return "the kernel does not list a process's children (CONFIG_PROC_CHILDREN), or /proc is not mounted."
    if reason := _trial("true"):
        return f"namespaces cannot be made on this machine: {reason}.{_hint()}"
    return tun_why_not()


def tun_why_not() -> str | None:
    """Try to make a TUN device in a temporary namespace; return why the relay cannot run here, or None if it can."""
    device = Path("/dev/net/tun")
    if not device.exists():
        return "the relay needs /dev/net/tun, which is missing (modprobe tun; docker --device /dev/net/tun)."
    try:
        device.open("r+b", buffering=0).close()
    except OSError as error:
        mode = oct(device.stat().st_mode & 0o777)[2:]
        return f"the relay needs /dev/net/tun, which cannot be opened: {error.strerror} (its mode is {mode})."
    reason = _trial("ip", "tuntap", "add", "dev", "wan0", "mode", "tun")
    return f"the relay cannot make a TUN device: {reason}." if reason else None


def _trial(*command: str) -> str | None:
    try:
        done = subprocess.run(
            [*unshare_arguments(), *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
            env={**os.environ, "PATH": search_path()},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if not done.returncode:
        return None
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[0].rstrip(".") if lines else f"{command[0]} ended with status {done.returncode}"


def _hint():
    if os.geteuid() == 0:
        return " Root lacks CAP_SYS_ADMIN, as it does in most containers (docker run --privileged)."
    for name, forbids in (
        ("kernel/unprivileged_userns_clone", "0"),
        ("user/max_user_namespaces", "0"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1"),
    ):
        path = Path("/proc/sys", name)
        if path.exists() and path.read_text().strip() == forbids:
            return f" The sysctl {name.replace('/', '.')} is {forbids}, so that only root may make namespaces."
    return " Try as root."

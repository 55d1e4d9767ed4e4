"""Fork the kernels of notebooks, and the jobs of a batch, from a process that has already imported what they need."""

import multiprocessing
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from multiprocessing import forkserver, util
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from typing import Any

import numpy as np
from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([f"{__package__}.preloaded"])  # to import it takes each process two seconds
LOCK = threading.Lock()
SEED = "PYTHONHASHSEED"
FOLDER = "WANBENCH_FORK_SERVER"  # names the folder of the server's socket, which the server removes at its end
PROVISIONER = "wanbench"  # the name that a kernel's specification gives, for jupyter_client
KernelProvisionerFactory.provisioners[PROVISIONER] = EntryPoint(PROVISIONER, f"{__name__}:Forks", "")


def fork(target: Callable[..., object], *arguments: object) -> BaseProcess:
    """Start a process, in a new session, that calls `target` with `arguments`; return the process."""
    multiprocessing.current_process().daemon = False  # a worker of Dask may start processes
    process = PROCESSES.Process(target=_run, args=[target, arguments])
    with LOCK:
        before = os.environ.get(SEED)
        os.environ |= {SEED: "0", FOLDER: _folder()}  # the seed of kernels; a process reads it when it starts
        try:
            process.start()
        finally:
            del os.environ[FOLDER]
            os.environ.pop(SEED) if before is None else os.environ.update({SEED: before})
    return process


def _folder() -> str:
    """Make the folder of the server's socket, or return the one made before."""
    before = tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > 60:  # the socket's path, 37 bytes longer, may have 107
        tempfile.tempdir = "/tmp"  # nosec B108  # mkdtemp makes a private folder there
    try:
        return util.get_temp_dir()
    finally:
        tempfile.tempdir = before


def _run(target: Callable[..., object], arguments: tuple[object, ...]) -> None:
    os.setsid()  # Ctrl-C reaches the command, which passes it on
    forkserver._forkserver.ensure_running = lambda: None  # pyright: ignore[reportPrivateUsage]  # the one that runs forks for this process, too
    random.seed()
    np.random.seed()
    target(*arguments)


def starter() -> BaseProcess:
    """Return the process that started this one by `fork`."""
    found = multiprocessing.parent_process()
    assert found
    return found


def settle(folder: str | Path, environment: Mapping[str, str], out: int, err: int) -> None:
    """
    Set this process's working directory, environment, standard output `out` and standard error `err` (descriptors).
    """
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    os.dup2(out, 1)
    os.dup2(err, 2)


class Forks(LocalProvisioner):
    """Start IPython kernels as forks, for jupyter_client."""

    async def launch_kernel(self, cmd: list[str], **options: Any):
        """Start an IPython kernel as a fork, given its command `cmd`; start any other kernel as jupyter_client does."""
        if "ipykernel_launcher" not in cmd:
            return await super().launch_kernel(cmd, **options)
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        self.process = Kernel(arguments, options.get("cwd") or os.getcwd(), options["env"])
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class Kernel:
    """The process of a kernel, with the members of subprocess.Popen that jupyter_client uses."""

    stdin = stdout = stderr = None

    def __init__(self, arguments: list[str], folder: str, environment: Mapping[str, str]):
        self.process = fork(_serve, arguments, str(folder), dict(environment), Output())
        self.pid = pid = self.process.pid or 0  # it has started
        self.send_signal = lambda number: os.kill(pid, number)
        self.kill, self.terminate = self.process.kill, self.process.terminate

    def poll(self) -> int | None:
        """Return the exit status, or None if the kernel runs."""
        return self.process.exitcode

    def wait(self) -> int | None:
        """Wait for the end, and return the exit status."""
        self.process.join()
        return self.process.exitcode


class Output:
    """The files of standard output and standard error, which can be sent to another process."""

    def __reduce__(self):
        """Send duplicates."""
        return list, ([DupFd(1), DupFd(2)],)


def _serve(arguments: list[str], folder: str, environment: Mapping[str, str], output: Iterable[Any]) -> None:
    settle(folder, environment, *(one.detach() for one in output))
    command = starter()
    threading.Thread(target=lambda: (command.join(), os._exit(1)), daemon=True).start()
    sys.argv = ["ipykernel_launcher", *arguments, f"--IPKernelApp.parent_handle={os.getppid()}"]
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()

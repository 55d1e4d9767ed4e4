"""A Dask scheduler and workers as processes here, and a relay that can cut a driver off from the scheduler."""

import json
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager, suppress

from patience import comes_about

QUIET = ["--no-dashboard"]


@contextmanager
def process(folder, name, module, *arguments, environment=None):
    """Run `python -m module`; its output goes to a file of this name in the folder. It is killed in the end."""
    with open(folder / f"{name}.log", "ab") as log:
        command = [sys.executable, "-m", module, *map(str, arguments)]
        running = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment, start_new_session=True)
        try:
            yield running
        finally:
            running.kill()
            running.wait()


@contextmanager
def cluster(folder, workers=2, resources=(), environment=None):
    """Yield the address of a scheduler, and its workers: processes with one thread each; the first has `resources`."""
    with ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        found = folder / "scheduler.json"
        start = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", found, *QUIET]
        stack.enter_context(process(folder, "scheduler", "distributed.cli.dask_scheduler", *start))
        assert comes_about(found.exists, 120), (folder / "scheduler.log").read_text()
        started = []
        for number in range(workers):
            more = ["--resources", *resources] if resources and number == 0 else []
            options = ["--scheduler-file", found, "--no-nanny", "--nthreads", "1", "--local-directory", folder, *QUIET]
            name = f"worker-{number}"
            started.append(
                stack.enter_context(
                    process(folder, name, "distributed.cli.dask_worker", *options, *more, environment=environment)
                )
            )
        yield json.loads(found.read_text())["address"], started


class Relay:
    """Pass connections on to an address, until they are cut; after that, refuse new ones."""

    def __init__(self, address: str):
        host, _, port = address.rpartition("://")[2].partition(":")
        self.to, self.ends, self.is_cut = (host, int(port)), [], False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.to)
                self.ends += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    @staticmethod
    def _pass(one, other):
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self):
        """Close every connection, and take no more."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for end in self.ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

"""Run a notebook with papermill: check its parameters, show progress, forward Ctrl-C, and report failures."""

import logging
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import papermill
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.utils import remove_args
from traitlets.config import Config

from wanbench.errors import WanbenchError
from wanbench.folders import FINDINGS_VARIABLE

from .forks import PROVISIONER
from .notebooks import LEFT_OUT, leave_out, optional_section, read_notebook, tags
from .parameters import check_parameters, declared_parameters

SAVE_EVERY_S = 5.0  # If the process is killed, outputs of this period are lost; measurements are safe in run folders.


class Client(PapermillNotebookClient):
    """
    Run the cells of a notebook, and let the running cell clean up after Ctrl-C.

    The first Ctrl-C interrupts the notebook, which can then close its lab and journal; no further cell starts. The
    second prints that the notebook is still cleaning up, because a lab needs a minute or more to release rented hosts.
    The third ends the notebook at once.
    """

    interrupted = 0

    def create_kernel_manager(self):
        """Return a kernel manager that starts its kernel by a fork."""
        manager = super().create_kernel_manager()
        manager.kernel_spec.metadata["kernel_provisioner"] = {"provisioner_name": PROVISIONER}
        return manager

    def papermill_execute_cells(self):
        """Run the cells until the last one, or until Ctrl-C."""
        with self._forwarding_interrupts():
            super().papermill_execute_cells()

    def execute_cell(self, cell: NotebookNode, cell_index: int, *args: Any, **kwargs: Any) -> NotebookNode:
        """
        Run one cell, or raise KeyboardInterrupt if Ctrl-C was pressed.

        If a cell of an optional section lacks its data, leave out the section and continue with the next one.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        if LEFT_OUT in cell.metadata:
            return cell
        try:
            return super().execute_cell(cell, cell_index, *args, **kwargs)
        except CellExecutionError as error:
            section = optional_section(self.nb, cell_index)
            if section is None or error.ename != "MissingDataError":
                raise
            leave_out(self.nb, section, error.evalue)
            return cell

    @contextmanager
    def _forwarding_interrupts(self) -> Generator[None]:
        before = signal.signal(signal.SIGINT, self._forward)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _forward(self, signal_number: int, frame: object) -> None:
        self.interrupted += 1
        if self.interrupted > 2:
            logging.getLogger("asyncio").disabled = True  # it would print a traceback when the kernel is seen to die
            raise KeyboardInterrupt
        with suppress(OSError):
            if self.interrupted == 2:
                os.write(2, b"\nwanbench: the notebook is cleaning up. Ctrl-C again ends it; rented hosts may go on.\n")
                return
            os.killpg(self.km.provisioner.process.pid, signal.SIGINT)  # the kernel leads its process group


class Engine(NBClientEngine):
    """The execution engine that papermill calls; it runs notebooks with `Client`."""

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, **kwargs: Any
    ) -> NotebookNode:
        """Execute the notebook of the manager `nb_man`; further keyword arguments are settings of `Client`."""
        settings = remove_args(["input_path", "start_timeout", "execution_timeout"], **kwargs)
        with saved_periodically(nb_man):
            return Client(nb_man, kernel_name=kernel_name, **settings).execute()


@contextmanager
def saved_periodically(manager: NotebookExecutionManager) -> Generator[None]:
    """
    Save the notebook at most every `SAVE_EVERY_S` seconds, and at the end.

    By default, papermill saves it before and after each cell; with many figures, saving took longer than running.
    """
    save = manager.save

    def save_if_due(**kwargs: Any) -> None:
        if (manager.now() - manager.last_save_time).total_seconds() >= SAVE_EVERY_S:
            save(**kwargs)

    manager.save = save_if_due
    try:
        yield
    finally:
        manager.save = save
        save()


INJECTED = "injected-parameters"  # The tag of the cell that papermill inserts.
# Sockets of kernels are in folders with a short path: the path of a Unix socket has at most 107 bytes.
SHORT, SOCKETS = Path("/tmp"), "wanbench-kernel-"  # nosec B108  # its folders are made by mkdtemp
STARTUP = """
__import__("sys").modules["rfc3987_syntax"] = None  # jsonschema would build its unused grammar for seconds

import pandas

pandas.set_option("display.max_colwidth", None)
pandas.set_option("display.max_rows", 200)


def _answered(kernel, execute):
    async def execute_request(stream, ident, parent):
        try:
            await execute(stream, ident, parent)
        except KeyboardInterrupt:  # beside the cell's own code: ipykernel would not reply, and the driver wait for ever
            error = {"status": "error", "ename": "KeyboardInterrupt", "evalue": "", "traceback": []}
            kernel.session.send(kernel.iopub_socket, "error", error, parent, ident=kernel._topic("error"))
            kernel.session.send(stream, "execute_reply", error | {"execution_count": 0}, parent, ident=ident)

    kernel.shell_handlers["execute_request"] = execute_request


_answered(get_ipython().kernel, get_ipython().kernel.execute_request)
del _answered
"""


class NotebookError(WanbenchError, RuntimeError):
    """A cell of a notebook failed, or its kernel died."""


@dataclass(frozen=True)
class Executed:
    """
    A notebook that ran to its end, with all outputs.

    `name` is the file name without ".ipynb", and also the name of the page. `parameters` has the name, value and
    comment of every parameter, including those that kept their defaults.
    """

    name: str
    notebook: NotebookNode
    parameters: tuple[tuple[str, object, str], ...]


def execute(
    path: Path, given: Mapping[str, object], output: Path, stream: TextIO | None = None, findings: Path | None = None
) -> Executed:
    """
    Run a whole notebook in the notebook's own folder, as JupyterLab does.

    `given` holds values by parameter name; other parameters keep their defaults. The executed notebook is written to
    the path `output`, even if a cell fails. Progress and the notebook's standard error are written to `stream`, by
    default sys.stderr.

    Raise ParameterError, before anything runs, if a parameter is unknown or its value has the wrong type. Raise
    NotebookError, which names the cell and the reason, if a cell fails or the kernel dies. Raise KeyboardInterrupt
    after Ctrl-C, once the notebook has cleaned up.
    """
    source = read_notebook(path)
    accepted = check_parameters(source, given, path.name)
    declared = declared_parameters(source, path.name)
    parameters = tuple((name, accepted.get(name, one.default), one.comment) for name, one in declared.items())
    output.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(path.stem, len(source.cells), stream or sys.stderr)
    papermill_engines.register("wanbench", Engine)
    try:
        with kernel_environment(findings) as folder:
            notebook = papermill.execute_notebook(
                path,
                output,
                accepted,
                engine_name="wanbench",
                kernel_name="python3",
                language="python",
                cwd=path.parent,
                progress_bar=False,
                stderr_file=progress,
                shutdown_kernel="immediate",
                coalesce_streams=True,
                on_cell_start=progress.cell_starts,
                config=Config({"KernelManager": {"transport": "ipc", "connection_file": f"{folder}/kernel.json"}}),
            )
    except PapermillExecutionError as error:
        if error.ename == "KeyboardInterrupt":
            raise KeyboardInterrupt from None
        raise NotebookError(f"{path.name}: {progress.place()}: {error.ename}: {error.evalue}") from None
    except DeadKernelError:
        message = f"{path.name}: {progress.place()}: the kernel died; it may have been killed, or out of memory."
        raise NotebookError(message) from None
    progress.ends()
    return Executed(path.stem, _with_fixed_ids(notebook), parameters)


class Progress:
    """Print each heading that a running notebook reaches, and the notebook's standard error, indented."""

    def __init__(self, name: str, cells: int, stream: TextIO):
        self.name, self.cells, self.stream = name, cells, stream
        self.number, self.heading, self._at_line_start = 0, "", True
        self._started_s = time.monotonic()
        self._print(f"{name}: {cells} cells")

    def cell_starts(self, cell: NotebookNode, cell_index: int) -> None:
        """Count a cell of the notebook; if it begins with a heading, print the cell's number and the heading."""
        if INJECTED in tags(cell):
            return
        self.number += 1
        first = cell.source.lstrip().partition("\n")[0]
        if cell.cell_type == "markdown" and first.startswith("#"):
            self.heading = first.lstrip("# ").rstrip()
            self._print(f"  cell {self.number} of {self.cells}: {self.heading}")

    def place(self) -> str:
        """Return the place of the running cell, such as "cell 5 of 23, under 'Measure'"."""
        under = f", under {self.heading!r}" if self.heading else ""
        return f"cell {self.number} of {self.cells}{under}"

    def write(self, text: str) -> None:
        """Write text of the notebook to the stream, indented."""
        for line in text.splitlines(keepends=True):
            self.stream.write(("    " if self._at_line_start else "") + line)
            self._at_line_start = line.endswith(("\n", "\r"))

    def flush(self) -> None:
        """Flush the stream."""
        self.stream.flush()

    def ends(self) -> None:
        """Print how long the notebook ran."""
        self._print(f"  all {self.cells} cells ran in {time.monotonic() - self._started_s:.0f} s")

    def _print(self, line: str) -> None:
        self.stream.write(("" if self._at_line_start else "\n") + line + "\n")
        self._at_line_start = True
        self.stream.flush()


@contextmanager
def kernel_environment(findings: Path | None = None) -> Generator[str]:
    """
    Set environment variables for kernels, and yield a new private folder for their sockets, with a short path.

    Kernels then output figures as JSON, have a fixed hash seed, ignore the user's IPython settings, and do not shorten
    texts in tables, so that a page shows why each test failed. They save findings in the folder `findings`, if given.
    """
    _remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f"{SOCKETS}{os.getpid()}-", dir=SHORT) as folder:
        wanted = {
            "PLOTLY_RENDERER": "plotly_mimetype",
            "PYTHONHASHSEED": "0",
            "IPYTHONDIR": str(Path(folder) / "ipython"),
            "JUPYTER_RUNTIME_DIR": folder,
            "JUPYTER_PREFER_ENV_PATH": "1",
        } | ({FINDINGS_VARIABLE: str(findings)} if findings else {})
        startup = Path(folder) / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        (startup / "tables.py").write_text(STARTUP)
        before = {name: os.environ[name] for name in wanted if name in os.environ}
        os.environ.update(wanted)
        try:
            yield folder
        finally:
            for name in wanted:
                os.environ.pop(name, None)
            os.environ.update(before)


def _remove_leftovers() -> None:
    for folder in SHORT.glob(f"{SOCKETS}*-*"):
        owner = folder.name.removeprefix(SOCKETS).partition("-")[0]
        with suppress(FileNotFoundError):  # its owner, or another process, has removed it meanwhile
            if owner.isdecimal() and folder.stat().st_uid == os.getuid() and not _runs(int(owner)):
                shutil.rmtree(folder, ignore_errors=True)


def _runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    return True


def _with_fixed_ids(notebook: NotebookNode) -> NotebookNode:
    """Give the cell of parameters that papermill inserts a fixed id, so that pages are reproducible."""
    for cell in notebook.cells:
        if INJECTED in tags(cell):
            cell["id"] = INJECTED
    return notebook

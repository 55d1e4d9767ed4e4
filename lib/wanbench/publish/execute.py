"""Run a notebook with papermill: check parameters, show progress, pass Ctrl-C on, classify failures."""

import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import papermill
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from papermill.exceptions import PapermillExecutionError
from papermill.utils import remove_args
from traitlets.config import Config

from wanbench.errors import WanbenchError

from .notebooks import LEFT_OUT, leave_out, optional_section, read_notebook
from .parameters import check_parameters, declared_parameters

MISSING = ("MissingDataError", "NotFetchedError")  # Names of the errors for missing data.
SAVE_EVERY_S = 5.0  # A kill loses the outputs of this period; measurements are safe in their run folder.


class Client(PapermillNotebookClient):
    """
    Runs the cells, and passes Ctrl-C on.

    A kernel runs in its own session, so a Ctrl-C in the terminal would kill it in the middle of its work. Here the
    first Ctrl-C goes to the notebook, which gets time to clean up (close a lab, a journal); no further cell starts. The
    second only prints that the notebook is cleaning up, because a lab needs a minute or more to give rented hosts back;
    the third kills the notebook.
    """

    interrupted = 0

    def papermill_execute_cells(self):
        """Run all cells, or those up to a Ctrl-C."""
        with self._passing_on_interrupts():
            super().papermill_execute_cells()

    def execute_cell(self, cell, cell_index, *args, **kwargs):
        """
        Run one cell; after a Ctrl-C raise KeyboardInterrupt instead.

        A cell without data in an optional section ends the section, not the notebook.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        if LEFT_OUT in cell.metadata:
            return cell
        try:
            return super().execute_cell(cell, cell_index, *args, **kwargs)
        except CellExecutionError as error:
            section = optional_section(self.nb, cell_index)
            if section is None or error.ename not in MISSING:
                raise
            leave_out(self.nb, section, error.evalue)
            return cell

    @contextmanager
    def _passing_on_interrupts(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGINT, self._pass_on)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _pass_on(self, signal_number, frame):
        self.interrupted += 1
        if self.interrupted > 2:
            raise KeyboardInterrupt
        with suppress(OSError):
            if self.interrupted == 2:
                os.write(
                    2, b"\nwanbench: the notebook cleans up; Ctrl-C once more ends it, and leaves what it rents.\n"
                )
                return
            os.killpg(self.km.provisioner.process.pid, signal.SIGINT)  # the kernel leads its process group


class Engine(NBClientEngine):
    """Entry point that papermill calls to execute a notebook."""

    @classmethod
    def execute_managed_notebook(cls, nb_man, kernel_name, start_timeout=60, **kwargs):
        """Execute the notebook that `nb_man` manages; keyword arguments go to the client."""
        settings = remove_args(["input_path", "execution_timeout"], **kwargs)
        with saved_at_times(nb_man):
            return Client(nb_man, kernel_name=kernel_name, startup_timeout=start_timeout, **settings).execute()


@contextmanager
def saved_at_times(manager: NotebookExecutionManager) -> Iterator[None]:
    """
    Save the notebook every `SAVE_EVERY_S` seconds, and at the end.

    Papermill saves it before and after each cell, which took longer than running a page with many figures.
    """
    save = manager.save

    def at_times(**kwargs):
        if (manager.now() - manager.last_save_time).total_seconds() >= SAVE_EVERY_S:
            save(**kwargs)

    manager.save = at_times
    try:
        yield
    finally:
        manager.save = save
        save()


INJECTED = "injected-parameters"
SHORT, SOCKETS = Path("/tmp"), "wanbench-kernel-"
STARTUP = """
__import__("sys").modules["rfc3987_syntax"] = None  # jsonschema would build its unused grammar for seconds

import pandas

pandas.set_option("display.max_colwidth", None)
pandas.set_option("display.max_rows", 200)
"""


class NotebookError(WanbenchError, RuntimeError):
    """A cell of a notebook failed, or the notebook could not be run to its end."""


@dataclass(frozen=True)
class Executed:
    """
    A notebook that has run to its end, with all outputs.

    `name` is the file's without its ending, and that of the page; `parameters` holds every parameter with the value it
    had, defaults included, and its comment.
    """

    name: str
    notebook: NotebookNode
    parameters: tuple[tuple[str, object, str], ...]


def execute(path: Path, given: Mapping[str, object], output: Path, stream: TextIO | None = None) -> Executed:
    """
    Run a whole notebook, in its own folder as in JupyterLab.

    `given` holds parameters by name; the others keep their defaults. `output` is where the executed notebook is kept,
    also when it fails. `stream` (default sys.stderr) gets the progress, and what the notebook prints on its standard
    error.

    Raises ParameterError if a parameter is unknown or of the wrong kind (nothing has run then), NotebookError if a cell
    failed or the kernel died (it names the cell and says why), and KeyboardInterrupt after a Ctrl-C, when the notebook
    has cleaned up.
    """
    source = read_notebook(path)
    accepted = check_parameters(source, given, path.name)
    declared = declared_parameters(source, path.name)
    parameters = tuple((name, accepted.get(name, one.default), one.comment) for name, one in declared.items())
    output.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(path.stem, len(source.cells), stream or sys.stderr)
    papermill_engines.register("wanbench", Engine)
    try:
        with kernel_environment() as folder:
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
        raise NotebookError(
            f"{path.name}: {progress.place()}: the kernel died; it may have run out of memory or been killed."
        ) from None
    progress.ends()
    return Executed(path.stem, _with_fixed_ids(notebook), parameters)


class Progress:
    """Reports the running cell and its heading, and passes on the notebook's standard error, indented."""

    def __init__(self, name: str, cells: int, stream: TextIO):
        self.name, self.cells, self.stream = name, cells, stream
        self.number, self.heading, self._at_line_start = 0, "", True
        self._started_s = time.monotonic()
        self._print(f"{name}: {cells} cells")

    def cell_starts(self, cell: NotebookNode, cell_index: int) -> None:
        """Record the cell, and print its number at a new heading."""
        if INJECTED in cell.get("metadata", {}).get("tags", ()):
            return
        self.number += 1
        first = cell.source.lstrip().partition("\n")[0]
        if cell.cell_type == "markdown" and first.startswith("#"):
            self.heading = first.lstrip("# ").rstrip()
            self._print(f"  cell {self.number} of {self.cells}: {self.heading}")

    def place(self) -> str:
        """The current place: "cell 5 of 23, under 'Measure'"."""
        under = f", under {self.heading!r}" if self.heading else ""
        return f"cell {self.number} of {self.cells}{under}"

    def write(self, text: str) -> None:
        """Pass on text from the notebook, indented."""
        for line in text.splitlines(keepends=True):
            self.stream.write(("    " if self._at_line_start else "") + line)
            self._at_line_start = line.endswith(("\n", "\r"))

    def flush(self) -> None:
        """Flush the text."""
        self.stream.flush()

    def ends(self) -> None:
        """Print how long the notebook took."""
        self._print(f"  all {self.cells} cells ran in {time.monotonic() - self._started_s:.0f} s")

    def _print(self, line: str) -> None:
        self.stream.write(("" if self._at_line_start else "\n") + line + "\n")
        self._at_line_start = True
        self.stream.flush()


@contextmanager
def kernel_environment() -> Iterator[str]:
    """
    Environment of kernels: figures as plain data, fixed hash seed, no user settings of IPython; and tables with full
    texts, so that a page shows why each test failed. Yields a new private folder for sockets, with a short path.
    """
    _remove_leftovers()
    with tempfile.TemporaryDirectory(prefix=f"{SOCKETS}{os.getpid()}-", dir=SHORT) as folder:
        wanted = {
            "PLOTLY_RENDERER": "plotly_mimetype",
            "PYTHONHASHSEED": "0",
            "IPYTHONDIR": str(Path(folder) / "ipython"),
            "JUPYTER_RUNTIME_DIR": folder,
            "JUPYTER_PREFER_ENV_PATH": "1",
        }
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
        if owner.isdecimal() and folder.stat().st_uid == os.getuid() and not _runs(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _with_fixed_ids(notebook: NotebookNode) -> NotebookNode:
    """Give papermill's added cell a fixed id, so that pages are reproducible."""
    for cell in notebook.cells:
        if INJECTED in cell.get("metadata", {}).get("tags", ()):
            cell["id"] = INJECTED
    return notebook

"""
Our papermill engine: as the standard one, but it passes Ctrl-C to the notebook and waits, and leaves out an optional
section without data.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from nbclient.exceptions import CellExecutionError
from papermill.clientwrap import PapermillNotebookClient
from papermill.engines import NBClientEngine, NotebookExecutionManager
from papermill.utils import remove_args

from .tags import LEFT_OUT, leave_out, optional_section

MISSING = ("MissingDataError", "NotFetchedError")
"""Names of the errors for missing data."""
SAVE_EVERY_S = 5.0
"""A kill loses the outputs of this period; measurements are safe in their run folder."""


class Client(PapermillNotebookClient):
    """
    Runs the cells.

    A kernel runs in its own session, so a Ctrl-C in the terminal would kill it in the middle of its
    work. Here the first Ctrl-C goes to the notebook, which gets time to clean up (close a lab, a journal);
    no further cell starts. The second only prints that the notebook is cleaning up, because a lab needs a
    minute or more to give rented hosts back; the third kills the notebook.
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

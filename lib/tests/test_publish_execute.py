"""Running notebooks: parameters, progress, failures, interrupts, what is left behind."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from example_site import CELLS, jobs, make_checkout, notebook
from patience import comes_about

from wanbench.errors import ParameterError, RawDataError
from wanbench.publish.execute import NotebookError, Progress, execute, kernel_environment
from wanbench.publish.jobs import Job
from wanbench.publish.notebooks import find_notebook, notebook_paths, read_notebook
from wanbench.publish.pictures import browser
from wanbench.publish.site import Site, publish

with_browser = [pytest.mark.browser, pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")]


# Running


def test_wrong_parameters_stop_everything_before_anything_runs(tmp_path):
    top = make_checkout(tmp_path / "top", {"00-example": CELLS})
    good, bad = jobs(top)[1], jobs(top)[1]
    bad.given["n_pointz"] = 3
    stream = io.StringIO()
    with pytest.raises(ParameterError, match=r"unknown parameter 'n_pointz' \(did you mean 'n_points'\?\)"):
        publish([good, bad], Site.of(top), stream)
    assert stream.getvalue() == "" and not (top / "site").exists()


def test_a_notebook_that_lies_elsewhere_is_published_too_and_its_tables_have_all_rows_and_whole_texts(tmp_path):
    code = "import sys\n\nimport pandas as pd\n\nassert sys.modules['rfc3987_syntax'] is None  # slow, and unused\n"
    code += "pd.DataFrame({'why': ['long ' * 40 + 'end'] * 100})"
    top = make_checkout(tmp_path / "top", {})
    nbformat.write(notebook([("text", "# Elsewhere"), ("code", code)]), tmp_path / "mine.ipynb")
    (record,) = publish([Job(tmp_path / "mine.ipynb")], Site.of(top), io.StringIO())
    assert (record.name, record.outcome, record.title) == ("mine", "published", "Elsewhere")
    assert (top / "site/mine.html").read_text().count("long end</td>") == 100


def test_progress_says_where_the_notebook_is():
    stream = io.StringIO()
    progress = Progress("02-x", 3, stream)
    cells = notebook([("text", "# Title"), ("code", "1"), ("text", "## Part\n\ntext")]).cells
    progress.cell_starts(cells[0], 0)
    injected = nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["injected-parameters"]})
    progress.cell_starts(injected, 1)
    progress.cell_starts(cells[1], 2)
    progress.write("1 of 2\n")
    progress.write("half a line")
    progress.cell_starts(cells[2], 3)
    assert progress.place() == "cell 3 of 3, under 'Part'"
    assert stream.getvalue() == (
        "02-x: 3 cells\n  cell 1 of 3: Title\n    1 of 2\n    half a line\n  cell 3 of 3: Part\n"
    )


def test_a_killed_kernel_is_said_so(tmp_path):
    cells = [("text", "# Kill"), ("code", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")]
    top = make_checkout(tmp_path / "top", {"00-kill": cells})
    with pytest.raises(NotebookError, match=r"00-kill\.ipynb: cell 2 of 2, under 'Kill': the kernel died"):
        execute(top / "notebooks/00-kill.ipynb", {}, tmp_path / "out.ipynb", io.StringIO())


def test_an_interrupt_beside_the_code_of_a_cell_ends_the_notebook(tmp_path):
    code = (
        "def interrupted(*_, **more):\n    raise KeyboardInterrupt\n\n\nget_ipython().kernel.do_execute = interrupted"
    )
    top = make_checkout(tmp_path / "top", {"00-end": [("text", "# End"), ("code", code), ("code", "1")]})
    with pytest.raises(KeyboardInterrupt):
        execute(top / "notebooks/00-end.ipynb", {}, tmp_path / "out.ipynb", io.StringIO())


WAITING = """\
import sys, time
from pathlib import Path
print("measuring", file=sys.stderr, flush=True)
try:
    Path("started").touch()
    time.sleep(60)
finally:
    time.sleep(0.5)
    Path("put-away").touch()"""


@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_interrupts_reach_the_notebook_which_puts_its_things_away(tmp_path, signal_number, status):
    top = make_checkout(tmp_path / "top", {"00-wait": [("code", WAITING), ("code", "Path('went-on').touch()")]})
    arguments = [sys.executable, "-c", "import sys; from wanbench.cli import main; sys.exit(main())", "run", "00"]
    process = subprocess.Popen(arguments, cwd=top, stderr=subprocess.PIPE, text=True)
    try:
        assert comes_about((top / "notebooks/started").exists, 120) and process.poll() is None
        process.send_signal(signal_number)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == status
    assert (top / "notebooks/put-away").exists() and not (top / "notebooks/went-on").exists()
    assert "    measuring\n" in stderr and "interrupted" in stderr and "Traceback" not in stderr


SLOW = """\
import asyncio, sys
from jupyter_client import AsyncKernelManager as Manager
from wanbench.cli import main
at_once = Manager.cleanup_resources
async def slowly(self, **options):
    await asyncio.sleep(1.5)
    await at_once(self, **options)
Manager.cleanup_resources = slowly
sys.exit(main())"""


@pytest.mark.slow
def test_the_third_interrupt_ends_a_notebook_without_a_traceback_though_the_kernel_is_seen_to_die(tmp_path):
    top = make_checkout(tmp_path / "top", {"00-wait": [("code", WAITING.replace("0.5", "60"))]})
    process = subprocess.Popen([sys.executable, "-c", SLOW, "run", "00"], cwd=top, stderr=subprocess.PIPE, text=True)
    try:
        assert comes_about((top / "notebooks/started").exists, 120) and process.poll() is None
        for _ in range(3):
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)  # signals that wait together count once
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130 and "interrupted" in stderr and "Traceback" not in stderr


# Notebook files


def test_notebooks_are_found_by_name_or_any_part_of_it(tmp_path):
    top = make_checkout(tmp_path / "top", {"00-tour": CELLS, "02-a": CELLS, "02-b": CELLS})
    paths = notebook_paths(top)
    assert [path.stem for path in paths] == ["00-tour", "02-a", "02-b"]
    for name in ("00", "00-tour", "00-tour.ipynb", str(paths[0]), "tour", "ou"):
        assert find_notebook(name, top) == paths[0]
    with pytest.raises(ParameterError, match="more than one notebook matches '02'"):
        find_notebook("02", top)
    with pytest.raises(ParameterError, match=r"no notebook matches '00-tuor' \(did you mean '00-tour'\?\)"):
        find_notebook("00-tuor", top)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"nbformat": 4}', b"\xff\xfe"])
def test_files_that_are_no_notebooks_are_refused(tmp_path, content):
    (tmp_path / "x.ipynb").write_bytes(content)
    with pytest.raises(RawDataError, match=r"x\.ipynb: expected a Jupyter notebook"):
        read_notebook(tmp_path / "x.ipynb")
    with pytest.raises(ParameterError, match="cannot be read"):
        read_notebook(tmp_path / "none.ipynb")


# What is left behind


def test_kernels_start_in_an_environment_of_their_own():
    before = dict(os.environ)
    with kernel_environment():
        folder = Path(os.environ["JUPYTER_RUNTIME_DIR"])
        assert folder.is_dir() and folder.stat().st_mode & 0o077 == 0
        assert os.environ["PLOTLY_RENDERER"] == "plotly_mimetype"
        assert os.environ["PYTHONHASHSEED"] == "0"
        assert len(str(folder / "kernel-00000000-0000-0000-0000-000000000000-ipc-5")) < 104
    assert dict(os.environ) == before and not folder.exists()


def test_folders_of_killed_processes_are_removed(tmp_path, monkeypatch):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    names = [f"wanbench-kernel-{ended.pid}-a", f"wanbench-kernel-{os.getpid()}-b", "wanbench-kernel-x-c", "other"]
    for name in names:
        (tmp_path / name).mkdir()
    names.append(f"wanbench-kernel-{ended.pid}-gone")
    (tmp_path / names[-1]).symlink_to("nothing")  # as a folder that is removed meanwhile, it cannot be examined
    monkeypatch.setattr("wanbench.publish.execute.SHORT", tmp_path)
    with kernel_environment():
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])

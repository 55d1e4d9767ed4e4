"""A checkout whose notebooks take a moment, and what tests of batches run and look at there."""

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from multiprocessing import forkserver
from pathlib import Path
from unittest.mock import patch

import nbformat
from example_site import make_checkout

from wanbench import cli
from wanbench.publish import batch as batches

DATA = Path(__file__).parents[2] / "data"
PARAMETERS = """\
seed = 1  # the only thing that varies
slope_ms = 2.0  # of the line
mode = "good"  # what the page does"""
WORK = """\
import multiprocessing
import os
import time
from itertools import pairwise
from pathlib import Path

from wanbench.findings import Finding, Page

page = Page("00-tiny")
Path("../started").mkdir(exist_ok=True)
Path(f"../started/{seed}-{time.time_ns()}").touch()
while Path(f"../hold-{seed}").exists():
    time.sleep(0.05)
if mode == "fail" and not Path("../mended").exists():
    raise ValueError("no such mode")
if mode == "kill" and not Path("../mended").exists():
    os.kill(multiprocessing.parent_process().pid, 9)
    time.sleep(60)"""
FOUND = """\
rtt = seed * slope_ms
page.add(Finding("rtt", f"RTT is {rtt} ms.", rtt, rtt - 1, rtt + 1, "ms", 5, None, "by hand", "none"))
page.answer(Finding("seed", "A seed.", seed, None, None, "", 5, None, "", ""))
page"""
MEASURED = """\
import time
from itertools import pairwise
from pathlib import Path

from wanbench.measure.campaign.start import _one_at_a_time

with _one_at_a_time():
    began = time.time()
    time.sleep(0.3)
    with open("../measured", "a") as file:
        print(began, time.time(), file=file)"""
MAIN = [sys.executable, "-c", "import sys; from wanbench.cli import main; sys.exit(main())"]


def make_top(tmp_path, monkeypatch):
    """Make a checkout with a notebook that takes a moment, and one that says it measures."""
    tiny = [("text", "# Tiny"), ("parameters", PARAMETERS), ("code", WORK), ("code", FOUND)]
    measuring = [("text", "# Lab"), ("parameters", 'seed = 1  # seed\nlab = "ssh"  # lab'), ("code", MEASURED)]
    made = make_checkout(tmp_path / "top", {"00-tiny": tiny, "01-measuring": measuring})
    for path in (made / "notebooks").iterdir():
        content = nbformat.read(path, 4)
        content.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        nbformat.write(content, path)
    (made / "data").mkdir()
    for name in ("published", "samples", "validity"):
        (made / "data" / name).symlink_to(DATA / name)
    monkeypatch.setenv("PYTHONHASHSEED", "0")
    forkserver.ensure_running()  # in a folder that stays, with all that it starts
    monkeypatch.chdir(made)
    return made


def start(top, *arguments, **environment):
    """Start `wanbench batch`, with its output in `driver.log`."""
    with open(top / "driver.log", "ab") as log:
        command = [*MAIN, "batch", *map(str, arguments)]
        return subprocess.Popen(
            command, cwd=top, stdout=log, stderr=log, env={**os.environ, **environment}, start_new_session=True
        )


def batch(*arguments, status=0):
    """Run `wanbench batch` in this process to its end, in whose folder it is, and return what it said."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said), patch.object(batches, "tell", partial(print, file=said)):
        found = cli.main(["batch", *map(str, arguments)])
    assert found == status, said.getvalue()
    return said.getvalue()


def batch_on_a_cluster(top, *arguments, status=0, **environment):
    """Run `wanbench batch` to its end in a process of its own, as a cluster's client stays, and return what it said."""
    (top / "driver.log").unlink(missing_ok=True)
    running = start(top, *arguments, **environment)
    try:
        found = running.wait(300)
    finally:
        running.kill()
    said = (top / "driver.log").read_text()
    assert found == status, said
    return said


def folder_of(top, name=None):
    (found,) = (top / "data/scratch/batches").glob(name or "*")
    return found


def pages(folder):
    """Each page that is there, with the moment and the inode by which a second one would be told from the first."""
    return {
        one.parents[1].name: (one.stat().st_ino, one.stat().st_mtime_ns) for one in folder.glob("*/page/00-tiny.html")
    }


def contents(folder):
    """Every file of all pages, with its content."""
    files = [one for one in folder.glob("*/page/**/*") if one.is_file() and "assets" not in one.parts]
    return {str(one.relative_to(folder)): one.read_bytes() for one in files}


def states(folder):
    return {one.parent.name: json.loads(one.read_text())["state"] for one in folder.glob("*/state.json")}


def started(top, seed):
    return len(list((top / "started").glob(f"{seed}-*"))) if (top / "started").exists() else 0


def processes_of(top):
    """Processes whose working directory is the checkout or its notebooks."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            where, state = os.readlink(one / "cwd"), (one / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if where.startswith(str(top)) and state != "Z" and int(one.name) != os.getpid():
            found.append(int(one.name))
    return found

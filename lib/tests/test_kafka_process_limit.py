"""A process gets its share of processors or of its disk, and all of it back, whichever way the kernel allows."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.measure.kafka.programs import process_limit
from wanbench.measure.links.lab_supervisor import remove_control_groups

BUSY = [sys.executable, "-c", "while True: pass"]
WRITES = """import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while os.write(file, bytes(50_000)):
    os.fsync(file)"""


@pytest.fixture
def busy(tmp_path):
    """A process that would use a whole processor, and its pid file."""
    process = subprocess.Popen(BUSY)
    (tmp_path / "pid").write_text(str(process.pid))
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def start(tmp_path):
    """Starts the program, in a copy of its own folder, and stops it at the end."""
    copy = tmp_path / "host" / "process_limit.py"
    copy.parent.mkdir()
    copy.write_bytes(Path(process_limit.__file__).read_bytes())
    started = []

    def start(*words):
        command = [sys.executable, copy, "--pid-file", tmp_path / "pid", "--stop-file", tmp_path / "stop"]
        process = subprocess.Popen([*map(str, command), *words], stdout=subprocess.PIPE)
        started.append(process)
        return process, json.loads(process.stdout.readline() or "null")

    yield start
    for process in started:
        process.terminate()
        process.wait(20)


def used_s(process):
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def state(process):
    return Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("way", [None, "duty cycles"])
def test_a_process_has_no_more_than_its_share_until_the_end(tmp_path, busy, start, way):
    program, about = start("--share", "0.2", *(["--way", way] if way else []))
    assert about["share"] == 0.2 and about["by"] in ("cgroup v1", "cgroup v2", "duty cycles")
    before, began = used_s(busy), time.monotonic()
    time.sleep(2)
    # a busy machine may let it have less, and a sleep may be longer than asked
    assert used_s(busy) - before <= 0.2 * (time.monotonic() - began) + 0.15
    (tmp_path / "stop").touch()
    assert program.wait(20) == 0
    assert state(busy) in "RS"
    listed = tmp_path / "host" / "control-groups"
    assert not listed.exists() or not any(Path(each).exists() for each in listed.read_text().split())


@pytest.mark.parametrize("credit", [0, 8_000_000])
def test_a_process_writes_no_faster_than_its_limit_until_the_end(tmp_path, start, credit):
    written = tmp_path / "written"
    writer = subprocess.Popen([sys.executable, "-c", WRITES, written])
    try:
        (tmp_path / "pid").write_text(str(writer.pid))
        assert comes_about(written.exists, 20)
        before = written.stat().st_size
        program, about = start("--disk", "200000", "--credit", str(credit), "--folder", str(tmp_path))
        if about is None:
            pytest.skip("this kernel limits no disk, or the folder is not on one")
        assert (about["disk_bytes_per_s"], about["disk_credit_bytes"]) == (200_000, credit)

        def slow():
            before, began = written.stat().st_size, time.monotonic()
            time.sleep(2)
            more = written.stat().st_size - before
            # two of the kernel's slices of 0.1 s, and one block that is not yet on the disk
            return 0 < more <= 200_000 * (time.monotonic() - began + 0.2) + 50_000

        if credit:  # files take more of the disk than their bytes; a limited process needs 20 s for these
            assert comes_about(lambda: written.stat().st_size > before + credit / 2, 15)
        assert comes_about(slow, 20) if credit else slow()
        (tmp_path / "stop").touch()
        assert program.wait(20) == 0
        counted = json.loads(program.stdout.readline())["written"]
        assert counted == sorted(counted) and counted[0] == [0, 0] and counted[-1][1] >= max(credit, 1)
        assert "wanbench" not in Path(f"/proc/{writer.pid}/cgroup").read_text()
        before = written.stat().st_size
        assert comes_about(lambda: written.stat().st_size > before + 10_000_000, 40)  # a limited one needs 50 s
    finally:
        writer.kill()
        writer.wait()


def test_a_process_that_was_started_anew_is_slowed_too(tmp_path, busy, start):
    _, about = start("--share", "0.1")
    if about["by"] == "duty cycles":
        pytest.skip("this kernel gives no quota")
    second = subprocess.Popen(BUSY)
    try:
        (tmp_path / "pid").write_text(str(second.pid))
        [group] = (tmp_path / "host" / "control-groups").read_text().split()
        assert comes_about(lambda: str(second.pid) in Path(group, "cgroup.procs").read_text().split(), 20)
    finally:
        second.kill()
        second.wait()


def test_a_group_that_outlived_its_program_is_removed_with_the_lab(tmp_path, busy, start):
    program, about = start("--share", "0.1")
    if about["by"] == "duty cycles":
        pytest.skip("this kernel gives no quota")
    [group] = (tmp_path / "host" / "control-groups").read_text().split()
    program.send_signal(signal.SIGKILL)
    program.wait()
    busy.kill()
    busy.wait()
    assert Path(group).exists()
    remove_control_groups(str(tmp_path))
    assert not Path(group).exists()

"""The program that writes down when a command's lines come passes everything on: output, status, signals."""

import signal
import subprocess
import sys
import time

import pytest
from patience import comes_about

from wanbench.measure.kafka.programs import line_times


def arguments(path, source):
    return [sys.executable, "-I", "-S", line_times.__file__, str(path), sys.executable, "-c", source]


def times(path):
    return [float(line) for line in path.read_text().splitlines()]


def test_every_line_has_the_time_at_which_it_came(tmp_path):
    source = "import time\nfor n in range(3):\n    print(n, flush=True)\n    time.sleep(0.3)\nprint('end', end='')"
    before = time.time()
    done = subprocess.run(arguments(tmp_path / "t", source), capture_output=True, check=True)
    after = time.time()
    assert done.stdout == b"0\n1\n2\nend"
    started, *came = times(tmp_path / "t")
    assert len(came) == 4
    assert before <= started <= came[0]
    assert came[-1] <= after
    assert came == sorted(came)
    assert all(at - started > 0.3 * n - 0.05 for n, at in enumerate(came)), "no line came before it was printed"


def test_output_passes_whole_whatever_it_is(tmp_path):
    source = "import os\nfor n in range(50):\n    os.write(1, bytes(range(256)) * 4000)"
    done = subprocess.run(arguments(tmp_path / "t", source), capture_output=True, check=True)
    assert done.stdout == bytes(range(256)) * 200_000
    assert len(times(tmp_path / "t")) == 1 + 200_000 + 1


def test_a_command_that_prints_nothing_has_a_start(tmp_path):
    subprocess.run(arguments(tmp_path / "t", "pass"), check=True)
    assert len(times(tmp_path / "t")) == 1


@pytest.mark.parametrize(
    "source, status", [("raise SystemExit(7)", 7), ("import os\nos.kill(os.getpid(), 9)", 128 + 9)]
)
def test_the_status_is_the_commands(tmp_path, source, status):
    assert subprocess.run(arguments(tmp_path / "t", source)).returncode == status


def test_what_the_command_writes_to_stderr_stays_there(tmp_path):
    source = "import sys\nprint('fault', file=sys.stderr)"
    done = subprocess.run(arguments(tmp_path / "t", source), capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"fault\n")


def test_a_signal_reaches_the_command_and_what_it_still_says_is_kept(tmp_path):
    source = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('last', flush=True), sys.exit(3)))\n"
        "print('first', flush=True)\n"
        "time.sleep(60)"
    )
    with subprocess.Popen(arguments(tmp_path / "t", source), stdout=subprocess.PIPE) as process:
        assert comes_about(lambda: (tmp_path / "t").exists() and len(times(tmp_path / "t")) == 2)
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)
    assert printed == b"first\nlast\n"
    assert process.returncode == 3
    assert len(times(tmp_path / "t")) == 3

"""The program that runs commands on an SSH host: however it ends, nothing of it stays."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import comes_about

from wanbench.measure.labs.ssh.programs import supervisor


class Supervised:
    """A supervisor as a child of this process, with a command whose child is in a session of its own."""

    def __init__(self, folder, patience_s=600, output_bytes=1 << 20):
        self.process = subprocess.Popen(
            [sys.executable, supervisor.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        assert json.loads(self.process.stdout.readline())["wanbench"]
        self.folder = Path(self.ask("hello", patience_s=patience_s, output_bytes=output_bytes)["scratch"])

    def ask(self, verb, **fields):
        self.process.stdin.write(json.dumps({"id": 1, "verb": verb, **fields}).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def start(self):
        """Start the command; the process id of its child."""
        self.ask("start", name="a", command=["sh", "-c", "setsid sh -c 'echo $$ > pid; exec sleep 600' & wait"])
        path = self.folder / "pid"
        assert comes_about(lambda: path.exists() and path.read_text().strip())
        return int(path.read_text())


def runs(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("end", ["stdin", "silence", "SIGTERM", "SIGHUP"])
def test_nothing_stays_when_it_ends(tmp_path, end):
    one = Supervised(tmp_path, patience_s=1 if end == "silence" else 600)
    pid = one.start()
    if end == "stdin":
        one.process.stdin.close()
    elif end != "silence":
        one.process.send_signal(getattr(signal, end))
    one.process.wait(120)
    assert not runs(pid) and list(tmp_path.iterdir()) == []


def test_what_stays_when_it_is_killed_is_ended_by_the_next(tmp_path):
    one = Supervised(tmp_path)
    pid = one.start()
    one.process.kill()
    one.process.wait()
    assert runs(pid) and one.folder.exists()
    other = Supervised(tmp_path)
    assert comes_about(lambda: not runs(pid)) and not one.folder.exists()
    assert other.folder.stat().st_mode & 0o777 == 0o700
    other.process.stdin.close()
    assert other.process.wait(120) == 0 and list(tmp_path.iterdir()) == []


def test_a_command_that_prints_too_much_is_killed(tmp_path):
    one = Supervised(tmp_path, output_bytes=1000)
    one.ask("start", name="a", command=["sh", "-c", "head -c 5000 /dev/zero; exec sleep 600"])
    ended = json.loads(one.process.stdout.readline())
    assert (ended["ended"], ended["status"], ended["sizes"]) == ("a", -signal.SIGKILL, [5000, 0])
    one.process.stdin.close()
    one.process.stdout.read()
    one.process.wait(120)

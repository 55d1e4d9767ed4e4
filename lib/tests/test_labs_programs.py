"""The Python of a host: asked once, and an error that names what is missing."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import kafka
import pytest
from scripted_lab import Reply, ScriptedHost, ScriptedLab, ScriptedProcess

from wanbench.errors import LabError
from wanbench.measure.labs import programs
from wanbench.measure.labs.ssh.programs import supervisor


class Asked(ScriptedHost):
    """Runs the questions for its Python here, or gives a fixed answer."""

    scratch = "/scratch"

    def __init__(self, answer=None, status=0):
        super().__init__(ScriptedLab(["a"]), "a", 1)
        self.answer, self.status, self.commands, self.files = answer, status, [], []

    def run(self, command, *, timeout_s, ok=(0,)):
        self.commands.append(command)
        if command[0] != "sh":
            return ScriptedProcess(command, Reply()).wait(timeout_s)
        if self.answer is None:
            done = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False)
            return ScriptedProcess(command, Reply(done.stdout, done.stderr, done.returncode)).wait(timeout_s)
        return ScriptedProcess(command, Reply(self.answer, b"", self.status)).wait(timeout_s)

    def put(self, source, target):
        self.files.append((source.name, target.rpartition(".")[0]))


def answer(*modules):
    return json.dumps({"executable": "/usr/bin/python3", "modules": modules}).encode()


def test_this_machine_answers_with_this_python():
    python = programs.host_python(Asked())
    assert Path(python.executable).resolve() == Path(sys.executable).resolve()
    assert python.modules == {"confluent_kafka", "kafka", "wanbench"}


def test_another_wanbench_on_a_host_does_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "_PACKAGE", tmp_path)
    programs._question.cache_clear()
    assert programs.host_python(Asked()).modules == {"confluent_kafka", "kafka"}
    programs._question.cache_clear()


def test_a_host_is_asked_once_and_given_a_program_once(tmp_path):
    host, program = Asked(answer("kafka", "wanbench")), tmp_path / "program.py"
    for _ in range(3):
        command = programs.module_command(host, "wanbench.x", "1", "2")
        assert command == ["/usr/bin/python3", "-P", "-m", "wanbench.x", "1", "2"]
        assert programs.program_command(host, program) == ["/usr/bin/python3", "/scratch/program.py"]
    assert [command[0] for command in host.commands] == ["sh", "mv"]
    assert host.files == [("program.py", "/scratch/program.py")]


@pytest.mark.parametrize(
    "module, says",
    [
        ("wanbench.measure.kafka.programs.readiness", "IndexError"),
        ("wanbench.measure.kafka.programs.admin", "missing 2 required positional arguments"),
        ("wanbench.measure.kafka.programs.watch", "missing 2 required positional arguments"),
        ("wanbench.measure.kafka.programs.open_loop_producer", "arguments are required: --"),
    ],
)
def test_a_host_without_wanbench_gets_what_its_modules_import(tmp_path, module, says):
    host = Asked(answer("kafka"))
    host.put = lambda source, target: shutil.copy(source, tmp_path / "wanbench.zip")
    environment, path, python, *command = programs.module_command(host, module)
    assert (environment, path, python) == ("env", "PYTHONPATH=/scratch/wanbench.zip", "/usr/bin/python3")
    # Without site-packages there is no wanbench but that of the archive; kafka-python is put beside it.
    modules = os.pathsep.join([str(tmp_path / "wanbench.zip"), str(Path(kafka.__file__).parents[1])])
    run = [sys.executable, "-S", *command]
    done = subprocess.run(run, env={"PYTHONPATH": modules}, capture_output=True, text=True, cwd=tmp_path)
    assert says in done.stderr


@pytest.mark.parametrize("path", sorted(Path(supervisor.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_what_runs_under_the_distributions_python_runs_under_an_old_one(path):
    tree = ast.parse(path.read_text(), feature_version=(3, 8))
    names = [name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names]
    assert "UTC" not in names  # of Python 3.11


def test_a_lab_that_is_opened_again_is_asked_again(tmp_path):
    host = Asked(answer())
    programs.program_command(host, tmp_path / "program.py")
    host.scratch = "/other"
    assert programs.program_command(host, tmp_path / "program.py")[1] == "/other/program.py"
    assert [command[0] for command in host.commands] == ["sh", "mv"] * 2


def test_a_host_without_python_is_named_and_asked_again():
    host = Asked(b"", 127)
    for _ in range(2):
        with pytest.raises(LabError, match="a has no working Python"):
            programs.host_python(host)
    assert len(host.commands) == 2


def test_what_the_python_of_a_host_lacks_is_named(tmp_path):
    host = Asked(answer("wanbench"))
    with pytest.raises(LabError, match="a lacks kafka-python: /usr/bin/python3 there cannot import it; install it"):
        programs.module_command(host, "wanbench.x")
    with pytest.raises(LabError, match="lacks confluent-kafka"):
        programs.module_command(host, "wanbench.x", needs="confluent_kafka")
    assert host.files == []
    assert programs.program_command(host, tmp_path / "program.py")

"""
Run wanbench's own programs on a host: find a Python there, and copy the files that the programs need.

While the lab is open, a host's Python and the files copied to it are remembered.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
import tempfile
import uuid
import zipfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from wanbench.errors import LabError

from .base import Host

_TIMEOUT_S = 30.0
# The modules that these programs import besides the standard library, and the packages that contain them.
_PACKAGES = {"kafka": "kafka-python", "wanbench": "wanbench", "confluent_kafka": "confluent-kafka"}
# Files of wanbench that programs on hosts may import.
_ARCHIVED = ("__init__.py", "measure/__init__.py", "measure/kafka/**/*.py", "measure/kafka/**/*.json")
_PACKAGE = Path(__file__).parents[2]

# Runs `_question` with the first of the given Pythons that exists on the host. `_question` removes "" from sys.path,
# because Python would import from the folder in which the command starts.
_FIND_PYTHON = 'for python in "$@"; do command -v "$python" >/dev/null && exec "$python" -c "$0"; done; exit 127'


def _digest(package: Path, patterns: tuple[str, ...]) -> str:
    """
    Return a hash of a package's files. This runs here and on hosts, so it uses only modules that both this file and
    `_question` import.
    """
    files = sorted(path for pattern in patterns for path in package.glob(pattern))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@cache
def _question() -> str:
    """
    Return a program that prints its Python's path and which of `_PACKAGES` it can import; wanbench counts only if its
    files equal the ones here.
    """
    return f"""
from __future__ import annotations; import hashlib, importlib.util, json, pathlib, sys
sys.path = [folder for folder in sys.path if folder]
{inspect.getsource(_digest)}
specs = {{name: importlib.util.find_spec(name) for name in {tuple(_PACKAGES)}}}
own = specs["wanbench"] and specs["wanbench"].origin
if not own or _digest(pathlib.Path(own).parent, {_ARCHIVED}) != {_digest(_PACKAGE, _ARCHIVED)!r}:
    specs["wanbench"] = None
print(json.dumps({{"executable": sys.executable, "modules": [name for name in specs if specs[name]]}}))
"""


@dataclass(frozen=True)
class HostPython:
    """
    A host's Python: its path, and which of `_PACKAGES` it can import.

    The package wanbench counts only if its files equal those of this installation.
    """

    executable: str
    modules: frozenset[str]


@dataclass
class _Host:
    """
    What is remembered about a host while the lab is open; a new scratch folder means that the host was opened again.
    """

    scratch: str
    python: HostPython | None = None
    programs: set[Path] = field(default_factory=set)


_hosts: WeakKeyDictionary[Host, _Host] = WeakKeyDictionary()


def host_python(host: Host) -> HostPython:
    """
    Find a working Python on a host: `host.python` if it is set; otherwise the path of this process's Python, which
    exists if the host is on this machine; otherwise python3. Raise LabError if none of them works.
    """
    remembered = _remembered(host)
    if remembered.python is None:
        tried = [host.python] if host.python else [sys.executable, "python3"]
        done = host.run(["sh", "-c", _FIND_PYTHON, _question(), *tried], timeout_s=_TIMEOUT_S, ok=None)
        try:
            answer = json.loads(done.stdout)
            remembered.python = HostPython(answer["executable"], frozenset(answer["modules"]))
        except (ValueError, LookupError, TypeError):
            printed = done.stderr.decode(errors="replace").strip()[-300:]
            raise LabError(f"{host.name} has no working Python{': ' * bool(printed)}{printed}.") from None
    return remembered.python


def module_command(host: Host, module: str, *arguments: str, needs: str = "kafka") -> list[str]:
    """
    Return the command that runs a module of `wanbench.measure.kafka` on a host; copy wanbench there if it is missing.

    `needs` is the client library that the module imports: "kafka" (kafka-python) or "confluent_kafka". Raise LabError
    if the host has no Python, or its Python lacks the library.
    """
    python = host_python(host)
    if needs not in python.modules:
        why = f"{python.executable} there cannot import it; install it for that Python"
        raise LabError(f"{host.name} lacks {_PACKAGES[needs]}: {why}.")
    command = [python.executable, "-P", "-m", module, *arguments]
    return command if "wanbench" in python.modules else ["env", f"PYTHONPATH={_archive_on(host)}", *command]


def program_command(host: Host, program: Path) -> list[str]:
    """
    Copy a program file to a host and return the command that runs it, without the program's arguments.

    The program must import only the standard library. Raise LabError if the host has no Python.
    """
    python, remembered = host_python(host).executable, _remembered(host)
    target = f"{remembered.scratch}/{program.name}"
    if program not in remembered.programs:
        put_whole(host, program, target)
        remembered.programs.add(program)
    return [python, target]


def _archive_on(host: Host) -> str:
    """Copy `_ARCHIVED` to the host as a zip file of 0.1 MB, from which Python can import; return its path there."""
    remembered, package = _remembered(host), _PACKAGE
    target = f"{remembered.scratch}/wanbench.zip"
    if package not in remembered.programs:
        with tempfile.TemporaryDirectory(prefix="wanbench-") as folder:
            archive = Path(folder, "wanbench.zip")
            with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
                for path in sorted(path for pattern in _ARCHIVED for path in package.glob(pattern)):
                    file.write(path, f"wanbench/{path.relative_to(package)}")
            put_whole(host, archive, target)
        remembered.programs.add(package)
    return target


def put_whole(host: Host, source: Path, target: str) -> None:
    """Copy a file to a host atomically: a concurrent reader of `target` never sees an incomplete file."""
    unfinished = f"{target}.{uuid.uuid4().hex}"
    host.put(source, unfinished)
    host.run(["mv", "-f", unfinished, target], timeout_s=_TIMEOUT_S)


def _remembered(host: Host) -> _Host:
    scratch = host.scratch
    if host not in _hosts or _hosts[host].scratch != scratch:
        _hosts[host] = _Host(scratch)
    return _hosts[host]

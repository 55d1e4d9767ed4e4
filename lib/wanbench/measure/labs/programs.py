"""
Our own programs on a host: which Python runs them there, and the files that they need.

A host is asked for its Python once; what it answered, and which files it was given, is remembered while the lab is
open.
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
# The modules that our programs import besides the standard library, and the packages that hold them.
_PACKAGES = {"kafka": "kafka-python", "wanbench": "wanbench", "confluent_kafka": "confluent-kafka"}
# Files of wanbench that programs on hosts may import: besides the first, only those of `wanbench.measure.kafka`.
_ARCHIVED = ("__init__.py", "measure/__init__.py", "measure/kafka/**/*.py", "measure/kafka/**/*.json")
_PACKAGE = Path(__file__).parents[2]

# Asks the Python that the host is known to have, or else the first of two that is there: the Python that
# runs this code, which a host on this machine shares, and the host's own python3. `_question` leaves folders
# without a name out of sys.path: Python would look for them where the command starts.
_FIND_PYTHON = 'for python in "$@"; do command -v "$python" >/dev/null && exec "$python" -c "$0"; done; exit 127'


def _digest(package, patterns):
    """A hash of a package's files. Runs here and on hosts, to compare; uses only modules that both import."""
    files = sorted(path for pattern in patterns for path in package.glob(pattern))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@cache
def _question() -> str:
    """Which Python this is, and which modules it has; a wanbench that differs from this one does not count."""
    return f"""
import hashlib, importlib.util, json, pathlib, sys
sys.path = [folder for folder in sys.path if folder]
{inspect.getsource(_digest)}
found = {{name: importlib.util.find_spec(name) for name in {tuple(_PACKAGES)}}}
own = found["wanbench"] and found["wanbench"].origin
if not own or _digest(pathlib.Path(own).parent, {_ARCHIVED}) != {_digest(_PACKAGE, _ARCHIVED)!r}:
    found["wanbench"] = None
print(json.dumps({{"executable": sys.executable, "modules": [name for name in found if found[name]]}}))
"""


@dataclass(frozen=True)
class HostPython:
    """The Python of a host: its path there, and which of `_PACKAGES` it can import; of wanbench, only this one."""

    executable: str
    modules: frozenset[str]


@dataclass
class _Host:
    """What is cached about a host. Its scratch folder identifies one opening of the lab."""

    scratch: str
    python: HostPython | None = None
    programs: set[Path] = field(default_factory=set)


_hosts: WeakKeyDictionary[Host, _Host] = WeakKeyDictionary()


def host_python(host: Host) -> HostPython:
    """
    The Python of a host.

    Raises
    ------
    LabError
        If the host has none, or its Python does not work.
    """
    remembered = _remembered(host)
    if remembered.python is None:
        tried = [host.python] if host.python else [sys.executable, "python3"]
        command = ["sh", "-c", _FIND_PYTHON, _question(), *tried]
        done = host.run(command, timeout_s=_TIMEOUT_S, ok=None)
        try:
            answer = json.loads(done.stdout)
            remembered.python = HostPython(answer["executable"], frozenset(answer["modules"]))
        except (ValueError, LookupError, TypeError):
            printed = done.stderr.decode(errors="replace").strip()[-300:]
            raise LabError(f"{host.name} has no Python that works{': ' * bool(printed)}{printed}.") from None
    return remembered.python


def module_command(host: Host, module: str, *arguments: str, needs: str = "kafka") -> list[str]:
    """
    The command that runs a module of `wanbench.measure.kafka` on a host; puts the package there if the host has none.

    It `needs` "kafka" (kafka-python) or "confluent_kafka". LabError if the host has no Python, or that lacks what the
    module needs.
    """
    command = [_python_with(host, needs), "-P", "-m", module, *arguments]
    if "wanbench" in host_python(host).modules:
        return command
    return ["env", f"PYTHONPATH={_archive_on(host)}", *command]


def program_command(host: Host, program: Path) -> list[str]:
    """
    The command that runs a program file on a host, without its arguments; puts the file there.

    The file needs the standard library alone. LabError if the host has no Python.
    """
    python, remembered = host_python(host).executable, _remembered(host)
    target = f"{remembered.scratch}/{program.name}"
    if program not in remembered.programs:
        put_whole(host, program, target)
        remembered.programs.add(program)
    return [python, target]


def _archive_on(host: Host) -> str:
    """The path of a zip file with `_ARCHIVED`, of 0.1 MB, from which Python imports; puts it on the host."""
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
    """Put a file on a host atomically: a concurrent reader of `target` never sees half of it."""
    unfinished = f"{target}.{uuid.uuid4().hex}"
    host.put(source, unfinished)
    host.run(["mv", "-f", unfinished, target], timeout_s=_TIMEOUT_S)


def _remembered(host):
    scratch = host.scratch
    if host not in _hosts or _hosts[host].scratch != scratch:
        _hosts[host] = _Host(scratch)
    return _hosts[host]


def _python_with(host, module):
    python = host_python(host)
    if module not in python.modules:
        raise LabError(
            f"{host.name} lacks {_PACKAGES[module]}: {python.executable} there cannot import it; "
            "install it for that Python."
        )
    return python.executable

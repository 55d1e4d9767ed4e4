"""
Which runs are still driven from this machine: a lease is a file that its driver holds locked, and that the kernel lets
go when the driver ends, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from wanbench.folders import data_folder

HELD, FREE, UNKNOWN = "held", "free", "unknown"


def lease_folder() -> Path:
    """`leases/` of the data folder; a file per run that was opened from here and is not known to be taken down."""
    return data_folder() / "leases"


class Lease:
    """
    A run's lease, written before the run's first resource is made and removed once nothing of it is left.

    `run` is the id that all resources of the run carry as a tag; `folder`, of mode 0700, is for its keys and goes with
    it; the file itself says on which cloud the run is, and in which account, by a hash.
    """

    def __init__(self, cloud: str, account: str):
        self.run = uuid.uuid4().hex[:16]
        path = lease_path(self.run)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        self._file = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.write(self._file, f"{cloud}\n{_hash(account, self.run)}\n".encode())
        unfinished.rename(path)  # a lease that `sweep` can see is held already
        self.folder = _keys_of(path)
        self.folder.mkdir(mode=0o700)

    def end(self, take_down: Callable[[str], list[str]]) -> list[str]:
        """Take down what the run made, by its id, and let go; what remains."""
        left = ["not known: taking down was cut short"]
        try:
            left = take_down(self.run)
        finally:
            self.release(all_gone=not left)
        return left

    def release(self, all_gone: bool) -> None:
        """Let go; the file stays where something of the run is left, so that `sweep` knows the run as orphaned."""
        if all_gone:
            forget(lease_path(self.run))
        os.close(self._file)


def lease_path(run: str) -> Path:
    """The file of a run's lease. A run's id comes from a tag, so it may be anything and names no other folder."""
    return lease_folder() / f"{''.join(c for c in run if c.isalnum())}.lease"


def lease_state(run: str) -> str:
    """HELD by a driver on this machine, FREE because its driver has ended, or UNKNOWN: opened elsewhere."""
    return _state(lease_path(run))


def free_leases(cloud: str | None = None) -> list[Path]:
    """Leases whose driver has ended without seeing everything gone; of all clouds if None."""
    found = [path for path in sorted(lease_folder().glob("*.lease")) if _state(path) == FREE]
    return [path for path in found if cloud in (None, path.read_text().partition("\n")[0])]


def is_of(path: Path, account: str) -> bool:
    """Whether the run of this lease is in this account; so is one whose lease names none, as earlier ones did."""
    _, _, marked = path.read_text().strip().partition("\n")
    return marked in ("", _hash(account, path.stem))


def forget(path: Path) -> None:
    """Remove a lease and the keys of its run."""
    shutil.rmtree(_keys_of(path), ignore_errors=True)
    path.unlink(missing_ok=True)


def _hash(account, run):
    """Costly to compute, so that nobody finds an account of twelve digits by trying all."""
    return hashlib.scrypt(account.encode(), salt=run.encode(), n=2**13, r=8, p=1, dklen=16).hex()


def _keys_of(path):
    return path.with_suffix(".keys")


def _state(path):
    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return UNKNOWN
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return HELD
    finally:
        os.close(file)
    return FREE

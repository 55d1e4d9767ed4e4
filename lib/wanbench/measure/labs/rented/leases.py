"""
Keep leases: files that show which runs are still controlled from this machine.

The driver of a run (the process that controls it) keeps the lease locked; when the driver ends, for whatever reason,
the kernel releases the lock.
"""

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
    """Return the folder `leases` in the data folder. It has a file for each run whose resources may still exist."""
    return data_folder() / "leases"


class Lease:
    """
    The lease of a run: written before the run's first resource is made, and removed when no resource is left.

    `run` is the id with which all resources of the run are tagged. `folder`, of mode 0700, holds the run's keys and is
    removed with the lease. The file contains the name of the cloud and a hash of the account.
    """

    def __init__(self, cloud: str, account: str):
        self.run = uuid.uuid4().hex[:16]
        path = lease_path(self.run)
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        self._file = os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        os.write(self._file, f"{cloud}\n{_hash(account, self.run)}\n".encode())
        unfinished.rename(path)  # now that it is locked, `sweep` may see it
        self.folder = _keys_of(path)
        self.folder.mkdir(mode=0o700)

    def end(self, take_down: Callable[[str], list[str]]) -> list[str]:
        """Call `take_down` with the run's id and release the lease; return what `take_down` could not delete."""
        left = ["unknown, because deleting was interrupted"]
        try:
            left = take_down(self.run)
        finally:
            self.release(all_gone=not left)
        return left

    def release(self, all_gone: bool) -> None:
        """Unlock the lease. Remove its file if `all_gone`; otherwise `sweep` treats the run as orphaned."""
        if all_gone:
            forget(lease_path(self.run))
        os.close(self._file)


def lease_path(run: str) -> Path:
    """
    Return the path of a run's lease. Characters that no id has are dropped, because anybody can set the tag that
    contains the id.
    """
    return lease_folder() / f"{''.join(c for c in run if c.isalnum())}.lease"


def lease_state(run: str) -> str:
    """Return HELD (by a driver on this machine), FREE (its driver has ended) or UNKNOWN (opened on another machine)."""
    try:
        file = os.open(lease_path(run), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return UNKNOWN
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return HELD
    finally:
        os.close(file)
    return FREE


def free_leases(cloud: str | None = None) -> list[Path]:
    """Return the leases on a cloud (on any cloud if None) whose driver ended before all resources were deleted."""
    free = [path for path in sorted(lease_folder().glob("*.lease")) if lease_state(path.stem) == FREE]
    return [path for path in free if cloud in (None, path.read_text().partition("\n")[0])]


def is_of(path: Path, account: str) -> bool:
    """
    Return whether the run of this lease is in this account; true also for leases of older versions, which name none.
    """
    _, _, account_hash = path.read_text().strip().partition("\n")
    return account_hash in ("", _hash(account, path.stem))


def forget(path: Path) -> None:
    """Remove a lease and the keys of its run."""
    shutil.rmtree(_keys_of(path), ignore_errors=True)
    path.unlink(missing_ok=True)


def _hash(account: str, run: str) -> str:
    """Hash an account. This is slow, so that nobody can find an account of twelve digits by trying all of them."""
    return hashlib.scrypt(account.encode(), salt=run.encode(), n=2**13, r=8, p=1, dklen=16).hex()


def _keys_of(path: Path) -> Path:
    return path.with_suffix(".keys")

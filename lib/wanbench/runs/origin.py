"""The version and git commit of the measuring code."""

from __future__ import annotations

import subprocess
from pathlib import Path

from wanbench import __version__


def origin() -> dict:
    """
    wanbench's version, and commit and dirtiness of the git checkout that it runs from (None where it is in
    none).

    Only a checkout that tracks this file counts, not one that merely contains an installed package.
    """
    here = Path(__file__).resolve()
    commit = dirty = None
    if _git(here.parent, "ls-files", "--error-unmatch", here.name) is not None:
        commit = _git(here.parent, "rev-parse", "HEAD")
        status = _git(here.parent, "status", "--porcelain", "--untracked-files=no")
        dirty = None if status is None else bool(status)
    return {"wanbench_version": __version__, "git_commit": commit, "git_dirty": dirty}


def _git(folder, *arguments):
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None

"""Copies of recorded runs whose raw files were changed, and whose journal and manifest agree with them again."""

import json
import re
import shutil
from pathlib import Path

from wanbench.runs.raw import sha256


def copy(run: Path, folder: Path, change=None) -> Path:
    """Copy a run, with each raw file's text replaced by change(path, text); None keeps it."""
    target = Path(shutil.copytree(run, folder / "copy" / run.name))
    old = {path: sha256(path) for path in target.rglob("*") if path.is_file()}
    for path in old:
        new = change(path.relative_to(target).as_posix(), path.read_bytes()) if change else None
        if new is not None and path.suffix in (".txt", ".json"):
            path.write_bytes(new)
    _agree(target, {before: sha256(path) for path, before in old.items()})
    return target


def edit_journal(target: Path, change) -> None:
    """Replace the text of a copy's journal by change(text)."""
    journal = target / "journal.jsonl"
    before = sha256(journal)
    journal.write_text(change(journal.read_text()))
    manifest = target / "manifest.json"
    manifest.write_text(change(manifest.read_text()).replace(before, sha256(journal)))


def _agree(target: Path, hashes: dict[str, str]) -> None:
    def change(text):
        for before, after in hashes.items():
            text = text.replace(before, after)
        return text

    edit_journal(target, change)


def scaled(rtt: float = 1.0, throughput: float = 1.0, only: str = ""):
    """Return a change that multiplies RTTs in outputs of ping and rates in outputs of iperf3, of tests with a name."""

    def change(path: str, raw: bytes) -> bytes | None:
        if only not in path:
            return None
        if path.startswith("ping/") and rtt != 1:
            by = lambda found: f"{float(found[0]) * rtt:.3f}"  # noqa: E731
            text = re.sub(r"(?<=time=)[\d.]+", by, raw.decode())
            return re.sub(r"(?m)(?<== ).*(?= ms)", lambda f: "/".join(by([x]) for x in f[0].split("/")), text).encode()
        if path.startswith("iperf3/") and throughput != 1 and raw.startswith(b"{"):
            return json.dumps(_scaled(json.loads(raw), throughput)).encode()
        return None

    return change


def _scaled(value, factor: float, name: str = ""):
    if isinstance(value, dict):
        return {key: _scaled(item, factor, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_scaled(item, factor) for item in value]
    if name in ("bytes", "bits_per_second"):
        return type(value)(value * factor)
    return value

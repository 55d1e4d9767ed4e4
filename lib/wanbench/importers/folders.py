"""A folder of files that ping and iperf3 left in other people's scripts. Imports `ingest`, `names`, `assemble`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pandas as pd

from .. import tables
from ..errors import ParameterError, RawDataError
from ..ingest import read_files
from ..ingest.content import as_utf8, decompressed
from .assemble import finished
from .names import region_from
from .provenance import check_about, file_sha256, source
from .sheet import shown

GROUPS = ("from", "to", "from_cloud", "to_cloud", "kind", "run", "setting")
KINDS = ("ping", "iperf3")
PLACE = re.compile(r"\{(\w*)\}")
NAME = re.compile(r"[a-z0-9]+:[a-z0-9]+(?:[-_.][a-z0-9]+)*")
MOST_FILES = 100_000


def read_folder(
    path,
    pattern: str = "{from}_{to}_{kind}.txt",
    *,
    regions: Mapping[str, str] | None = None,
    kind: str | None = None,
    about=None,
) -> dict[str, pd.DataFrame]:
    """
    Tables of a folder of ping's texts and iperf3's JSON: tests, echoes, transfers, intervals, sources, unread, flags.

    Parameters
    ----------
    path : path
        The folder; folders in it are searched, too (links to folders are not followed).
    pattern : str
        How a file's name, from the folder on and with /, tells its pair. A template with `{from}` and `{to}`, and
        perhaps `{from_cloud}`, `{to_cloud}`, `{kind}` (ping or iperf3), `{run}`, `{setting}`; * stands for any
        text without /. Or a regular expression with groups of these names: "(?P<from>.+)-to-(?P<to>.+)[.]json".
    regions : mapping, optional
        What the names of regions in file names mean here. Others are "cloud:code", "cloud-code" or "cloud_code",
        or as `names.region_from` knows them.
    kind : "ping" or "iperf3", optional
        What printed the files. Default: the pattern's kind, else each file's first character ({ for iperf3).
    about : mapping, optional
        title, address, version, licence of them all.

    Notes
    -----
    A file is read by the readers of `ingest`; one that pings several hosts is refused. Files that differ in their
    kind only are one test; its `test_id` is their name with * for the kind, `run_id` the pattern's run, else the
    folder's name. A test has failed if one of its files could not be read, or if iperf3 says that it failed. Files
    whose name or content cannot be read are rows of unread.

    Raises
    ------
    ParameterError
        If the pattern has no from and to, or an unknown name in it.
    RawDataError
        If the folder cannot be read, or no file in it can.

    Examples
    --------
    >>> read_folder("no/such/folder", "{from}_{to}.json")
    Traceback (most recent call last):
        ...
    wanbench.errors.RawDataError: no/such/folder: expected a folder with files, found 'nothing'.
    """
    if not isinstance(pattern, str):
        raise ParameterError(f"pattern is {pattern!r}; allowed: a template or a regular expression")
    _expression(pattern)
    if kind not in (None, *KINDS):
        raise ParameterError(f"kind is {kind!r}; allowed: {', '.join(KINDS)}")
    about = check_about(about)
    folder = Path(path)
    files, unread = [], []
    for name in _names(folder):
        try:
            files.append(_file(folder, name, pattern, dict(regions or {}), kind))
        except RawDataError as error:
            unread.append(_unread(error))
    found = {
        each: read_files([file["path"] for file in files if file["kind"] == each], each) for each in KINDS
    }
    frames = {"echoes": found["ping"]["echoes"]} | {
        name: found["iperf3"][name] for name in ("transfers", "intervals")
    }
    frames["echoes"], of_several = _of_one_host(frames["echoes"])
    unread += of_several
    unread += [row for each in KINDS for row in found[each]["unread"].to_dict("records")]
    broken = {row["path"] for row in unread}
    if not any(str(file["path"]) not in broken for file in files):
        first = unread[0]
        expected = f"{first['expected']} (no file of {len(unread):,} can be read)"
        raise RawDataError(first["path"], None, first["found"], expected)
    whole = {name: _with_context(name, frame, files) for name, frame in frames.items()}
    sources = [
        source(file["path"], file["sha256"], file["bytes"], about)
        for file in files
        if str(file["path"]) not in broken
    ]
    rest = {
        "tests": tables.from_rows("tests", _tests(files, broken, whole)),
        "sources": tables.from_rows("sources", sources),
        "unread": tables.from_rows("unread", unread),
    }
    return finished(whole | rest)


@cache
def _expression(pattern: str) -> re.Pattern:
    """The pattern as a regular expression, its groups checked."""
    text = pattern
    if "(?P<" not in pattern:
        text, end = "", 0
        for place in PLACE.finditer(pattern):
            text += _literal(pattern[end : place.start()])
            name, end = place[1], place.end()
            text += f"(?P={name})" if f"(?P<{name}>" in text else f"(?P<{name}>[^/]+?)"
        text += _literal(pattern[end:])
    try:
        expression = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ParameterError(f"pattern {pattern!r}: {error}; names in it: {', '.join(GROUPS)}") from error
    unknown = sorted(name for name in expression.groupindex if name not in GROUPS)
    lacking = [name for name in ("from", "to") if name not in expression.groupindex]
    if unknown or lacking:
        fault = f"unknown {', '.join(unknown)}" if unknown else f"no {' and no '.join(lacking)}"
        raise ParameterError(f"pattern {pattern!r}: {fault}; names in it: {', '.join(GROUPS)}")
    return expression


def _literal(text):
    return "[^/]*".join(re.escape(part) for part in text.split("*"))


def _names(folder: Path) -> list[str]:
    """The files below a folder, from it on, sorted."""
    found = []
    for place, folders, files in os.walk(folder):
        folders.sort()
        found += [(Path(place) / name).relative_to(folder).as_posix() for name in files]
        if len(found) > MOST_FILES:
            raise RawDataError(folder, None, "more", f"at most {MOST_FILES:,} files")
    if not found:
        raise RawDataError(folder, None, "nothing", "a folder with files")
    return sorted(found)


def _file(folder, name, pattern, regions, kind):
    """What is known of a file before it is read; RawDataError if that is not enough."""
    path = folder / name
    match = _expression(pattern).fullmatch(name)
    if not _is_text(name):
        raise RawDataError(path, None, name, "a name in UTF-8")
    if match is None:
        raise RawDataError(path, None, name, f"a name like {pattern}")
    told = {group: text or "" for group, text in match.groupdict().items()}
    if not path.is_file():
        raise RawDataError(path, None, "no regular file", "a file that can be read")
    ends = {
        f"{end}_region": _region(path, told[end], told.get(f"{end}_cloud"), regions) for end in ("from", "to")
    }
    test = name
    if "kind" in told:
        start, end = match.span("kind")
        test = name[:start] + "*" + name[end:]
    file = {"path": path, "test_id": test, "run_id": told.get("run") or folder.resolve().name, "attempt": 1}
    file |= {"sha256": file_sha256(path), "bytes": path.stat().st_size}
    return (
        file | ends | {"kind": kind or _kind(path, told.get("kind")), "setting": told.get("setting") or None}
    )


def _is_text(name):
    try:
        return name.encode() is not None
    except UnicodeEncodeError:
        return False


def _kind(path, told):
    if told is not None:
        if told.lower() not in KINDS:
            raise RawDataError(path, None, told, f"a kind: {' or '.join(KINDS)}")
        return told.lower()
    with decompressed(path) as (_, file):
        return "iperf3" if as_utf8(file).read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "ping"


def _region(path, text, cloud, regions):
    given = regions.get(text, text)
    tried = [(given, cloud.lower() if cloud else None)]
    first, mark, code = re.sub("[-_]", ":", given, count=1).partition(":")
    tried += [(code, first.lower())] if mark and not cloud else []
    for name, of in tried:
        try:
            return region_from(name, of)
        except ParameterError as error:
            why = str(error)
    plain = f"{cloud}:{given}".lower() if cloud and ":" not in given else given.lower()
    if NAME.fullmatch(plain):
        return plain
    raise RawDataError(path, None, text, f"a region ({why})")


def _unread(error):
    return {
        "path": shown(error.path),
        "line_number": error.line_number,
        "found": shown(error.found),
        "expected": shown(error.expected),
    }


def _of_one_host(echoes):
    """The echoes of files that ping one host, and rows of unread for the others: their name tells only one pair."""
    hosts = echoes.groupby("source_file", sort=False).target.unique()
    several = hosts[hosts.map(len) > 1]
    unread = [
        _unread(
            RawDataError(path, None, ", ".join(targets), "pings of one host: the file's name tells one pair")
        )
        for path, targets in several.items()
    ]
    return echoes[~echoes.source_file.isin(several.index)], unread


def _with_context(name, frame, files):
    """The frame with run, test, attempt and regions of each row's file."""
    known = {str(file["path"]): file for file in files}
    row = frame.source_file
    context = {
        column: row.map({path: file[column] for path, file in known.items()})
        for column in ("run_id", "test_id", "attempt", "from_region", "to_region")
    }
    return tables.validate(name, frame.assign(**context))


def _tests(files, broken, whole):
    """A row per test, with the earliest time in its files."""
    failed, started = {}, {}
    transfers, echoes = whole["transfers"], whole["echoes"]
    wrong = transfers[transfers.error.notna() & transfers.throughput_bps.isna()]
    failed |= dict(zip(wrong.source_file, wrong.error, strict=True))
    failed |= dict.fromkeys(broken, "the file could not be read")
    started |= transfers.groupby("source_file").started_at_utc.min().dropna().to_dict()
    times = pd.to_datetime(
        echoes.groupby("source_file").received_at_s.min().dropna() * 1e6, unit="us", utc=True, errors="coerce"
    )
    started |= times.dropna().to_dict()
    rows = {}
    for file in files:
        path = str(file["path"])
        row = rows.setdefault(
            (file["run_id"], file["test_id"]),
            {
                name: file[name]
                for name in ("run_id", "test_id", "attempt", "setting", "from_region", "to_region")
            }
            | {"outcome": "done", "started_at_utc": None},
        )
        if path in failed and row["outcome"] == "done":
            row |= {"outcome": "failed", "failed_experiment": file["kind"], "reason": failed[path]}
        begun = [time for time in (row["started_at_utc"], started.get(path)) if time is not None]
        row["started_at_utc"] = min(begun, default=None)
    return list(rows.values())

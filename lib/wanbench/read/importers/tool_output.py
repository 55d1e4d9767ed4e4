"""Read a folder of outputs of ping and iperf3 from other people's scripts."""

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from wanbench import tables
from wanbench.checks import refusal
from wanbench.errors import ParameterError, RawDataError
from wanbench.read.ingest import read_files
from wanbench.read.ingest.content import File, as_utf8, decompressed, file_sha256
from wanbench.read.ingest.iperf3_output import is_text

from .assemble import finished
from .originals import About, check_about, source
from .region_names import REGION, region_from
from .sheet import formatted

GROUPS = ("from", "to", "from_cloud", "to_cloud", "kind", "run", "setting")
PATTERNS = f"a template or a regular expression with from and to, and no other names than {', '.join(GROUPS)}"
PATTERN = "{from}_{to}_{kind}.txt"
KINDS = ("ping", "iperf3")
JSON = re.compile(rb"\[?\s*\{")  # The beginning of iperf3's JSON output, or of a list of outputs.
PLACE = re.compile(r"\{(\w*)\}")
MAX_FILES = 100_000  # Above the number of ordered pairs in the catalogue: a larger folder is a mistake.
CONTEXT = ("run_id", "test_id", "attempt", "from_region", "to_region")


def read_folder(
    path: File, pattern: str = PATTERN, *, regions: Mapping[str, str] | None = None, about: About = None
) -> dict[str, pd.DataFrame]:
    """
    Read outputs of ping and iperf3 into tables tests, echoes, transfers, intervals, sources, unread and flags.

    Files whose names differ only in the kind belong to one test. `test_id` is the name of these files with * in place
    of the kind; `run_id` is the run in the name, or else the name of the folder. A test has failed if one of its files
    cannot be read, or if iperf3 reports a failure. Files that cannot be read, and files with pings of several hosts,
    are listed in table unread.

    Raise ParameterError if the pattern lacks from or to, or has an unknown name. Raise RawDataError if the folder, or
    every file in it, cannot be read.

    Parameters
    ----------
    path : path
        The folder. Its subfolders are searched, too, but links to folders are not followed.
    pattern : str
        The form of a file's path below the folder, with /. It is either a template with `{from}` and `{to}`, and
        optionally `{from_cloud}`, `{to_cloud}`, `{kind}` (ping or iperf3), `{run}` and `{setting}`, where * is any text
        without /; or a regular expression with groups of these names: "(?P<from>.+)-to-(?P<to>.+)[.]json". Without a
        kind in its name, the first bytes of a file show the tool that printed it.
    regions : mapping, optional
        Region names by their spelling in file names. Other spellings must be "cloud:code", "cloud-code" or
        "cloud_code", or a form that `region_from` reads.
    about : mapping, optional
        title, address, version and licence of all files.
    """
    if not isinstance(pattern, str):
        raise refusal("pattern", pattern, PATTERNS)
    _expression(pattern)
    about = check_about(about)
    folder = Path(path)
    files, unread = [], []
    for name in _names(folder):
        try:
            files.append(_file(folder, name, pattern, dict(regions or {})))
        except RawDataError as error:
            unread.append(_unread(error))
    read = {tool: read_files([file["path"] for file in files if file["kind"] == tool], tool) for tool in KINDS}
    frames = {name: read["iperf3"][name] for name in ("transfers", "intervals")}
    frames["echoes"], several_hosts = _of_one_host(read["ping"]["echoes"])
    unread += several_hosts
    unread += [row for tool in KINDS for row in read[tool]["unread"].to_dict("records")]
    broken = {row["path"] for row in unread}
    if not any(str(file["path"]) not in broken for file in files):
        first = unread[0]
        expected = f"{first['expected']} (no file of {len(unread):,} can be read)"
        raise RawDataError(first["path"], None, first["found"], expected)
    whole = {name: _with_context(name, frame, files) for name, frame in frames.items()}
    good = [file for file in files if str(file["path"]) not in broken]
    sources = [source(file["path"], file["sha256"], file["bytes"], about) for file in good]
    rows = {"tests": _tests(files, broken, whole), "sources": sources, "unread": unread}
    return finished(whole | {name: tables.from_rows(name, values) for name, values in rows.items()})


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    """Return the pattern as a regular expression, and check its groups."""
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
        raise refusal("pattern", pattern, f"{PATTERNS} ({error})") from error
    if not {"from", "to"} <= set(expression.groupindex) <= set(GROUPS):
        raise refusal("pattern", pattern, PATTERNS)
    return expression


def _literal(text: str) -> str:
    return "[^/]*".join(re.escape(part) for part in text.split("*"))


def _names(folder: Path) -> list[str]:
    names = []
    for parent, folders, files in os.walk(folder):
        folders.sort()
        names += [(Path(parent) / name).relative_to(folder).as_posix() for name in files]
        if len(names) > MAX_FILES:
            raise RawDataError(folder, None, "more", f"at most {MAX_FILES:,} files")
    if not names:
        raise RawDataError(folder, None, "nothing", "a folder with files")
    return sorted(names)


def _file(folder: Path, name: str, pattern: str, regions: Mapping[str, str]) -> dict[str, Any]:
    """Return a file's pair, test, kind and hash; raise RawDataError if its name does not match the pattern."""
    path = folder / name
    match = _expression(pattern).fullmatch(name)
    if name != name.encode("utf-8", "replace").decode():
        raise RawDataError(path, None, name, "a name in UTF-8")
    if match is None:
        raise RawDataError(path, None, name, f"a name like {pattern}")
    groups = {group: text or "" for group, text in match.groupdict().items()}
    if not path.is_file():
        raise RawDataError(path, None, "no regular file", "a file that can be read")
    ends = {f"{end}_region": _region(path, groups[end], groups.get(f"{end}_cloud"), regions) for end in ("from", "to")}
    test = name
    if "kind" in groups:
        start, end = match.span("kind")
        test = name[:start] + "*" + name[end:]
    file = {"path": path, "sha256": file_sha256(path), "bytes": path.stat().st_size}
    file |= {"test_id": test, "run_id": groups.get("run") or folder.resolve().name, "attempt": 1}
    return file | ends | {"kind": _kind(path, groups.get("kind")), "setting": groups.get("setting") or None}


def _kind(path: Path, stated: str | None) -> str:
    if stated is not None:
        if stated.lower() not in KINDS:
            raise RawDataError(path, None, stated, f"a kind: {' or '.join(KINDS)}")
        return stated.lower()
    with decompressed(path) as (_, file):
        start = as_utf8(file).read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
    return "iperf3" if JSON.match(start) or is_text(start.decode(errors="replace")) else "ping"


def _region(path: Path, text: str, cloud: str | None, regions: Mapping[str, str]) -> str:
    given = regions.get(text, text)
    readings, why = [(given, cloud.lower() if cloud else None)], ""
    first, mark, code = re.sub("[-_]", ":", given, count=1).partition(":")
    readings += [(code, first.lower())] if mark and not cloud else []
    for name, its_cloud in readings:
        try:
            return region_from(name, its_cloud)
        except ParameterError as error:
            why = str(error)
    plain = f"{cloud}:{given}".lower() if cloud and ":" not in given else given.lower()
    if REGION.fullmatch(plain):
        return plain
    raise RawDataError(path, None, text, f"a region ({why})")


def _unread(error: RawDataError) -> dict[str, Any]:
    texts = {name: formatted(getattr(error, name)) for name in ("path", "found", "expected")}
    return texts | {"line_number": error.line_number}


def _of_one_host(echoes: pd.DataFrame):
    """Return the echoes of files that ping one host, and a row of table `unread` for each other file."""
    hosts = echoes.groupby("source_file", sort=False).target.unique()
    several = hosts[hosts.map(len) > 1]
    expected = "pings of one host, because the file's name has one pair of regions"
    unread = [_unread(RawDataError(path, None, ", ".join(hosts), expected)) for path, hosts in several.items()]
    return echoes[~echoes.source_file.isin(several.index)], unread


def _with_context(name: str, frame: pd.DataFrame, files: list[dict[str, Any]]) -> pd.DataFrame:
    context = {column: frame.source_file.map({str(file["path"]): file[column] for file in files}) for column in CONTEXT}
    return tables.validate(name, frame.assign(**context))


def _tests(files: list[dict[str, Any]], broken: set[str], whole: Mapping[str, pd.DataFrame]) -> list[dict[str, Any]]:
    transfers, echoes = whole["transfers"], whole["echoes"]
    wrong = transfers[transfers.error.notna() & transfers.throughput_bps.isna()]
    failed = dict(zip(wrong.source_file, wrong.error, strict=True))
    failed |= dict.fromkeys(broken, "the file could not be read")
    times_us = echoes.groupby("source_file").received_at_s.min().dropna() * 1e6
    started = transfers.groupby("source_file").started_at_utc.min().dropna().to_dict()
    started |= pd.to_datetime(times_us, unit="us", utc=True, errors="coerce").dropna().to_dict()
    rows = {}
    for file in files:
        path = str(file["path"])
        new = {name: file[name] for name in (*CONTEXT, "setting")} | {"outcome": "done", "started_at_utc": None}
        row = rows.setdefault((file["run_id"], file["test_id"]), new)
        if path in failed and row["outcome"] == "done":
            row |= {"outcome": "failed", "failed_experiment": file["kind"], "reason": failed[path]}
        times = [time for time in (row["started_at_utc"], started.get(path)) if time is not None]
        row["started_at_utc"] = min(times, default=None)
    return list(rows.values())

"""
Read any table of measurements with a mapping, which states the meaning and the units of its columns.

A mapping is YAML or a dict. `KEYS` lists all keys; any other key is an error. `columns` can be omitted if the names of
the columns are clear: a word for "from" (source, src_region, ...), a word for "to" (destination, ...), and RTTs such as
p50_ms or avg_latency_ms. Other columns are then ignored. The following mapping reads
`data/samples/mapping/made_up.csv`::

    delimiter: ";"
    decimal: ","                  # 12,5 is twelve and a half
    missing: ["k. A."]            # in addition to empty, nan, none, null, na, n/a, -
    columns:                      # our name: name of the column in the file
      from: Quelle
      to: Ziel
      time: Zeit
      setting: Maschine
      mean_rtt: Laufzeit
      throughput: Rate
      sent: Echos
      lost: verloren
    units:                        # required for mapped RTTs, throughputs and durations
      rtt: s
      throughput: MB/s
    time_format: "%d.%m.%Y %H:%M" # as for strptime; default: ISO 8601
    time_zone: Europe/Berlin      # for times without a zone
    # header: [Quelle, Ziel, ...]   names of columns, for a CSV file without a header
    regions:                      # name in the file: our name; not needed for a code, or cloud:code
      Frankfurt: aws:eu-central-1
      Irland: aws:eu-west-1
    constants:                    # values for all rows, instead of a column
      protocol: TCP
      streams: 1
    source:
      title: Made-up measurements that show a mapping
      licence: CC0-1.0
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, refusal
from wanbench.errors import ParameterError
from wanbench.plain_yaml import read_yaml
from wanbench.read.ingest.content import plain_name

from .assemble import finished, measured
from .grid import ANSWERS, LOOSE, SENDS
from .originals import check_about
from .region_names import REGION, region_from
from .sheet import MISSING, Sheet, read_rows
from .times import STATISTICS
from .times import UNITS as TIME_UNITS

RTT_MS = {"s": 1e3, "ms": 1.0, "us": 1e-3}
RATE_BPS = {
    "bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9,
    "bytes/s": 8.0, "kB/s": 8e3, "MB/s": 8e6, "GB/s": 8e9,
    "KiB/s": 8 * 2.0**10, "MiB/s": 8 * 2.0**20, "GiB/s": 8 * 2.0**30,
}  # fmt: skip
DURATION_S = {"s": 1.0, "ms": 1e-3, "min": 60.0}
BYTES = {"bytes": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}
UNITS = {"rtt": RTT_MS, "throughput": RATE_BPS, "duration": DURATION_S, "bytes": BYTES}

RTTS = tuple(f"{name}_rtt" for name in ("min", "mean", "median", "max", "sd", "p90", "p95", "p99"))
RATES = ("throughput", "sent_throughput")
TEXTS = ("from", "to", "cloud", "from_cloud", "to_cloud", "time", "run", "setting", "protocol")
COUNTS = ("sent", "lost", "streams", "retransmits")
COLUMNS = (*TEXTS, *RTTS, *RATES, *COUNTS, "duration", "bytes")
MEASURED = {"rtt": RTTS, "throughput": RATES, "duration": ("duration",), "bytes": ("bytes",)}
QUANTITIES = {name: quantity for quantity, names in MEASURED.items() for name in names}
# Formats by the ending of a file's name.
FORMATS = {"csv": "csv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "jsonl"}
KEYS = (
    "columns", "units", "constants", "regions", "missing", "delimiter", "decimal", "comment", "header", "format",
    "time_format", "time_zone", "source",
)  # fmt: skip
CSV_ONLY = ("delimiter", "decimal", "comment", "header")


@dataclass(frozen=True)
class Reading:
    """A checked mapping, with its keys as attributes (see the example at the top of this module)."""

    columns: dict[str, str]
    units: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    regions: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    delimiter: str = ","
    decimal: str = "."
    comment: str = ""
    header: tuple[str, ...] | None = None
    format: str = "csv"
    time_format: str | None = None
    time_zone: str | None = None
    source: dict[str, str] = field(default_factory=dict)

    @property
    def how(self) -> dict[str, Any]:
        """Return the keyword arguments with which `sheet.read_rows` reads the file."""
        of_csv = {name: getattr(self, name) for name in ("delimiter", "comment", "header")}
        return {"format": self.format} | (of_csv if self.format == "csv" else {})

    def unit(self, column: str) -> str:
        """Return a column's unit; "" for counts and texts."""
        return self.units[QUANTITIES[column]] if column in QUANTITIES else ""

    def factor(self, column: str) -> float:
        """Return the factor that converts a column's unit to ms, bit/s, s or bytes."""
        return UNITS[QUANTITIES[column]][self.unit(column)] if column in QUANTITIES else 1.0


def load_mapping(mapping: Mapping[str, Any] | str | Path | None, path: str | Path = "") -> Reading:
    """
    Load and check a mapping from a YAML file or a dict.

    If the mapping omits `format` or `columns`, the ending of the table's file `path`, and the names of the file's
    columns, determine them. Raise ParameterError for any fault; the error for an unknown key, column or unit lists what
    is allowed.
    """
    where = "mapping"
    mapping = {} if mapping is None else mapping
    if not isinstance(mapping, Mapping):
        where = str(mapping)
        mapping = _yaml(mapping)
    _check_names(where, mapping, KEYS)
    texts: dict[str, Any] = {key: _texts(mapping, key, where) for key in ("columns", "units", "constants", "regions")}
    layout = _layout(mapping, path, where)
    if path and "columns" not in mapping:
        names = read_rows(path, **Reading({}, **layout).how).names
        texts["columns"], unit = _usual(names, texts["constants"])
        texts["units"] = unit | texts["units"]
        where += f" (not given for the columns {', '.join(names)[:200]})"
    _check_names(f"{where}, columns", texts["columns"], COLUMNS)
    _check_names(f"{where}, constants", texts["constants"], COLUMNS)
    if both := sorted(set(texts["columns"]) & set(texts["constants"])):
        raise ParameterError(f"{where}: {', '.join(both)} is both a column and a constant; choose one.")
    mapped = {**texts["columns"], **texts["constants"]}
    values = (*RTTS, *RATES, "lost")
    if not {"from", "to"} <= set(mapped) or not any(name in mapped for name in values):
        raise ParameterError(f"{where} lacks columns; allowed: from, to, and at least one of {', '.join(values)}.")
    _check_units(texts["units"], mapped, where)
    return Reading(**texts, **layout, source=check_about(mapping.get("source")))


def _usual(names: Iterable[str], constants: Iterable[str]) -> tuple[dict[str, str], dict[str, str]]:
    """
    Return columns and the unit of RTTs from names of columns; raise ParameterError if two names mean the same column.
    """
    columns: dict[str, str] = {}
    units = set()
    for name in names:
        words = re.findall(r"[a-zµμ]+[0-9]*", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
        ends = {word in ANSWERS for word in words if word in SENDS + ANSWERS and word not in LOOSE}
        meant = {STATISTICS[word].removesuffix("_ms") for word in words if word in STATISTICS}
        if len(ends) == 1:
            cloud = "_cloud" if {"cloud", "provider"} & set(words) else ""
            meant = {("to" if ends.pop() else "from") + cloud}
        elif meant:
            units |= {own for own, ms in RTT_MS.items() if ms == TIME_UNITS.get(words[-1])}
        for column in meant - set(constants):
            if column in columns:
                raise ParameterError(
                    f"columns is not given, but {columns[column]} and {name} can both be {column}; allowed: a mapping "
                    "with columns."
                )
            columns[column] = name
    return columns, {"rtt": units.pop()} if len(units) == 1 else {}


def _yaml(path: str | Path) -> dict[str, Any]:
    if not isinstance(path, str | PathLike):
        raise refusal("mapping", path, "a dict, or the path of a file in YAML")
    content = read_yaml(path, "mapping")
    if not isinstance(content, dict):
        raise refusal(f"content of {path}", content, f"a mapping with the keys {', '.join(KEYS)}")
    return content


def _check_names(where: str, given: Iterable[object], allowed: Collection[str]) -> None:
    if unknown := sorted(str(key) for key in given if key not in allowed):
        raise ParameterError(f"{where} holds unknown {', '.join(unknown)}; allowed: {', '.join(allowed)}.")


def _texts(mapping: Mapping[str, Any], key: str, where: str) -> dict[str, str]:
    """Return a mapping of names to texts; numbers become texts."""
    value = {} if mapping.get(key) is None else mapping[key]
    if not isinstance(value, Mapping):
        raise refusal(f"{where}: {key}", value, "names with values")
    for name, text in value.items():
        if not isinstance(name, str) or isinstance(text, bool) or not isinstance(text, str | int | float):
            raise refusal(f"{where}: {key}: {name!r}", text, "a string, under a name that is a string")
    return {name: str(text) for name, text in value.items()}


def _check_units(units: dict[str, str], mapped: Collection[str], where: str) -> None:
    _check_names(f"{where}, units", units, UNITS)
    for quantity, names in MEASURED.items():
        used = [name for name in names if name in mapped]
        allowed = f"{', '.join(UNITS[quantity])} (case matters)"
        if used and quantity == "bytes":
            units.setdefault("bytes", "bytes")
        if used and quantity not in units:
            raise ParameterError(f"{where}: units lacks {quantity}, the unit of {', '.join(used)}; allowed: {allowed}.")
        if quantity in units and units[quantity] not in UNITS[quantity]:
            raise refusal(f"{where}: unit of {quantity}", units[quantity], allowed)


def _layout(mapping: Mapping[str, Any], path: str | Path, where: str) -> dict[str, Any]:
    """Return the checked format of the file: format, delimiter, decimal, comment, missing values and times."""
    ending = Path(plain_name(path)).suffix.lower().lstrip(".")
    layout: dict[str, Any] = {"format": mapping.get("format", FORMATS.get(ending, "csv"))}
    check_choice(f"{where}: format", layout["format"], dict.fromkeys(FORMATS.values()))
    csv_only = [key for key in CSV_ONLY if key in mapping]
    if csv_only and layout["format"] != "csv":
        raise refusal(f"{where}: format", layout["format"], f"csv, because {', '.join(csv_only)} apply to csv only")
    layout |= {key: mapping[key] for key in csv_only}
    delimiter, decimal, comment = (layout.get(key, default) for key, default in zip(CSV_ONLY, ",.#", strict=False))
    if not isinstance(delimiter, str) or len(delimiter) != 1 or delimiter in '"\r\n\0':
        raise refusal(f"{where}: delimiter", delimiter, "one character, not a quote or line break")
    if decimal not in (".", ",") or decimal == delimiter:
        raise refusal(f"{where}: decimal", decimal, f"'.' or ',', and not the delimiter, {delimiter!r}")
    if not isinstance(comment, str) or not comment:
        raise refusal(f"{where}: comment", comment, "the text that begins a comment")
    header = layout.get("header")
    if header is not None and not _are_texts(header, allow_empty=False):
        raise refusal(f"{where}: header", header, "a list of names, for a file without a header")
    missing = mapping.get("missing", [])
    if not _are_texts(missing):
        raise refusal(f"{where}: missing", missing, "a list of texts")
    return layout | {"missing": tuple(text.strip().lower() for text in missing)} | _times(mapping, where)


def _are_texts(values: object, allow_empty: bool = True) -> bool:
    return isinstance(values, list) and all(isinstance(text, str) and (text or allow_empty) for text in values)


def _times(mapping: Mapping[str, Any], where: str) -> dict[str, str | None]:
    form, zone = mapping.get("time_format"), mapping.get("time_zone")
    if form is not None and (not isinstance(form, str) or "%" not in form):
        raise refusal(f"{where}: time_format", form, "a format of strptime, such as '%d.%m.%Y %H:%M'")
    if zone is not None:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, TypeError, OSError) as error:
            raise refusal(f"{where}: time_zone", zone, "UTC, Europe/Berlin, ...") from error
    return {"time_format": form, "time_zone": zone}


MAX_VALUE = 1e18  # In the units of the tables, no measurement is larger.
MAX_COUNT = 2.0**53  # A float represents every integer up to this one.
PROTOCOLS = ("TCP", "UDP", "SCTP")


def read_table(path: str | Path, mapping: Mapping[str, Any] | str | Path | None = None) -> dict[str, pd.DataFrame]:
    """
    Read a CSV or JSON lines file into tables tests, pings, transfers, sources, unread and flags.

    The file has one row per measurement of an ordered pair of regions. `mapping` (a path or dict) states the meaning
    and the units of the file's columns: see the example at the top of this module. No mapping is needed if the names of
    columns are clear, such as source, destination and p50_ms.

    A region is written as in the mapping's `regions`, as "cloud:code", or in a form that `region_from` reads. A region
    that is not in the catalogue must be "cloud:code", or have its cloud in another column; its distances are unknown.
    `test_id` is the file's name and line. A row without any measurement is a failed test.

    Raise ParameterError, which names the key and what is allowed, if the mapping has a fault. Raise RawDataError if a
    column of the mapping is missing, or no row can be read. Single rows that cannot be read are listed in table unread.

    >>> from wanbench.folders import samples_folder
    >>> folder = samples_folder() / "mapping"
    >>> made_up = read_table(folder / "made_up.csv", folder / "made_up.yml")
    >>> made_up["pings"][["from_region", "mean_rtt_ms"]].values.tolist()[0]
    ['aws:eu-central-1', 25.5]
    """
    reading = load_mapping(mapping, path)
    sheet = read_rows(path, about=reading.source, **reading.how)
    sheet.need(*reading.columns.values())
    return _MappedSheet(sheet, reading).tables()


class _MappedSheet:
    """A sheet whose columns are accessed by their names in the mapping."""

    def __init__(self, sheet: Sheet, reading: Reading):
        self.sheet, self.reading = sheet, reading
        sheet.missing = (*MISSING, *reading.missing)
        for name, text in reading.constants.items():
            sheet.replace(f"constant {name}", pd.Series(text, index=range(len(sheet)), dtype="str"))

    def has(self, name: str) -> bool:
        return name in self.reading.columns or name in self.reading.constants

    def column(self, name: str) -> str:
        """Return the column's name in the sheet."""
        return self.reading.columns.get(name, f"constant {name}")

    def text(self, name: str) -> pd.Series:
        """Return a column's texts; "" for missing values."""
        texts = self.sheet.text(self.column(name))
        return texts.where(~texts.str.lower().isin(self.sheet.missing), "")

    def number(self, name: str, *, whole: bool = False, minimum: float = 0) -> pd.Series | None:
        """Return a column's numbers in the units of the tables; None if the mapping does not have the column."""
        if not self.has(name):
            return None
        decimal = self.reading.decimal if name in self.reading.columns else "."
        column = self.column(name)
        if unit := self.reading.unit(name):
            self.sheet.replace(column, self.sheet.text(column).str.removesuffix(unit).str.rstrip())
        values = self.sheet.number(column, decimal=decimal, whole=whole, minimum=minimum)
        with np.errstate(over="ignore"):
            values = values * self.reading.factor(name)
        maximum = MAX_COUNT if name == "bytes" else MAX_VALUE
        self.sheet.refuse(values > maximum, self.text(name), f"{column}: at most {maximum:.0e}")
        return values.where(values <= maximum)

    def regions(self, end: str) -> pd.Series:
        """Return the regions at one end ("from" or "to"), and refuse rows whose text does not name one."""
        texts = self.text(end)
        clouds = self.text(f"{end}_cloud" if self.has(f"{end}_cloud") else "cloud").str.lower()
        row, different = pd.MultiIndex.from_arrays([texts, clouds]).factorize()
        names = []
        for k, (text, cloud) in enumerate(different):
            try:
                names.append(self._region(text, cloud))
            except ParameterError as error:
                names.append("")
                self.sheet.refuse(row == k, texts, f"{self.column(end)}: a region ({error})")
        return pd.Series(np.array(names, dtype=object)[row], dtype="str")

    def _region(self, text: str, cloud: str) -> str:
        given = str(self.reading.regions.get(text, text))
        try:
            return region_from(given, cloud or None)
        except ParameterError:
            name = given.lower() if ":" in given or not cloud else f"{cloud}:{given.lower()}"
            if REGION.fullmatch(name):
                return name
            raise

    def tables(self) -> dict[str, pd.DataFrame]:
        ends = {f"{end}_region": self.regions(end) for end in ("from", "to")}
        started = pd.Series(pd.NaT, index=range(len(self.sheet)), dtype="datetime64[us, UTC]")
        if self.has("time"):
            zone, form = self.reading.time_zone, self.reading.time_format
            started = self.sheet.time(self.column("time"), zone, form)
        rtts = {f"{name}_ms": self.number(name) for name in RTTS}
        rates = {f"{name}_bps": self.number(name) for name in RATES}
        counts = {name: self.number(name, whole=True, minimum=int(name == "streams")) for name in COUNTS}
        size = self.number("bytes")
        rates |= {"duration_s": self.number("duration"), "bytes": None if size is None else size.round()}
        rates |= {name: counts[name] for name in ("streams", "retransmits")}
        rates |= {"protocol": self._protocol(rates), "direction": "forward"}
        echoes = {"n_sent": counts["sent"], "n_lost": counts["lost"]}
        sent, lost = counts["sent"], counts["lost"]
        if sent is not None and lost is not None:
            self.sheet.refuse(lost > sent, lost, f"{self.column('lost')}: at most the number sent")
        replied = self._any([column for name, column in rtts.items() if name != "sd_rtt_ms"] + [counts["lost"]])
        carried = self._any([rates["throughput_bps"], rates["sent_throughput_bps"]])
        runs, setting = self.text("run"), self.text("setting")
        test = ends | {"run_id": runs.where(runs != "", Path(self.sheet.path).name)}
        outcome = {"setting": setting.where(setting != ""), "started_at_utc": started}
        outcome |= {"done": replied | carried, "reason": "no measurement"}
        kinds = {"pings": (rtts | echoes, replied), "transfers": (rates, carried)}
        return finished(measured(self.sheet, test, outcome, kinds))

    def _protocol(self, rates: Mapping[str, object]) -> pd.Series | None:
        if rates["throughput_bps"] is None and rates["sent_throughput_bps"] is None:
            return None
        if not self.has("protocol"):
            lacking = "mapping lacks protocol (a column or a constant), which throughputs need"
            raise ParameterError(f"{lacking}; allowed: {', '.join(PROTOCOLS)}.")
        return self.sheet.matching(self.column("protocol"), "|".join(PROTOCOLS), ", ".join(PROTOCOLS))

    def _any(self, columns: Iterable[pd.Series | None]) -> np.ndarray:
        masks = [column.notna().to_numpy() for column in columns if column is not None]
        return np.logical_or.reduce([np.zeros(len(self.sheet), dtype=bool), *masks])

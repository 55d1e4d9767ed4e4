"""
Any table of measurements, with a mapping that says what its columns mean. Imports `provenance`, `ingest`, `errors`.

A mapping is YAML (or a dict of the same shape). Only `columns` must be there; every key is listed in `KEYS`, and
one that is not is an error. This one reads `data/samples/mapping/made_up.csv`::

    delimiter: ";"
    decimal: ","                  # 12,5 is twelve and a half
    missing: ["k. A."]            # beside empty, nan, none, null, na, n/a, -
    columns:                      # what it is here: the column's name there
      from: Quelle
      to: Ziel
      time: Zeit
      setting: Maschine
      mean_rtt: Laufzeit
      throughput: Rate
      sent: Echos
      lost: verloren
    units:                        # must be said for what is mapped: RTTs, throughputs, durations
      rtt: s
      throughput: MB/s
    time_format: "%d.%m.%Y %H:%M" # as of strptime; default: ISO 8601
    time_zone: Europe/Berlin      # of times that do not say theirs
    regions:                      # names there: names here; others are a code, or cloud:code
      Frankfurt: aws:eu-central-1
      Irland: aws:eu-west-1
    constants:                    # the same for all rows, in place of a column
      protocol: TCP
      streams: 1
    source:
      title: Made-up measurements that show a mapping
      licence: CC0-1.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from zoneinfo import ZoneInfo

import yaml

from ..errors import ParameterError
from ..ingest.content import plain_name
from .provenance import check_about

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
FORMATS = ("csv", "jsonl", "parquet")
KEYS = (
    "columns", "units", "constants", "regions", "missing", "delimiter", "decimal", "comment", "format", "time_format",
    "time_zone", "source",
)  # fmt: skip
CSV_ONLY = ("delimiter", "decimal", "comment")


@dataclass(frozen=True)
class Reading:
    """A mapping, checked: its keys as attributes (see the module's text)."""

    columns: dict[str, str]
    units: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    regions: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    delimiter: str = ","
    decimal: str = "."
    comment: str | None = None
    format: str = "csv"
    time_format: str | None = None
    time_zone: str | None = None
    source: dict[str, str] = field(default_factory=dict)

    def factor(self, column: str) -> float:
        """By what a column's numbers are multiplied to be ms, bit/s, s or bytes."""
        for quantity, names in MEASURED.items():
            if column in names:
                return UNITS[quantity][self.units[quantity]]
        return 1.0


def load_mapping(mapping, path="") -> Reading:
    """
    A mapping from a YAML file, or a dict, checked.

    `path` is the table that it is for: `format` follows from its ending where the mapping does not say. All
    faults are ParameterErrors: unknown keys, columns and units are named with those allowed.
    """
    where = "mapping"
    if not isinstance(mapping, Mapping):
        where = str(mapping)
        mapping = _yaml(mapping)
    _known(mapping, KEYS, where)
    told = {key: _strings(mapping, key, where) for key in ("columns", "units", "constants", "regions")}
    _known(told["columns"], COLUMNS, f"{where}, columns")
    _known(told["constants"], COLUMNS, f"{where}, constants")
    both = sorted(set(told["columns"]) & set(told["constants"]))
    if both:
        raise ParameterError(f"{where}: {', '.join(both)} cannot be a column and a constant")
    mapped = {**told["columns"], **told["constants"]}
    lacking = [name for name in ("from", "to") if name not in mapped]
    if lacking or not any(name in mapped for name in (*RTTS, *RATES, "lost")):
        raise ParameterError(
            f"{where}: columns must say from, to, and at least one of {', '.join((*RTTS, *RATES, 'lost'))}"
        )
    _check_units(told["units"], mapped, where)
    shape = _shape(mapping, path, where)
    about = check_about(mapping.get("source"))
    return Reading(**told, **shape, source=about)


def _yaml(path):
    if not isinstance(path, str | PathLike):
        raise ParameterError(f"mapping is {path!r}; allowed: a dict, or the path of a file in YAML")
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise ParameterError(f"{path}: no mapping in YAML: {error}") from error
    if not isinstance(content, dict):
        raise ParameterError(f"{path}: a mapping has keys ({', '.join(KEYS)}), found {content!r}")
    return content


def _known(given, allowed, where):
    unknown = sorted(str(key) for key in given if key not in allowed)
    if unknown:
        raise ParameterError(f"{where}: unknown {', '.join(unknown)}; allowed: {', '.join(allowed)}")


def _strings(mapping, key, where):
    """Names to texts; a plain number is taken as it is written."""
    value = mapping.get(key)
    if value is None:
        value = {}
    if not isinstance(value, Mapping):
        raise ParameterError(f"{where}: {key} must be names with values, not {value!r}")
    for name, text in value.items():
        if not isinstance(name, str) or isinstance(text, bool) or not isinstance(text, str | int | float):
            raise ParameterError(f"{where}: {key}: {name!r} must be a text that has a text, not {text!r}")
    return {name: str(text) for name, text in value.items()}


def _check_units(units, mapped, where):
    _known(units, UNITS, f"{where}, units")
    for quantity, names in MEASURED.items():
        used = [name for name in names if name in mapped]
        allowed = ", ".join(UNITS[quantity])
        if used and quantity not in units and quantity != "bytes":
            raise ParameterError(
                f"{where}: units must say {quantity}, of {', '.join(used)}; allowed: {allowed}"
            )
        if used and quantity == "bytes":
            units.setdefault("bytes", "bytes")
        if quantity in units and units[quantity] not in UNITS[quantity]:
            raise ParameterError(
                f"{where}: unit of {quantity} is {units[quantity]!r}; allowed: {allowed} (case matters)"
            )


def _shape(mapping, path, where):
    """How the file is written."""
    ending = Path(plain_name(path)).suffix.lower().lstrip(".")
    guess = {"jsonl": "jsonl", "ndjson": "jsonl", "json": "jsonl", "parquet": "parquet"}.get(ending, "csv")
    shape = {"format": mapping.get("format", guess)}
    if shape["format"] not in FORMATS:
        raise ParameterError(f"{where}: format is {shape['format']!r}; allowed: {', '.join(FORMATS)}")
    foreign = [key for key in CSV_ONLY if key in mapping and shape["format"] != "csv"]
    if foreign:
        raise ParameterError(
            f"{where}: {', '.join(foreign)} are of csv only; the format is {shape['format']}"
        )
    for key, allowed in (("delimiter", "one character"), ("decimal", "one character"), ("comment", "text")):
        if key in mapping:
            value = mapping[key]
            if not isinstance(value, str) or not value or (allowed != "text" and len(value) != 1):
                raise ParameterError(f"{where}: {key} is {value!r}; allowed: {allowed}")
            shape[key] = value
    bad = shape.get("decimal", ".") not in ".,", shape.get("delimiter", ",") in '"\r\n\0'
    if any(bad) or shape.get("decimal", ".") == shape.get("delimiter", ","):
        raise ParameterError(
            f"{where}: decimal is . or , and not the delimiter, which is no quote or line break"
        )
    missing = mapping.get("missing", [])
    if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
        raise ParameterError(f"{where}: missing is {missing!r}; allowed: a list of texts")
    return shape | {"missing": tuple(text.strip().lower() for text in missing)} | _times(mapping, where)


def _times(mapping, where):
    form, zone = mapping.get("time_format"), mapping.get("time_zone")
    if form is not None and (not isinstance(form, str) or "%" not in form):
        raise ParameterError(f"{where}: time_format is {form!r}; allowed: as of strptime, '%d.%m.%Y %H:%M'")
    if zone is not None:
        try:
            ZoneInfo(zone)
        except (KeyError, ValueError, TypeError, OSError) as error:
            raise ParameterError(
                f"{where}: time_zone is {zone!r}; allowed: UTC, Europe/Berlin, ..."
            ) from error
    return {"time_format": form, "time_zone": zone}

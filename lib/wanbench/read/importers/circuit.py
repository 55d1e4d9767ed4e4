"""Read the utilisation of a circuit over time from exports of its operator's portal."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench.checks import check_choice, check_number
from wanbench.errors import ParameterError, RawDataError

from .assemble import finished, origins, table_of
from .originals import About, read_bytes
from .sheet import Sheet, decoded, formatted, read_csv, read_jsonl

RATES = {"bps": 1.0, "kbps": 1e3, "mbps": 1e6, "gbps": 1e9}  # Bits per second of the unit in a column's name.
PERCENT = "percent"
WAYS = ("in", "out")
# Names of columns that are read.
NAMES = (
    "time", "circuit", *(f"{way}_{unit}" for way in WAYS for unit in (*RATES, PERCENT)),
    *(f"capacity_{unit}" for unit in RATES),
)  # fmt: skip
DAY_FIRST = r"^([0-9]{2})\.([0-9]{2})\.([0-9]{4}),? +([0-9:.]+)$"
GAP = 1.5  # Rows that are more than so many usual intervals apart have a gap between them; clocks shift rows by less.


def read_circuit(
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    capacity_bps: float | None = None,
    time_zone: str | None = None,
    decimal: str | None = None,
    about: About = None,
) -> dict[str, pd.DataFrame]:
    """
    Read a circuit's utilisation over time into tables metrics, sources and unread; other tables are empty.

    Raise ParameterError if a parameter is not as described. Raise RawDataError if a column is missing, the unit in its
    name is not one of those below, or no row can be read.

    Parameters
    ----------
    path : path
        CSV with a header, or JSON: a list of objects, or an object per line. There is one row per time and circuit.
        Columns are `time` (the end of the row's interval, in ISO 8601 or Unix seconds), `in_<unit>` and `out_<unit>`,
        and optionally `circuit` (by default the file's name) and `capacity_<unit>`. Units are bps, kbps, mbps and gbps
        (bits per second with decimal prefixes) or, except for the capacity, percent. Other columns are ignored, but an
        unknown unit is an error. CSV from European spreadsheets can have semicolons, decimal commas and times such as
        31.12.2026 10:05.
    columns : mapping, optional
        Names of columns in the file that differ from the names above, such as {"in_mbps": "Rx (Mbps)"}.
    capacity_bps : float, optional
        The capacity, if no column has it. Without a capacity, percentages are not converted, and must be at most 100.
    time_zone : str, optional
        Time zone of times that state none, such as "Europe/Berlin".
    decimal : "." or ",", optional
        The decimal mark. Default: a comma in CSV with semicolons, otherwise a point.
    about : mapping, optional
        title, address, version, licence of the file.

    Notes
    -----
    Table metrics has the metrics "in", "out" and "capacity" with the source "circuit". Rows of a circuit can be in
    ascending or descending order of time. A row that cannot be read, has a negative value or breaks the order is
    reported in table unread, and so are missing values and gaps (at the row after the gap). Gaps are not filled.
    `methods.lab.utilisation.circuit_capacity` computes the utilisation.
    """
    columns = dict(columns or {})
    if unknown := [str(column) for column in columns if column not in NAMES]:
        raise ParameterError(f"columns has {', '.join(unknown)}; allowed: {', '.join(NAMES)}.")
    check_number("capacity_bps", capacity_bps, 0, above=True, optional=True)
    check_choice("decimal", decimal, (".", ","), optional=True)
    sheet, usual = _sheet(path, about)
    there = {column: columns.get(column, column) for column in NAMES if columns.get(column, column) in sheet.names}
    _check_columns(sheet, columns, there)
    at = _times(sheet, there["time"], time_zone)
    names = sheet.text(there.get("circuit"))
    names = names.where(names != "", Path(path).name.partition(".")[0])
    capacity = _first_of(sheet, there, "capacity", decimal or usual)
    capacity = pd.Series(capacity_bps, index=at.index, dtype=float) if capacity is None else capacity
    sheet.refuse(capacity <= 0, capacity, "a capacity above 0")
    values = {way: _way(sheet, there, way, capacity, decimal or usual) for way in WAYS}
    interval_s = _intervals(sheet, at, names)
    for way, (value, _) in values.items():
        for line in sheet.lines[value.isna() & sheet.good]:
            sheet.refuse_line(int(line), "nothing", f"a value of {way}: the circuit's rate is not known at this time")
    every = {"source_file": sheet.path, "source": "circuit", "cumulative": False, "at_utc": at, "subject": names}
    every |= {"statistic": "Average", "interval_s": interval_s}
    made, parts = origins(sheet), []
    for name, (value, unit) in {**values, "capacity": (capacity, "bit/s")}.items():
        row = every | {"metric": name, "value": value, "unit": pd.Series(unit, index=at.index)}
        parts.append(table_of("metrics", row, sheet.good & value.notna()))
    return finished(made | {"metrics": pd.concat(parts, ignore_index=True)})


def _sheet(path: str | Path, about: About) -> tuple[Sheet, str]:
    """Read the file; return its sheet and its usual decimal mark."""
    data = read_bytes(path)
    text = decoded(path, data).strip()
    if text[:1] in ("[", "{"):
        return read_jsonl(path, about=about), "."
    header = text.partition("\n")[0]
    if "," in header and ";" in header:
        raise RawDataError(path, 1, formatted(header), "a header with commas or with semicolons, not both")
    delimiter, decimal = (";", ",") if ";" in header else (",", ".")
    return read_csv(path, delimiter=delimiter, about=about), decimal


def _check_columns(sheet: Sheet, columns: Mapping[str, str], there: Mapping[str, str]) -> None:
    for name in columns.values():
        sheet.need(name)
    others = [name for name in sheet.names if name not in there.values()]
    if unknown := [name for name in others if name.lower().startswith(("in_", "out_", "capacity_"))]:
        allowed = f"columns {', '.join(NAMES)}; the parameter columns translates other names"
        raise RawDataError(sheet.path, sheet.header_line, f"column {', '.join(unknown)}", allowed)
    sheet.need(columns.get("time", "time"))
    for what in (*WAYS, "capacity"):
        found = [column for column in there if column.startswith(f"{what}_")]
        if len(found) > 1 or (what in WAYS and not found):
            units = ", ".join(RATES if what == "capacity" else (*RATES, PERCENT))
            given = ", ".join(there[column] for column in found) or f"columns {', '.join(sheet.names)}"
            raise RawDataError(sheet.path, sheet.header_line, given, f"one column {what}_ with one of {units}")


def _times(sheet: Sheet, name: str, time_zone: str | None) -> pd.Series:
    texts = sheet.text(name)
    unix = texts.str.fullmatch(r"[0-9]{9,10}(\.[0-9]+)?")
    if unix.any():
        iso = pd.to_datetime(texts.where(unix).astype(float), unit="s", utc=True).dt.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        sheet.replace(name, texts.where(~unix, iso))
    texts = sheet.text(name)
    sheet.replace(name, texts.str.replace(DAY_FIRST, r"\3-\2-\1T\4", regex=True))
    at = sheet.time(name, time_zone)
    sheet.refuse(at.isna(), texts, f"{name}: a time")
    return at


def _first_of(sheet: Sheet, there: Mapping[str, str], what: str, decimal: str) -> pd.Series | None:
    """Return a quantity in bit/s, from the first column in one of the quantity's units; None without such a column."""
    unit = next((unit for unit in RATES if f"{what}_{unit}" in there), None)
    return None if unit is None else sheet.number(there[f"{what}_{unit}"], decimal=decimal) * RATES[unit]


def _way(sheet: Sheet, there: Mapping[str, str], way: str, capacity: pd.Series, decimal: str):
    rate = _first_of(sheet, there, way, decimal)
    if rate is not None:
        return rate, "bit/s"
    name = there[f"{way}_{PERCENT}"]
    percent = sheet.number(name, decimal=decimal)
    too_much = (percent > 100) & capacity.isna()
    sheet.refuse(too_much, sheet.text(name), f"{name}: at most 100, as the capacity is not known")
    rates = capacity.notna()
    return (percent / 100 * capacity).where(rates, percent), np.where(rates, "bit/s", "%")


def _intervals(sheet: Sheet, at: pd.Series, names: pd.Series) -> pd.Series:
    """
    Return, for each row, the time in s since the row before; for the first row and after a gap, the usual time between
    rows.
    """
    interval_s = pd.Series(np.nan, index=at.index)
    texts = at.astype(str)
    for name in names[sheet.good].unique():
        rows = np.flatnonzero((names == name) & sheet.good)
        if at.iloc[rows].is_monotonic_decreasing:  # many portals export the newest row first
            rows = rows[::-1]
        times = at.iloc[rows]
        behind = times <= times.cummax().shift()
        sheet.refuse(at.index.isin(rows[behind]), texts, f"a time after the row before of circuit {name}")
        rows = rows[~behind]
        since_s = at.iloc[rows].diff().dt.total_seconds()
        usual_s = since_s.quantile(0.5, interpolation="lower")  # of two, the longer may be a gap
        late = since_s > GAP * usual_s
        for row in rows[late]:
            found = f"{since_s[row]:g} s after the row before of circuit {name}"
            sheet.refuse_line(int(sheet.lines[row]), found, f"a row every {usual_s:g} s: rates between are not known")
        interval_s.iloc[rows] = since_s.mask(late).fillna(usual_s)
    return interval_s

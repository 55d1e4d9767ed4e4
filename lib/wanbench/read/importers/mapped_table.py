"""A user's own table, read by a mapping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from wanbench import tables
from wanbench.errors import ParameterError

from .assemble import finished, table_of
from .mapping import COUNTS, RATES, RTTS, Reading, load_mapping
from .region_names import REGION, region_from
from .sheet import MISSING, Sheet, read_rows

MAX_VALUE = 1e18
"""No measurement in the units of the tables is larger."""
MAX_BYTES = 2.0**53
"""Above it a float does not hold every whole number."""
PROTOCOLS = ("TCP", "UDP", "SCTP")


def read_table(path, mapping=None) -> dict[str, pd.DataFrame]:
    """
    Tables of measurements in a CSV, JSON lines or Parquet file: tests, pings, transfers, sources, unread, flags.

    Parameters
    ----------
    path : path
        One row per measurement of an ordered pair of regions.
    mapping : path or dict, optional
        The meaning and units of its columns: see the example in `importers.mapping`. Not needed for columns whose names
        say it, such as source, destination and p50_ms.

    Notes
    -----
    A region may be written as in the mapping's `regions`, as "cloud:code", or in a form that `region_from` reads. A
    region outside the catalogue must be "cloud:code" or have its cloud in another column, and has no distance.
    `test_id` is the file's name and line (in Parquet: its row). A row without any measurement is a failed test.

    Raises
    ------
    ParameterError
        If the mapping has a fault: the error names the key and what is allowed.
    RawDataError
        If a column in the mapping is missing, or no row can be read. Single rows that cannot be read are rows of
        unread.

    Examples
    --------
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
    """A sheet whose columns are asked for by their names in the mapping."""

    def __init__(self, sheet: Sheet, reading: Reading):
        self.sheet, self.reading = sheet, reading
        self.missing = (*MISSING, *reading.missing)
        for name, text in reading.constants.items():
            sheet.replace(f"constant {name}", pd.Series(text, index=range(len(sheet)), dtype="str"))

    def has(self, name):
        return name in self.reading.columns or name in self.reading.constants

    def column(self, name):
        """The column's name in the sheet."""
        return self.reading.columns.get(name, f"constant {name}")

    def text(self, name):
        """Texts; "" where a value is missing."""
        texts = self.sheet.text(self.column(name))
        return texts.where(~texts.str.lower().isin(self.missing), "")

    def number(self, name, *, whole=False, minimum=0):
        """Numbers in the units of the tables; None if the mapping does not have the column."""
        if not self.has(name):
            return None
        decimal = self.reading.decimal if name in self.reading.columns else "."
        column = self.column(name)
        if unit := self.reading.unit(name):
            self.sheet.replace(column, self.sheet.text(column).str.removesuffix(unit).str.rstrip())
        values = self.sheet.number(column, decimal=decimal, whole=whole, minimum=minimum, missing=self.missing)
        with np.errstate(over="ignore"):
            values = values * self.reading.factor(name)
        maximum = MAX_BYTES if name == "bytes" else MAX_VALUE
        self.sheet.refuse(values > maximum, self.text(name), f"{column}: at most {maximum:.0e}")
        return values.where(values <= maximum)

    def regions(self, end):
        """Names of regions; refuses rows whose text does not name one."""
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

    def _region(self, text, cloud):
        given = self.reading.regions.get(text, text)
        try:
            return region_from(given, cloud or None)
        except ParameterError:
            name = given.lower() if ":" in given or not cloud else f"{cloud}:{given.lower()}"
            if REGION.fullmatch(name):
                return name
            raise

    def tables(self):
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
        if counts["sent"] is not None and counts["lost"] is not None:
            self.sheet.refuse(
                counts["lost"] > counts["sent"], counts["lost"], f"{self.column('lost')}: at most the number sent"
            )
        rows = {
            "pings": self._any([column for name, column in rtts.items() if name != "sd_rtt_ms"] + [counts["lost"]]),
            "transfers": self._any([rates["throughput_bps"], rates["sent_throughput_bps"]]),
        }
        return self._tables(ends, started, {"pings": rtts | echoes, "transfers": rates}, rows)

    def _protocol(self, rates):
        if rates["throughput_bps"] is None and rates["sent_throughput_bps"] is None:
            return None
        if not self.has("protocol"):
            raise ParameterError(
                "mapping lacks the protocol of its throughputs, a column or a constant; allowed: "
                f"{', '.join(PROTOCOLS)}."
            )
        return self.sheet.matching(self.column("protocol"), "|".join(PROTOCOLS), ", ".join(PROTOCOLS))

    def _any(self, columns):
        """The rows that have a value in one of the columns."""
        masks = [column.notna().to_numpy() for column in columns if column is not None]
        return np.logical_or.reduce([np.zeros(len(self.sheet), dtype=bool), *masks])

    def _tables(self, ends, started, measured, rows):
        sheet, name = self.sheet, Path(self.sheet.path).name
        unread = sheet.unread()
        runs = self.text("run")
        setting = self.text("setting")
        test = ends | {
            "run_id": runs.where(runs != "", name),
            "test_id": name + ":" + pd.Series(sheet.lines).astype("str"),
            "attempt": 1,
        }
        done = rows["pings"] | rows["transfers"]
        outcome = {
            "setting": setting.where(setting != ""),
            "outcome": pd.Series(np.where(done, "done", "failed"), dtype="str"),
            "reason": pd.Series("no measurement", index=range(len(sheet)), dtype="str").where(~done),
            "started_at_utc": started,
        }
        file = {"source_file": sheet.path, "started_at_utc": started}
        made = {
            "tests": table_of("tests", test | outcome, sheet.good),
            "sources": tables.from_rows("sources", [sheet.source]),
            "unread": tables.from_rows("unread", unread),
        }
        for kind, columns in measured.items():
            made[kind] = table_of(kind, test | file | columns, rows[kind] & sheet.good)
        return finished(made)

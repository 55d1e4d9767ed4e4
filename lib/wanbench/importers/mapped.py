"""A user's own table, read as its mapping says. Imports `mapping`, `sheet`, `names`, `assemble`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from .. import tables
from ..errors import ParameterError
from .assemble import finished, table_of
from .mapping import COUNTS, RATES, RTTS, Reading, load_mapping
from .names import region_from
from .sheet import MISSING, Sheet, read_csv, read_jsonl, read_parquet

NAME = re.compile(r"[a-z0-9]+:[a-z0-9]+(?:[-_.][a-z0-9]+)*")
GREATEST, GREATEST_WHOLE = 1e18, 2.0**53
"""No measurement in the units of the tables is greater."""
PROTOCOL = "TCP|UDP|SCTP"
READERS = {
    "csv": lambda path, mapping: read_csv(
        path, delimiter=mapping.delimiter, comment=mapping.comment, about=mapping.source
    ),
    "jsonl": lambda path, mapping: read_jsonl(path, about=mapping.source),
    "parquet": lambda path, mapping: read_parquet(path, about=mapping.source),
}


def read_table(path, mapping) -> dict[str, pd.DataFrame]:
    """
    Tables of measurements in a CSV, JSON lines or Parquet file: tests, pings, transfers, sources, unread, flags.

    Parameters
    ----------
    path : path
        One row per measurement of an ordered pair of regions.
    mapping : path or dict
        What its columns mean, in which units: see `importers.mapping`, whose text is an example.

    Notes
    -----
    A region may be written as in the mapping's `regions`, as "cloud:code", or as `names.region_from` knows it;
    one outside the catalogue must be "cloud:code", or have its cloud told, and has no distance. `test_id` is
    the file's name and line (of Parquet: its row). A row without any measurement is a failed test.

    Raises
    ------
    ParameterError
        If the mapping has a fault: it names the key and what is allowed.
    RawDataError
        If a column that the mapping names is missing, or no row can be read. Single rows that cannot be read are
        rows of unread.

    Examples
    --------
    >>> from wanbench.folders import samples_folder
    >>> folder = samples_folder() / "mapping"
    >>> found = read_table(folder / "made_up.csv", folder / "made_up.yml")
    >>> found["pings"][["from_region", "mean_rtt_ms"]].values.tolist()[0]
    ['aws:eu-central-1', 25.5]
    """
    reading = load_mapping(mapping, path)
    sheet = READERS[reading.format](path, reading)
    sheet.need(*reading.columns.values())
    return _Mapped(sheet, reading).tables()


class _Mapped:
    """A sheet under a mapping."""

    def __init__(self, sheet: Sheet, reading: Reading):
        self.sheet, self.reading = sheet, reading
        self.missing = (*MISSING, *reading.missing)
        for name, text in reading.constants.items():
            sheet.replace(f"constant {name}", pd.Series(text, index=range(len(sheet)), dtype="str"))

    def has(self, name):
        return name in self.reading.columns or name in self.reading.constants

    def column(self, name):
        """What the column is called in the sheet."""
        return self.reading.columns.get(name, f"constant {name}")

    def text(self, name):
        """Texts; "" where nothing is told."""
        texts = self.sheet.text(self.column(name))
        return texts.where(~texts.str.lower().isin(self.missing), "")

    def number(self, name, *, whole=False, least=0):
        """Numbers in the units of the tables; None if the mapping does not have it."""
        if not self.has(name):
            return None
        decimal = self.reading.decimal if name in self.reading.columns else "."
        column = self.column(name)
        values = self.sheet.number(column, decimal=decimal, whole=whole, least=least, missing=self.missing)
        with np.errstate(over="ignore"):
            values = values * self.reading.factor(name)
        most = GREATEST_WHOLE if name == "bytes" else GREATEST
        self.sheet.refuse(values > most, self.text(name), f"{self.column(name)}: at most {most:.0e}")
        return values.where(values <= most)

    def regions(self, end):
        """Names of regions; a text that is none costs its row."""
        texts = self.text(end)
        clouds = self.text(f"{end}_cloud" if self.has(f"{end}_cloud") else "cloud").str.lower()
        row, wanted = pd.MultiIndex.from_arrays([texts, clouds]).factorize()
        known = []
        for place, (text, cloud) in enumerate(wanted):
            try:
                known.append(self._region(text, cloud))
            except ParameterError as error:
                known.append("")
                self.sheet.refuse(row == place, texts, f"{self.column(end)}: a region ({error})")
        return pd.Series(np.array(known, dtype=object)[row], dtype="str")

    def _region(self, text, cloud):
        given = self.reading.regions.get(text, text)
        try:
            return region_from(given, cloud or None)
        except ParameterError:
            name = given.lower() if ":" in given or not cloud else f"{cloud}:{given.lower()}"
            if NAME.fullmatch(name):
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
        counts = {name: self.number(name, whole=True, least=int(name == "streams")) for name in COUNTS}
        size = self.number("bytes")
        rates |= {"duration_s": self.number("duration"), "bytes": None if size is None else size.round()}
        rates |= {name: counts[name] for name in ("streams", "retransmits")}
        rates["protocol"] = self._protocol(rates)
        echoes = {"n_sent": counts["sent"], "n_lost": counts["lost"]}
        if counts["sent"] is not None and counts["lost"] is not None:
            self.sheet.refuse(
                counts["lost"] > counts["sent"], counts["lost"], f"{self.column('lost')}: at most the sent"
            )
        rows = {
            "pings": self._any(
                [column for name, column in rtts.items() if name != "sd_rtt_ms"] + [counts["lost"]]
            ),
            "transfers": self._any([rates["throughput_bps"], rates["sent_throughput_bps"]]),
        }
        return self._tables(ends, started, {"pings": rtts | echoes, "transfers": rates}, rows)

    def _protocol(self, rates):
        if rates["throughput_bps"] is None and rates["sent_throughput_bps"] is None:
            return None
        if not self.has("protocol"):
            raise ParameterError(
                "mapping: throughputs need a protocol, as a column or in constants; allowed: "
                + PROTOCOL.replace("|", ", ")
            )
        return self.sheet.matching(self.column("protocol"), PROTOCOL, PROTOCOL.replace("|", ", "))

    def _any(self, columns):
        """The rows that have a value in one of the columns."""
        there = [column.notna().to_numpy() for column in columns if column is not None]
        return np.logical_or.reduce(there) if there else np.zeros(len(self.sheet), dtype=bool)

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
        found = {"tests": table_of("tests", test | outcome, sheet.good)}
        for kind, columns in measured.items():
            columns = columns | ({"direction": "forward"} if kind == "transfers" else {})
            found[kind] = table_of(kind, test | file | columns, rows[kind] & sheet.good)
        found["sources"] = tables.from_rows("sources", [sheet.source])
        found["unread"] = tables.from_rows("unread", unread)
        return finished(found)

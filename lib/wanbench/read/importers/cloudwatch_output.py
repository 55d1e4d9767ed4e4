"""Rates of a circuit as `aws cloudwatch get-metric-data` and `get-metric-statistics` print them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pandas as pd

from wanbench.errors import RawDataError

from .provenance import source_of_bytes
from .sheet import AS_TEXT, Sheet, formatted

RATES = {
    "ConnectionBpsIngress": "in_bps",
    "ConnectionBpsEgress": "out_bps",
    "VirtualInterfaceBpsIngress": "in_bps",
    "VirtualInterfaceBpsEgress": "out_bps",
}
"""Metrics in bit/s, seen from AWS, as columns of `read_circuit`."""
VOLUMES = {"TunnelDataIn": "in_bps", "TunnelDataOut": "out_bps"}
"""Metrics in bytes: only the sum over a period gives a rate."""
UNITS = {"Bits/Second": "Average", "Bytes": "Sum"}
"""Units of data points that are read, with the statistic that gives a rate."""
EXPECTED = "what `aws cloudwatch get-metric-data` or `get-metric-statistics` prints, in JSON, all pages of it"


def outputs(path, text: str) -> list[dict] | None:
    """The outputs in a file, one after the other; None if it begins with something else."""
    found, rest, decoder = [], text.strip(), json.JSONDecoder(**AS_TEXT)
    while rest:
        try:
            value, end = decoder.raw_decode(rest)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or not {"MetricDataResults", "Datapoints"} & value.keys():
            if found:
                raise RawDataError(path, None, formatted(rest), EXPECTED)
            return None
        found.append(value)
        rest = rest[end:].strip()
    return found


def read_outputs(path, data: bytes, found: list[dict], about) -> Sheet:
    """
    A row for each period, with `time` (its end), `in_bps` and `out_bps`; other metrics keep their labels.

    CloudWatch gives the start of each period; the usual step from one start to the next is its length.
    """
    try:
        series = [each for output in found for each in _series(path, output)]
        names = [name for name, _, _ in series]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise RawDataError(path, None, f"{', '.join(twice)} twice", "one circuit, and each way once")
        table = pd.DataFrame({name: points for name, points, _ in series}).sort_index()
        distances_s = np.diff(table.index.as_unit("ns").asi8) / 1e9
        if not len(distances_s):
            expected = "two data points or more, as their distance is the period"
            raise RawDataError(path, None, f"{len(table)}", expected)
        period_s = float(np.quantile(distances_s, 0.5, method="lower"))
        for name, _, unit in series:
            if unit == "Bytes":
                table[name] = table[name].astype("float64") * 8 / period_s
        times = (table.index + pd.Timedelta(seconds=period_s)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, RawDataError):
            raise
        raise RawDataError(path, None, formatted(repr(error)), EXPECTED) from None
    cells = {name: ["" if pd.isna(value) else str(value) for value in table[name]] for name in names}
    return Sheet(path, source_of_bytes(path, data, about), {"time": times, **cells}, range(1, len(table) + 1))


def _series(path, output: dict) -> Iterator[tuple[str, pd.Series, str | None]]:
    """Name, values by the start of their period, and unit (None: that of the metric) of each metric."""
    if "NextToken" in output:
        raise RawDataError(path, None, "one page (NextToken)", EXPECTED)
    if "Datapoints" not in output:
        for result in output["MetricDataResults"]:
            name = _metric(result["Label"])
            if name in VOLUMES:
                expected = "`get-metric-statistics --statistics Sum`, as this does not say which statistic it holds"
                raise RawDataError(path, None, f"{name} by get-metric-data", expected)
            yield RATES.get(name, name), _by_start(result["Timestamps"], result["Values"]), None
        return
    points, name = output["Datapoints"], _metric(output["Label"])
    units = {point["Unit"] for point in points}
    if len(units) != 1 or not units <= UNITS.keys():
        told = ", ".join(sorted(units)) or "no data points"
        raise RawDataError(path, None, f"{name} in {told}", f"data points in {' or '.join(UNITS)}")
    [unit] = units
    if lacking := [point for point in points if UNITS[unit] not in point]:
        expected = f"the statistic {UNITS[unit]}: `get-metric-statistics --statistics {UNITS[unit]}`"
        raise RawDataError(path, None, f"{name} with {', '.join(lacking[0])}", expected)
    values = [point[UNITS[unit]] for point in points]
    yield {**RATES, **VOLUMES}.get(name, name), _by_start([p["Timestamp"] for p in points], values), unit


def _metric(label: str) -> str:
    """The metric's name in a label, before which CloudWatch may put the resource's: "dxcon-1 ConnectionBpsEgress"."""
    last = label.split()[-1]
    return last if last in RATES or last in VOLUMES else label


def _by_start(times, values) -> pd.Series:
    starts = pd.to_datetime(pd.Series(times, dtype="str"), utc=True, format="ISO8601")
    if starts.duplicated().any():
        raise ValueError("a time stands there twice")
    return pd.Series(list(values), index=pd.DatetimeIndex(starts), dtype="str").astype("object")

"""Throughput against bytes and duration, window, link and instance; and its unit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity

from . import mixed_rate_units, rate_ceilings, rate_plateau
from .observations import row_names
from .rate_ceilings import Column
from .rate_units import BLOCK, UNITS, block_cause, common_block, rounding
from .rule import Rule

BYTES = Rule(
    "bytes",
    "Throughput is 8 x bytes / duration.",
    "within 10 % and the rounding of the column, per row; a column whose median ratio is a known factor between units, "
    "within 0.5 %, is in that unit",
    "the definition",
)
WINDOW = Rule(
    "window",
    "No stream carries more than one window per round trip.",
    "throughput <= 2 x 8 x streams x window / minimum RTT of the pair: Linux doubles the requested buffer",
    "RFC 7323, section 1.1; socket(7), SO_SNDBUF",
)
RATES = ("throughput_bps", "sent_throughput_bps")
ROW_TOLERANCE = 0.1
"""Tools differ in what they count as duration."""
COLUMN_TOLERANCE = 0.005
"""Tolerance of a column's median ratio: the closest factors between units are 2.4 % apart."""
SPREAD = 0.02
"""Rows within it have the same ratio."""
MOST_ROWS = 0.8
"""A column is in another unit if so many rows agree; the rest may have other faults."""
MIN_ROWS_OF_COLUMN = 5
"""Fewer rows do not blame a column."""
WRONG_ROW = "bytes, duration or throughput is that of another row, or wrong"


def check(tables: Mapping[str, pd.DataFrame], rtts: pd.DataFrame, links, instances) -> list[dict]:
    """Flags of the rates in transfers and pairs."""
    flags = []
    for table in ("transfers", "pairs"):
        if table not in tables or tables[table].empty:
            continue
        frame = tables[table]
        names = row_names(table, frame)
        for name in RATES:
            if name in frame and frame[name].notna().any():
                column = Column(table, frame, names, name, frame[name].astype("float64"))
                flags += _column(column, tables.get("tests"), rtts, links, instances)
    return flags


def _column(column: Column, tests, rtts, links, instances) -> list[dict]:
    flags, cause = [], ""
    computed = _computed_rate(column)
    block = common_block(column.rate)
    if block and computed.notna().mean() < MOST_ROWS:
        cause = block_cause(block)
        found = f"all {count(int(column.rate.notna().sum()), 'value')} of {column.name} are multiples of {block:,}"
        flags.append(column.whole(BLOCK, found, cause, block, 1.0))
    if column.table == "transfers" and column.name == "throughput_bps":
        new = _bytes(column, computed)
        cause = cause or next((flag["cause"] for flag in new if flag["scope"] == "column"), "")
        flags += new + _in_no_time(column) + _window(column, rtts, cause)
    if not flags:
        flags += mixed_rate_units.check(column, rtts)
    both = (column, column.exchanged())
    link, link_back = (rate_ceilings.link_rates(way, links) for way in both)
    instance, instance_back = (rate_ceilings.instance_rates(way, instances, tests) for way in both)
    if not flags:
        limits = np.fmin(link, instance)
        flags += rate_plateau.check(column, mixed_rate_units.rtt_ms(column.frame, rtts), limits)
    flags += rate_ceilings.check(rate_ceilings.LINK, column, link, link_back, cause)
    return flags + rate_ceilings.check(rate_ceilings.INSTANCE, column, instance, instance_back, cause)


def _computed_rate(column: Column) -> pd.Series:
    """8 x bytes / duration in bit/s; NaN where one of them is missing or zero."""
    if not {"bytes", "duration_s"} <= set(column.frame.columns):
        return pd.Series(np.nan, index=column.frame.index)
    duration = column.frame.duration_s.astype("float64")
    rate = 8 * column.frame.bytes.astype("float64") / duration.where(duration > 0)
    return rate.where(rate > 0)


def _bytes(column: Column, computed: pd.Series) -> list[dict]:
    """Flags of the rows, and of the column, whose throughput is not 8 x bytes / duration."""
    ratio = (column.rate / computed).to_numpy()
    good = np.flatnonzero(np.isfinite(ratio) & (ratio > 0))
    if not len(good):
        return []
    flags, usual, unit = [], 1.0, ""
    middle, step = float(np.median(ratio[good])), rounding(column.rate)
    factor = _factor(middle)
    off = np.abs(column.rate - computed * middle).to_numpy()[good]
    alike = (off < SPREAD * middle * computed.to_numpy()[good] + step).mean()
    clear = np.abs(column.rate - computed).to_numpy() > ROW_TOLERANCE * computed.to_numpy() + step
    if factor and len(good) >= MIN_ROWS_OF_COLUMN and alike >= MOST_ROWS:
        usual, unit = factor, UNITS[factor]
        found = f"{column.name} is {number(middle)} times 8 x bytes / duration, over {count(len(good), 'row')}"
        flags.append(column.whole(BYTES, found, unit, middle, 1.0))
    rates, due = column.rate.to_numpy(), computed.to_numpy()
    sizes, durations = (
        column.frame[name].to_numpy(dtype="float64", na_value=np.nan) for name in ("bytes", "duration_s")
    )
    for k in good:
        cause = unit if unit and abs(ratio[k] / usual - 1) <= ROW_TOLERANCE else ""
        if not cause and clear[k]:
            own = _factor(ratio[k])
            cause = UNITS[own] if own else WRONG_ROW
        if cause:
            found = (
                f"{quantity(rates[k], 'bit/s')} where {quantity(float(sizes[k]), 'bytes')} in "
                f"{number(float(durations[k]))} s make {quantity(due[k], 'bit/s')}"
            )
            flags.append(column.row(BYTES, k, found, cause, due[k]))
    return flags


def _in_no_time(column: Column) -> list[dict]:
    """Flags of the rows with bytes in a duration of 0 s."""
    if not {"bytes", "duration_s"} <= set(column.frame.columns):
        return []
    size, duration = (column.frame[name].astype("float64") for name in ("bytes", "duration_s"))
    cause = "a duration that was not measured, or was cut to whole units"
    flags = []
    for k in np.flatnonzero((duration == 0) & (size > 0) & (column.rate > 0)):
        found = f"{quantity(column.rate.iloc[k], 'bit/s')} where {quantity(size.iloc[k], 'bytes')} took 0 s"
        flags.append(column.row(BYTES, k, found, cause, np.nan))
    return flags


def _factor(ratio: float) -> float | None:
    """The factor between units that a ratio equals within half a per cent; None if there is none."""
    nearest = min(UNITS, key=lambda factor: abs(np.log(ratio / factor)))
    return nearest if abs(ratio / nearest - 1) < COLUMN_TOLERANCE else None


def _window(column: Column, rtts: pd.DataFrame, cause: str) -> list[dict]:
    frame = column.frame
    window = frame.window_bytes.astype("float64") * frame.streams.astype("float64").fillna(1)
    if not window.notna().any():
        return []
    rtt = mixed_rate_units.rtt_ms(frame, rtts)
    bound = 2 * 8000 * window.to_numpy() / rtt
    tcp = (frame.protocol.fillna("TCP") == "TCP").to_numpy()
    cause = cause or "the window was not as requested, or throughput or RTT is wrong or in another unit"
    flags = []
    for k in np.flatnonzero((column.rate.to_numpy() > bound) & tcp):
        found = (
            f"{quantity(column.rate.iloc[k], 'bit/s')} with a window of {quantity(window.iloc[k], 'bytes')} and an "
            f"RTT of {quantity(rtt[k], 'ms')}, which allow {quantity(bound[k], 'bit/s')}"
        )
        flags.append(column.row(WINDOW, k, found, cause, bound[k]))
    return flags

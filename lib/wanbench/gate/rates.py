"""Throughput against the bytes and time it comes from, the window, the link and the instance; and its unit."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, reduce
from importlib.resources import files
from io import StringIO
from math import gcd

import numpy as np
import pandas as pd

from ..errors import ParameterError
from ..wording import count, number, quantity
from .observed import row_names
from .rule import IMPOSSIBLE, SUSPECT, Rule

BYTES = Rule(
    "bytes",
    "Throughput is 8 x bytes / duration.",
    "within 10 % per row; the median of a column within 0.5 % of 1, unless it is that of a known confusion of units",
    "the definition",
)
WINDOW = Rule(
    "window",
    "No stream carries more than one window per round trip.",
    "throughput <= 2 x 8 x streams x window / least RTT of the pair: Linux doubles the buffer that is asked for",
    "RFC 1323, section 1.1; socket(7), SO_SNDBUF",
)
LINK = Rule(
    "link",
    "No throughput exceeds the rate of the link it went over.",
    "1.05 x the rate requested of the emulated link",
    "table links",
)
INSTANCE = Rule(
    "instance",
    "No throughput exceeds what the sender's instance may send.",
    "1.05 x the rate that the cloud states for the instance type",
    "gate/instances.csv",
)
BLOCK = Rule(
    "block",
    "A rate is not a multiple of a block of bytes.",
    "all of at least 8 different values are multiples of one number that 1,024 divides and that is no round number",
    "iperf(1): -l, 128 KiB by default for TCP",
)
UNITS = {
    8.0: "8 times too great: bytes were taken for a count of bits already, or multiplied by 8 twice",
    1 / 8: "bytes for bits: the values are bytes per second",
    1.048576: "factor 1.048576: MiB for MB (2^20 for 10^6)",
    1 / 1.048576: "factor 1.048576: MB for MiB (10^6 for 2^20)",
    1.024: "factor 1.024: KiB for kB (1,024 for 1,000)",
    1 / 1.024: "factor 1.024: kB for KiB (1,000 for 1,024)",
    1.073741824: "factor 1.0737: GiB for GB (2^30 for 10^9)",
    1 / 1.073741824: "factor 1.0737: GB for GiB (10^9 for 2^30)",
    8 * 1.048576: "8 times too great, and MiB for MB",
    1.048576 / 8: "bytes for bits, and MiB for MB",
    1e3: "factor 1,000: kbit/s for bit/s, or milliseconds for seconds",
    1e-3: "factor 1,000: kbit/s for bit/s, or milliseconds for seconds",
    1e6: "factor 1,000,000: Mbit/s for bit/s",
    1e-6: "factor 1,000,000: Mbit/s for bit/s",
    1e-6 / 8: "bytes for bits: the values are MB per second",
    1e-9: "factor 1,000,000,000: Gbit/s for bit/s",
}
RATES = ("throughput_bps", "sent_throughput_bps")
ROW_TOLERANCE, COLUMN_TOLERANCE, OVER = 0.1, 0.005, 1.05
FEWEST_FOR_COLUMN, FEWEST_DIFFERENT = 5, 8


def check(tables: Mapping[str, pd.DataFrame], rtts: pd.DataFrame, links, instances) -> list[dict]:
    """Flags of the rates in transfers and pairs."""
    flags = []
    for table in ("transfers", "pairs"):
        if table not in tables or tables[table].empty:
            continue
        frame = tables[table]
        names = row_names(table, frame)
        sender = _sender(frame)
        for column in RATES:
            if column not in frame or not frame[column].notna().any():
                continue
            rate = frame[column].astype("float64")
            flags += _blocks(table, frame, column, rate)
            if table == "transfers" and column == "throughput_bps":
                flags += _bytes(table, frame, names, column, rate) + _window(frame, names, column, rate, rtts)
            flags += _ceiling(LINK, table, frame, names, column, rate, link_rates(sender, links))
            flags += _ceiling(INSTANCE, table, frame, names, column, rate, instance_rates(sender, instances))
    return flags


def _sender(frame: pd.DataFrame) -> pd.DataFrame:
    """Who sends to whom, row by row."""
    reverse = (
        (frame.direction == "reverse").fillna(False)
        if "direction" in frame
        else pd.Series(False, frame.index)
    )
    return pd.DataFrame(
        {
            "sender": frame.from_region.where(~reverse, frame.to_region),
            "receiver": frame.to_region.where(~reverse, frame.from_region),
        }
    )


def link_rates(sender: pd.DataFrame, links: pd.DataFrame | None) -> np.ndarray:
    """The rate of the emulated link that each row went over, in bit/s; NaN: none, or without a limit."""
    if links is None or not len(links):
        return np.full(len(sender), np.nan)
    known = links.dropna(subset="rate_bps").groupby(["from_region", "to_region"]).rate_bps.max().to_dict()
    return np.array(
        [known.get(pair, np.nan) for pair in zip(sender.sender, sender.receiver, strict=True)], float
    )


@cache
def known_instances() -> pd.DataFrame:
    """What the clouds say their instance types send: instance, cloud, egress_bps, note, source, as_of."""
    return pd.read_csv(StringIO(files(__package__).joinpath("instances.csv").read_text("utf-8")))


def instance_rates(sender: pd.DataFrame, instances: Mapping | None) -> np.ndarray:
    """
    What each row's sender may send, in bit/s; NaN where nobody says.

    `instances` maps a cloud or a region to an instance type of `known_instances`, or to bit/s.
    """
    rates = {}
    known = known_instances().set_index("instance").egress_bps
    for place, given in (instances or {}).items():
        if isinstance(given, str):
            if given not in known.index:
                raise ParameterError(
                    f"instances: {given!r} is not known; known are {', '.join(known.index)}, or give bit/s"
                )
            rates[place] = float(known[given])
        elif isinstance(given, (int, float)) and not isinstance(given, bool) and given > 0:
            rates[place] = float(given)
        else:
            raise ParameterError(
                f"instances: {place} is {given!r}; allowed is an instance type or bit/s above 0"
            )
    return np.array(
        [rates.get(name, rates.get(str(name).partition(":")[0], np.nan)) for name in sender.sender], float
    )


def _bytes(table, frame, names, column, rate) -> list[dict]:
    known = 8 * frame.bytes.astype("float64") / frame.duration_s.astype("float64").where(frame.duration_s > 0)
    ratio = (rate / known.where(known > 0)).to_numpy()
    good = np.flatnonzero(np.isfinite(ratio) & (ratio > 0))
    if not len(good):
        return []
    middle = float(np.median(ratio[good]))
    nearest = min(UNITS, key=lambda factor: abs(np.log(middle / factor)))
    flags, cause, usual = [], "bytes, duration or throughput is that of another row, or wrong", 1.0
    near = np.abs(ratio[good] / nearest - 1) < 4 * COLUMN_TOLERANCE
    if len(good) >= FEWEST_FOR_COLUMN and abs(middle / nearest - 1) < COLUMN_TOLERANCE and near.mean() >= 0.8:
        cause, usual = UNITS[nearest], nearest
        found = f"{column} is {number(middle)} times 8 x bytes / duration, over {count(len(good), 'row')}"
        flags.append(
            BYTES.flag(table, "column", IMPOSSIBLE, found, cause, column_name=column, value=middle, bound=1.0)
        )
        wrong = good
    else:
        wrong = good[np.abs(ratio[good] - 1) > ROW_TOLERANCE]
    for k in wrong:
        own = (
            cause
            if abs(ratio[k] / usual - 1) < ROW_TOLERANCE or usual == 1.0
            else "a wrong value in this row"
        )
        close = min(UNITS, key=lambda factor, k=k: abs(np.log(ratio[k] / factor)))
        if usual == 1.0 and abs(ratio[k] / close - 1) < 4 * COLUMN_TOLERANCE:
            own = UNITS[close]
        found = (
            f"{quantity(rate.iloc[k], 'bit/s')} where {quantity(float(frame.bytes.iloc[k]), 'bytes')} in "
            f"{number(float(frame.duration_s.iloc[k]))} s make {quantity(known.iloc[k], 'bit/s')}"
        )
        flags.append(
            _row(BYTES, table, frame, names, k, IMPOSSIBLE, found, own, column, rate.iloc[k], known.iloc[k])
        )
    return flags


def _row(rule, table, frame, names, k, verdict, found, cause, column, value, bound) -> dict:
    return rule.flag(
        table,
        "row",
        verdict,
        found,
        cause,
        row=names.iloc[k],
        from_region=frame.from_region.iloc[k],
        to_region=frame.to_region.iloc[k],
        column_name=column,
        value=float(value),
        bound=float(bound),
    )


def _window(frame, names, column, rate, rtts) -> list[dict]:
    window = frame.window_bytes.astype("float64") * frame.streams.astype("float64").fillna(1)
    if not window.notna().any():
        return []
    ends = [np.minimum(rtts.from_region, rtts.to_region), np.maximum(rtts.from_region, rtts.to_region)]
    least = rtts.rtt_ms.groupby(ends).min().to_dict()
    pairs = [tuple(sorted(map(str, pair))) for pair in zip(frame.from_region, frame.to_region, strict=True)]
    rtt = np.array([least.get(pair, np.nan) for pair in pairs])
    bound = 2 * 8000 * window.to_numpy() / rtt
    tcp = (frame.protocol.fillna("TCP") == "TCP").to_numpy()
    flags = []
    for k in np.flatnonzero((rate.to_numpy() > bound) & tcp):
        found = (
            f"{quantity(rate.iloc[k], 'bit/s')} with a window of {quantity(window.iloc[k], 'bytes')} and an RTT of "
            f"{quantity(rtt[k], 'ms')}, which allow {quantity(bound[k], 'bit/s')}"
        )
        cause = "the window was not what was asked for, or throughput or RTT is wrong or in another unit"
        flags.append(
            _row(
                WINDOW, "transfers", frame, names, k, IMPOSSIBLE, found, cause, column, rate.iloc[k], bound[k]
            )
        )
    return flags


def _ceiling(rule, table, frame, names, column, rate, most) -> list[dict]:
    value = rate.to_numpy()
    known = np.isfinite(value) & np.isfinite(most)
    over = known & (value > OVER * np.where(known, most, np.inf))
    what = "the link's rate" if rule is LINK else "what the sender's instance may send"
    flags = []
    if not over.any():
        share = value[known] / most[known] if known.any() else np.array([])
        if rule is LINK and len(share) >= 10 and ((share > 0.105) & (share <= 0.126)).mean() >= 0.9:
            middle = float(np.median(share))
            found = f"{column} is {number(middle)} of {what}, nearly the same in {count(len(share), 'row')}"
            flags.append(
                rule.flag(
                    table, "column", SUSPECT, found, UNITS[1 / 8], column_name=column, value=middle, bound=1.0
                )
            )
        return flags
    cause = f"{what} is not what is said, or the throughput is wrong or in another unit"
    eighth = value[known] / 8 <= OVER * most[known]
    if over.sum() >= max(2, 0.02 * known.sum()) and eighth.all():
        cause = (
            "8 times too great: bytes were multiplied by 8 twice, or a count of bytes was taken for a rate"
        )
        greatest = int(np.nanargmax(np.where(known, value / most, np.nan)))
        found = (
            f"{column} exceeds {what} in {int(over.sum()):,} of {count(int(known.sum()), 'row')}, by up to "
            f"{number(value[greatest] / most[greatest])} times; an eighth of it never does"
        )
        flags.append(
            rule.flag(table, "column", IMPOSSIBLE, found, cause, column_name=column, value=value[greatest],
                      bound=most[greatest])
        )  # fmt: skip
    elif over.sum() >= max(5, 0.02 * known.sum()):
        found = f"{column} exceeds {what} in {int(over.sum()):,} of {count(int(known.sum()), 'row')}"
        flags.append(
            rule.flag(table, "column", IMPOSSIBLE, found, cause, column_name=column, value=float(value[over].max()),
                      bound=float(most[over].max()))
        )  # fmt: skip
    for k in np.flatnonzero(over):
        found = f"{quantity(value[k], 'bit/s')} where {what} is {quantity(most[k], 'bit/s')}"
        flags.append(_row(rule, table, frame, names, k, IMPOSSIBLE, found, cause, column, value[k], most[k]))
    return flags


def _blocks(table, frame, column, rate) -> list[dict]:
    """A column of rates that are counts of bytes in blocks."""
    block = common_block(rate)
    if block is None or _explained_by_duration(frame, rate):
        return []
    per = " (iperf's 128 KiB)" if block % 131072 == 0 else ""
    cause = f"bytes transferred, not a rate: a count of blocks of {number(block)} bytes{per}"
    found = f"all {count(int(rate.notna().sum()), 'value')} of {column} are multiples of {number(block)}"
    return [BLOCK.flag(table, "column", IMPOSSIBLE, found, cause, column_name=column, value=block, bound=1.0)]


def common_block(values: pd.Series) -> int | None:
    """
    The greatest number of which all values are whole multiples, if 1,024 divides it and it is no round number.

    >>> common_block(pd.Series([131072.0 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)]))
    131072
    >>> common_block(pd.Series([1e6 * k for k in (3, 4, 5, 8, 11, 12, 19, 40)])) is None
    True
    """
    known = values.dropna().to_numpy(dtype=float)
    known = known[known > 0]
    if len(np.unique(known)) < FEWEST_DIFFERENT or (known != np.rint(known)).any() or known.max() > 2**60:
        return None
    block = reduce(gcd, (int(value) for value in np.unique(known)))
    twos, fives = _power(block, 2), _power(block, 5)
    return block if twos >= 10 and twos - fives >= 8 else None


def _power(value: int, base: int) -> int:
    power = 0
    while value and value % base == 0:
        value, power = value // base, power + 1
    return power


def _explained_by_duration(frame, rate) -> bool:
    if "bytes" not in frame or "duration_s" not in frame:
        return False
    known = 8 * frame.bytes.astype("float64") / frame.duration_s.astype("float64")
    ratio = (rate / known.where(known > 0)).dropna()
    return bool(len(ratio)) and bool((abs(ratio - 1) < ROW_TOLERANCE).mean() > 0.9)

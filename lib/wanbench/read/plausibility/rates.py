"""Compare throughput with bytes and duration, with the TCP window and with known limits; detect rate limiters."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity

from . import rate_units
from .rule import IMPOSSIBLE, RULES, SUSPECT, Column, Flag, Rule, row_names

LINK = RULES["link"]
INSTANCE = RULES["instance"]
TOLERANCE = 1.05  # A short transfer can exceed the link's rate slightly, because the queue absorbs a part.
BUFFER_BYTES = 4 << 20  # A sender counts bytes that still wait in its socket buffer: by Linux's default, up to these.
FAR_ABOVE = 2.0  # Clouds state minimum rates of instances: some send slightly more, none twice as much.
CEILING = {LINK.name: "the link's rate", INSTANCE.name: "the rate limit of the sender's instance"}
EXCHANGED = "from and to are exchanged in these rows: {} in the opposite direction allows them"
OTHERWISE = "{} is not as stated, or the throughput is wrong or in another unit"
EIGHTH = (0.105, 0.126)  # 84 to 101 % of an eighth: the payload of a saturated link in bytes/s.
MIN_ROWS_EIGHTH = 10  # Fewer rows can be near an eighth by chance.
SHARE_ABOVE = 0.02  # The column is flagged if at least this share of its rows is, and `MIN_ROWS_ABOVE` rows.
MIN_ROWS_ABOVE = 2
MIN_ROWS_EXCHANGED = 3  # Fewer rows can fit the opposite direction by chance.


def link_rates(column: Column, links: pd.DataFrame | None) -> np.ndarray:
    """Return the rate of each row's emulated link in bit/s; NaN without a link or a limit."""
    if links is None or not len(links):
        return np.full(len(column.frame), np.nan)
    rates = links.dropna(subset="rate_bps").groupby(["from_region", "to_region"]).rate_bps.max().to_dict()
    return np.array([rates.get(way, np.nan) for way in zip(column.sender, column.receiver, strict=True)], dtype=float)


@cache
def known_instances() -> pd.DataFrame:
    """
    Return published rate limits of instance types, in the columns instance, cloud, egress_bps, note, source and as_of.
    """
    return pd.read_csv(Path(__file__).with_name("instances.csv"))


def instance_rates(column: Column, tests: pd.DataFrame | None) -> np.ndarray:
    """
    Return the rate limit of each row's sender in bit/s; NaN if unknown.

    The instance type is taken from the setting of the test, if this has the form "<machine> to <machine>".
    """
    if tests is None or "setting" not in tests or "test_id" not in column.frame or tests.setting.isna().all():
        return np.full(len(column.frame), np.nan)
    egress_bps = known_instances().set_index("instance").egress_bps.to_dict()
    ends = tests.setting.fillna("").str.partition(" to ")
    rates = {}
    for k, way in ((0, "forward"), (2, "reverse")):
        for run, test, text in zip(tests.run_id, tests.test_id, ends[k], strict=True):
            named = (egress_bps[word] for word in text.split() if word in egress_bps)
            rates[run, test, way] = next(named, np.nan)
    ways = column.reverse.map({True: "reverse", False: "forward"})
    keys = zip(column.frame.run_id, column.frame.test_id, ways, strict=True)
    return np.array([rates.get(key, np.nan) for key in keys], dtype=float)


def check_ceiling(rule: Rule, column: Column, ceiling: np.ndarray, opposite: np.ndarray, cause: str = "") -> list[Flag]:
    """
    Flag rows with rates above a ceiling, and their column if there are many.

    `ceiling` has the ceiling of each row in bit/s, and `opposite` that of the row's opposite direction; NaN means no
    ceiling. `cause` is the cause that an earlier flag of the column names, or "" without such a flag.
    """
    value = column.values.to_numpy()
    comparable = np.isfinite(value) & np.isfinite(ceiling)
    share = np.divide(value, ceiling, out=np.full(len(value), np.nan), where=comparable)
    over = np.flatnonzero(share > TOLERANCE)
    n, what = int(comparable.sum()), CEILING[rule.name]
    if not len(over):
        return _an_eighth(rule, column, share[comparable])
    limit = TOLERANCE if rule is LINK else FAR_ABOVE
    flags = []
    if len(over) >= MIN_ROWS_EXCHANGED and (value <= TOLERANCE * opposite)[over].all():
        cause = cause or EXCHANGED.format(what)
    if len(over) >= max(MIN_ROWS_ABOVE, SHARE_ABOVE * n):
        largest = int(np.nanargmax(share))
        rows, times = f"{len(over):,} of {count(n, 'row')}", number(share[largest])
        found = f"{column.name} exceeds {what} in {rows}, by a factor of up to {times}"
        if np.nanmax(share) / 8 <= TOLERANCE:
            found += f"; an eighth of {column.name} never does"
            cause = cause or rate_units.TIMES_EIGHT
        ends = float(value[largest]), float(ceiling[largest])
        verdict = IMPOSSIBLE if share[largest] > limit else SUSPECT
        flags.append(column.whole(rule, found, cause or OTHERWISE.format(what), *ends, verdict))
    for k in over:
        found = f"{quantity(value[k], 'bit/s')} where {what} is {quantity(ceiling[k], 'bit/s')}"
        verdict = IMPOSSIBLE if share[k] > limit else SUSPECT
        flags.append(column.row(rule, k, found, cause or OTHERWISE.format(what), ceiling[k], verdict))
    return flags


def _an_eighth(rule: Rule, column: Column, share: np.ndarray) -> list[Flag]:
    """
    Flag a column that is near an eighth of its ceiling in nearly all rows, as if its rates were in bytes per second.
    """
    few = rule is not LINK or len(share) < MIN_ROWS_EIGHTH
    if few or ((share > EIGHTH[0]) & (share <= EIGHTH[1])).mean() < 0.9:
        return []
    middle = float(np.median(share))
    rows = count(len(share), "row")
    found = f"{column.name} is about {number(middle)} times {CEILING[rule.name]} in nearly all of {rows}"
    return [column.whole(rule, found, rate_units.BYTES_FOR_BITS, middle, 1.0, SUSPECT)]


LIMITER = RULES["limiter"]
ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)  # Limiters are usually set to these rates, times a power of ten.
BAND = 0.02  # Width of a band: over ten seconds, limited rates vary by less.
MIN_ROWS = 10  # Fewer rates can be close together by chance.
MIN_SHARE = 0.2  # A limiter that affects fewer rows does not matter.
MIN_DENSITY = 5  # Times as many rows as in the adjacent bands; without a limiter, rates are spread smoothly.
MIN_ENDS = 3  # Fewer hosts may share one slow network card.
OVERHEAD = 0.08  # Maximum share of headers in a limiter's rate: 40 to 66 of 1,500 bytes, more in smaller packets.
MIN_RTT_RATIO = 2.0  # Rates limited by a window depend on the RTT, rates limited by a limiter do not.
LIMITED = "a rate limiter at {round}: the paths may carry more"


def check_limiter(column: Column, rtt_ms: np.ndarray, limits: np.ndarray) -> list[Flag]:
    """
    Flag each sending cloud whose rates cluster at a round number.

    Rows with a known ceiling (`limits`, in bit/s; NaN if unknown) are left out. `rtt_ms` is the RTT of each row's pair.
    """
    flags = []
    clouds = column.sender.astype("str").str.partition(":")[0]
    open_rows = (column.values > 0).to_numpy() & np.isnan(limits) & clouds.notna().to_numpy()
    for cloud in sorted(clouds[open_rows].unique()):
        rows = np.flatnonzero(open_rows & (clouds == cloud).to_numpy())
        rates = column.values.iloc[rows].to_numpy(dtype=float)
        start, adjacent = _fullest_band(rates)
        inside = rows[(rates >= start) & (rates <= start * (1 + BAND))]
        if len(inside) < max(MIN_ROWS, MIN_SHARE * len(rows)) or len(inside) < MIN_DENSITY * adjacent:
            continue
        ends = column.sender.iloc[inside].nunique(), column.receiver.iloc[inside].nunique()
        times = rtt_ms[inside][np.isfinite(rtt_ms[inside])]
        apart = len(times) and np.quantile(times, 0.9) > MIN_RTT_RATIO * np.quantile(times, 0.1)
        at = _round(float(np.median(column.values.iloc[inside])))
        if min(ends) < MIN_ENDS or not apart or at is None or rate_units.rounding(column.values) > BAND / 4 * start:
            continue
        found = (
            f"{len(inside):,} of {count(len(rows), 'rate')} from {cloud} lie between {quantity(start, 'bit/s')} and "
            f"2 % more, and {adjacent:,.0f} in an adjacent band of that width"
        )
        cause = LIMITED.format(round=quantity(at, "bit/s"))
        flags.append(column.whole(LIMITER, found, cause, float(np.median(column.values.iloc[inside])), at, SUSPECT))
    return flags


def _fullest_band(rates: np.ndarray) -> tuple[float, float]:
    """Return the lower end of the band with the most rates, and the number of rates in the fuller adjacent band."""
    ordered = np.sort(rates)
    within = np.searchsorted(ordered, ordered * (1 + BAND), side="right") - np.arange(len(ordered))
    start = float(ordered[np.argmax(within)])
    edges = np.searchsorted(ordered, start * np.array([1 / (1 + BAND), 1, 1 + BAND, (1 + BAND) ** 2]))
    return start, float(max(edges[1] - edges[0], edges[3] - edges[2]))


def _round(rate: float) -> float | None:
    """Return the round number that a rate equals or is just below; None if there is none."""
    power = 10.0 ** np.floor(np.log10(rate))
    limits = [factor * power for factor in ROUND]
    return next((limit for limit in limits if (1 - OVERHEAD) * limit <= rate <= 1.002 * limit), None)


BYTES = RULES["bytes"]
WINDOW = RULES["window"]
RATES = ("throughput_bps", "sent_throughput_bps")
ROW_TOLERANCE = 0.1  # Tools differ in what they count as duration.
COLUMN_TOLERANCE = 0.005  # Tolerance of a column's median ratio: the closest factors in `UNITS` differ by 2.4 %.
SPREAD = 0.02  # Rows whose ratios differ by less have the same ratio.
MOST_ROWS = 0.8  # A column is in another unit if so many rows agree; other rows may have other faults.
MIN_ROWS_OF_COLUMN = 5  # Fewer rows do not blame a column.
WRONG_ROW = "bytes, duration or throughput is wrong, or belongs to another row"


def check_rates(tables: Mapping[str, pd.DataFrame], rtts: pd.DataFrame, links: pd.DataFrame | None) -> list[Flag]:
    """Flag implausible rates in tables transfers and pairs."""
    flags = []
    for table in ("transfers", "pairs"):
        if table not in tables or tables[table].empty:
            continue
        frame = tables[table]
        names = row_names(table, frame)
        for name in RATES:
            if name in frame and frame[name].notna().any():
                column = Column(table, frame, names, name, frame[name].astype("float64"))
                flags += _column(column, tables.get("tests"), rtts, links)
    return flags


def _column(column: Column, tests: pd.DataFrame | None, rtts: pd.DataFrame, links: pd.DataFrame | None) -> list[Flag]:
    flags, cause = [], ""
    computed = _computed_rate(column)
    block = rate_units.common_block(column.values)
    if block and computed.notna().mean() < MOST_ROWS:
        cause = rate_units.block_cause(block)
        found = f"all {count(int(column.values.notna().sum()), 'value')} of {column.name} are multiples of {block:,}"
        flags.append(column.whole(rate_units.BLOCK, found, cause, block, 1.0))
    if column.table == "transfers" and column.name == "throughput_bps":
        new = _bytes(column, computed)
        cause = cause or next((str(flag["cause"]) for flag in new if flag["scope"] == "column"), "")
        flags += new + _in_no_time(column) + _window(column, rtts, cause)
    if not flags:
        flags += rate_units.check_two_units(column, rtts)
    both = (column, column.exchanged())
    link, link_back = (link_rates(way, links) for way in both)
    instance, instance_back = (instance_rates(way, tests) for way in both)
    if column.name == "sent_throughput_bps":
        waiting = (column.values - column.frame.throughput_bps.astype("float64")) * column.frame.duration_s / 8
        link = np.where(waiting.to_numpy(dtype=float) <= BUFFER_BYTES, np.nan, link)
    if not flags:
        flags += check_limiter(column, rate_units.rtt_ms(column.frame, rtts), np.fmin(link, instance))
    flags += check_ceiling(LINK, column, link, link_back, cause)
    return flags + check_ceiling(INSTANCE, column, instance, instance_back, cause)


def _computed_rate(column: Column) -> pd.Series:
    if not {"bytes", "duration_s"} <= set(column.frame.columns):
        return pd.Series(np.nan, index=column.frame.index)
    duration = column.frame.duration_s.astype("float64")
    rate = 8 * column.frame.bytes.astype("float64") / duration.where(duration > 0)
    return rate.where(rate > 0)


def _bytes(column: Column, computed: pd.Series) -> list[Flag]:
    """Flag rows whose throughput is not 8 x bytes / duration, and the column if it is in another unit."""
    ratio = (column.values / computed).to_numpy()
    good = np.flatnonzero(np.isfinite(ratio) & (ratio > 0))
    if not len(good):
        return []
    flags, usual, unit = [], 1.0, ""
    middle, step = float(np.median(ratio[good])), rate_units.rounding(column.values)
    factor = _factor(middle)
    off = np.abs(column.values - computed * middle).to_numpy()[good]
    agreeing = (off < SPREAD * middle * computed.to_numpy()[good] + step).mean()
    clear = np.abs(column.values - computed).to_numpy() > ROW_TOLERANCE * computed.to_numpy() + step
    if factor and len(good) >= MIN_ROWS_OF_COLUMN and agreeing >= MOST_ROWS:
        usual, unit = factor, rate_units.UNITS[factor]
        found = f"{column.name} is {number(middle)} times 8 x bytes / duration, over {count(len(good), 'row')}"
        flags.append(column.whole(BYTES, found, unit, middle, 1.0))
    rates, due = column.values.to_numpy(), computed.to_numpy()
    sizes, durations = (column.frame[name].astype("float64").tolist() for name in ("bytes", "duration_s"))
    for k in good:
        cause = unit if unit and abs(ratio[k] / usual - 1) <= ROW_TOLERANCE else ""
        if not cause and clear[k]:
            cause = rate_units.UNITS.get(_factor(ratio[k]) or np.nan, WRONG_ROW)
        if cause:
            carried = f"{quantity(sizes[k], 'bytes')} in {number(durations[k])} s"
            found = f"{quantity(rates[k], 'bit/s')}, but {carried} are {quantity(due[k], 'bit/s')}"
            flags.append(column.row(BYTES, k, found, cause, due[k]))
    return flags


def _in_no_time(column: Column) -> list[Flag]:
    size, duration = (column.frame[name].astype("float64") for name in ("bytes", "duration_s"))
    cause = "the duration was not measured, or was truncated to whole units"
    flags = []
    for k in np.flatnonzero((duration == 0) & (size > 0) & (column.values > 0)):
        found = f"{quantity(column.values.iloc[k], 'bit/s')}, but {quantity(size.iloc[k], 'bytes')} took 0 s"
        flags.append(column.row(BYTES, k, found, cause, np.nan))
    return flags


def _factor(ratio: float) -> float | None:
    """Return the factor of `UNITS` that a ratio equals within 0.5 %; None if there is none."""
    nearest = min(rate_units.UNITS, key=lambda factor: abs(np.log(ratio / factor)))
    return nearest if abs(ratio / nearest - 1) < COLUMN_TOLERANCE else None


def _window(column: Column, rtts: pd.DataFrame, cause: str) -> list[Flag]:
    frame = column.frame
    window = frame.window_bytes.astype("float64") * frame.streams.astype("float64").fillna(1)
    if not window.notna().any():
        return []
    rtt = rate_units.rtt_ms(frame, rtts)
    bound = 2 * 8000 * window.to_numpy() / rtt
    tcp = (frame.protocol.fillna("TCP") == "TCP").to_numpy()
    cause = cause or "the window was larger than requested, or throughput or RTT is wrong or in another unit"
    flags = []
    for k in np.flatnonzero((column.values.to_numpy() > bound) & tcp):
        found = (
            f"{quantity(column.values.iloc[k], 'bit/s')} with a window of {quantity(window.iloc[k], 'bytes')} and an "
            f"RTT of {quantity(rtt[k], 'ms')}, which allow {quantity(bound[k], 'bit/s')}"
        )
        flags.append(column.row(WINDOW, k, found, cause, bound[k]))
    return flags

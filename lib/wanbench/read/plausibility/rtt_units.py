"""
Flag RTTs in a wrong unit, halved RTTs, and answers from near the sender, which look like RTTs in seconds.

Module `light` defines `rtts` and `unexplained`.
"""

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity

from .light import FAR_MS, light_flags, light_flags_of_region, opposite_ms, sub_millisecond
from .rule import IMPOSSIBLE, RULES, Flag, Flagged, RoundTrip
from .summaries import MAX_DECIMALS, decimals

RTT_UNIT = RULES["unit of RTT"]
SECONDS = "factor 1,000: seconds for milliseconds"
MICROSECONDS = "factor 1,000: microseconds for milliseconds"
FACTORS = ((1e3, SECONDS), (1e-3, MICROSECONDS))  # The factor that corrects the RTT, and the cause.
MAX_INFLATION = 4.0  # RTT over light in fibre: usually 1.2 to 2.5, rarely above this.
MAX_EXTRA_MS = 40.0  # Last mile and queues, which do not grow with the distance.
AGREEMENT = 2.0  # RTTs of the two directions of a pair agree within this factor.
FAR_APART = 300.0  # Queues make smaller ratios between directions; a wrong unit makes a ratio of 1,000.
TOO_LONG = 5.0  # An RTT more than so many times the usual maximum is not in ms.
# If this share of rows is wrong, the whole column or region is flagged: other rows may have other faults.
WHOLE_SHARE = 0.8
MIN_ROWS = 3  # Fewer rows are only flagged one by one.
ONE_DIRECTION_SHARE = 0.05  # If this share of rows is wrong and no region explains them, the column is flagged.
MIN_FIBRE_MS = 0.5  # Over paths that light takes less time for, an RTT does not reveal its unit.
DETOUR_MS = 2000.0  # Satellites and detours can take so long.
# A single RTT in seconds agrees with the opposite direction this closely; an answer from near the sender rarely does.
SINGLE_AGREEMENT = 0.05
PING_DECIMALS = 3  # Decimals of ping's RTTs in ms.
MIN_DISTANCE_SCATTER = 0.3  # In natural logarithms; if distances scatter less, RTTs cannot be seen to follow them.
# RTTs follow the distance if RTT over light scatters less than this part of the scatter of distances.
FOLLOWS_DISTANCE = 0.8
# RTTs in seconds have smaller deviations from the opposite direction, and a smaller share of implausible values.
ODD_SHARE = 0.2
NEAR_OR_SECONDS = (
    "an answer from near the sender (by a NAT or a proxy), or an RTT in seconds: an RTT under 1 ms over this distance "
    "is one or the other, and this row alone does not show which"
)


def check_rtt_units(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """Flag columns, regions and rows with RTTs in a wrong unit; return the flags and a mask of the rows concerned."""
    explained = ~unexplained
    flags = []
    if rtts.empty:
        return flags, explained
    for factor, cause in FACTORS:
        opposite = opposite_ms(rtts, ~explained)
        wrong = _wrong_unit(rtts, opposite, factor) & ~explained
        if not wrong.any():
            continue
        for (table, column), group in rtts.groupby(["table", "column_name"], sort=False):
            here = rtts.index.isin(group.index)
            wrong = wrong & ~(here & _detour(rtts, here & wrong, here, opposite, factor))
            new, marked = _wide_flags(rtts, here, wrong, opposite, table, column, cause)
            flags += new
            left = here & wrong & ~marked
            if factor > 1 and not any(flag["scope"] == "column" for flag in new):
                unclear = _ambiguous(rtts, left, opposite)
                flags += light_flags(rtts[unclear], NEAR_OR_SECONDS)
                explained |= unclear
                left &= ~unclear
            marked = (marked | left) & ~explained
            rows = zip(rtts[marked].itertuples(index=False), opposite[marked], strict=True)
            flags += [_unit_flag(row, other, cause) for row, other in rows]
            explained |= marked
    return flags, explained & unexplained


def _wrong_unit(rtts: pd.DataFrame, opposite: np.ndarray, factor: float) -> np.ndarray:
    """Return a mask of the RTTs that are implausible as given, and plausible when multiplied by `factor`."""
    value, fibre, maximum = (rtts[name].to_numpy() for name in ("rtt_ms", "fibre_ms", "max_ms"))
    usual = _max_usual_ms(rtts)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = opposite / value
        if factor > 1:
            wrong = (value < fibre) | (ratio > FAR_APART)
            # In seconds, the maximum is too fast as well; a maximum that is possible shows a single wrong echo.
            wrong &= (maximum < fibre) | np.isnan(fibre) | (factor * value <= 1.1 * maximum) | (ratio > FAR_APART)
        else:
            wrong = (value > TOO_LONG * usual) | (ratio < 1 / FAR_APART)
        plausible = np.isnan(fibre) | ((factor * value >= 0.95 * fibre) & (factor * value <= usual))
        agreement = np.abs(np.log(ratio / factor))
        same_unit = np.abs(np.log(ratio)) < np.log(AGREEMENT)
        agrees = np.isnan(opposite) | same_unit | (agreement < np.log(AGREEMENT))
        return wrong & plausible & agrees & ~(np.isnan(fibre) & np.isnan(opposite))


def _max_usual_ms(rtts: pd.DataFrame) -> np.ndarray:
    return (MAX_INFLATION * rtts.light_ms + MAX_EXTRA_MS).to_numpy()


def follows_distance(rows: pd.DataFrame, opposite: np.ndarray) -> bool:
    """
    Return whether RTTs, read as seconds, agree with the opposite directions or the distances; True if undecided.

    `opposite` has the RTT of each row's opposite direction, or NaN. If at least 3 rows have an opposite RTT, three
    quarters of these rows must differ from the opposite RTT by less than 20 %. Otherwise, the ratio of RTT to light
    must scatter less than 0.8 times as much as the distances or, if these scatter little, less than 20 % of the RTTs
    must be implausible.
    """
    opposite, rows = opposite[rows.light_ms > 0], rows[rows.light_ms > 0]
    if rows.empty:
        return True
    value, light_ms = 1000 * rows.rtt_ms.to_numpy(), rows.light_ms.to_numpy()
    comparable = opposite > FAR_MS
    if comparable.sum() >= MIN_ROWS:
        off = np.abs(np.log(value[comparable] / opposite[comparable]))
        return bool(np.quantile(off, 0.75) < np.log(1 + ODD_SHARE))
    implausible = (value < 0.95 * rows.fibre_ms.to_numpy()) | (value > _max_usual_ms(rows))
    spread = _scatter(light_ms)
    if spread > MIN_DISTANCE_SCATTER:
        return _scatter(value / light_ms) < FOLLOWS_DISTANCE * spread
    return bool(implausible.mean() < ODD_SHARE)


def _scatter(values: np.ndarray | pd.Series) -> float:
    """Return the mean absolute deviation of the logarithms from their median."""
    logs = np.log(values[values > 0])
    return float(np.abs(logs - np.median(logs)).mean()) if len(logs) else 0.0


def _ambiguous(rtts: pd.DataFrame, rows: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    """
    Return a mask of those `rows` that can be either an answer from near the sender or an RTT in seconds.

    Two facts prove seconds: the opposite direction took 1,000 times as long, within 5 %; or the RTT has more decimals
    than ping prints and than the other RTTs of the column, because division by 1,000 adds three decimals.
    """
    unclear = rows & sub_millisecond(rtts)
    if not unclear.any():
        return unclear
    value = rtts.rtt_ms.to_numpy()
    unclear &= ~(np.abs(1000 * value / opposite - 1) < SINGLE_AGREEMENT)
    places = max(decimals(rtts.rtt_ms[~rows], share=0.99), PING_DECIMALS)
    finer = np.abs(value - value.round(places)) > 1e-9
    return unclear & ~(finer & (places < MAX_DECIMALS))


def _detour(rtts: pd.DataFrame, wrong: np.ndarray, here: np.ndarray, opposite: np.ndarray, factor: float) -> np.ndarray:
    """Return a mask of the long RTTs that a satellite or detour explains; none if the whole column is too long."""
    if factor > 1 or _whole(rtts, wrong, here):
        return np.zeros(len(rtts), bool)
    value = rtts.rtt_ms.to_numpy()
    return wrong & (value < DETOUR_MS) & ~(opposite < value / FAR_APART)


def _telling(rtts: pd.DataFrame, wrong: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Return a mask of the rows that reveal the unit of their column."""
    return here & ((rtts.fibre_ms.to_numpy() > MIN_FIBRE_MS) | wrong)


def _whole(rtts: pd.DataFrame, wrong: np.ndarray, here: np.ndarray) -> bool:
    """Return whether to flag the column, because enough of the rows that reveal the unit are wrong."""
    n = int((wrong & here).sum())
    return n >= max(MIN_ROWS, WHOLE_SHARE * int(_telling(rtts, wrong, here).sum()))


def _wide_flags(
    rtts: pd.DataFrame, here: np.ndarray, wrong: np.ndarray, opposite: np.ndarray, table: str, column: str, cause: str
) -> Flagged:
    """Flag the column or the regions of the wrong rows; return the flags and a mask of all rows that these explain."""
    telling = _telling(rtts, wrong, here)
    n, rows = int((wrong & here).sum()), count(int(here.sum()), "row")
    middle = float(rtts.rtt_ms[wrong & here].median()) if n else np.nan
    common = {"column_name": column, "value": middle, "bound": float(rtts.fibre_ms[wrong & here].median())}
    if _whole(rtts, wrong, here):
        found = (
            f"{column}: {n:,} of {rows} are in a wrong unit; their median is {number(middle)}, where light in fibre "
            f"takes {number(common['bound'])} ms"
        )
        return [RTT_UNIT.flag(table, "column", IMPOSSIBLE, found, cause, **common)], here.copy()
    flags, marked = [], np.zeros(len(rtts), bool)
    inside = pd.Series(wrong[telling]).groupby(rtts.from_region[telling].to_numpy()).agg(["sum", "size"])
    whole = inside[(inside["sum"] >= MIN_ROWS) & (inside["sum"] >= WHOLE_SHARE * inside["size"])]
    if whole["sum"].sum() < WHOLE_SHARE * n:
        whole = whole[:0]
    for region, n_inside, n_region in whole.itertuples(name=None):
        found = f"{column}: {n_inside:,} of {count(n_region, 'row')} that start in {region} are in a wrong unit"
        of_region = f"{cause}, in measurements from {region}"
        flags.append(RTT_UNIT.flag(table, "region", IMPOSSIBLE, found, of_region, region=region, **common))
        marked |= here & (rtts.from_region == region).to_numpy()
    rest = wrong & here & ~marked
    follow = follows_distance(rtts[rest], opposite[rest]) or not sub_millisecond(rtts[rest]).all()
    if rest.sum() >= max(MIN_ROWS, ONE_DIRECTION_SHARE * telling.sum()) and follow:
        pairs = {tuple(pair) for pair in rtts.loc[rest, ["from_region", "to_region"]].to_numpy()}
        both = sum((b, a) in pairs for a, b in pairs)
        which = "all in one direction of their pairs" if not both else f"{both:,} of them in both directions"
        found = f"{column}: {int(rest.sum()):,} of {rows} are in a wrong unit, {which}"
        flags.append(RTT_UNIT.flag(table, "column", IMPOSSIBLE, found, cause, **common))
    return flags, marked


def _unit_flag(row: RoundTrip, opposite: float, cause: str) -> Flag:
    other = f", and the opposite direction took {quantity(opposite, 'ms')}" if np.isfinite(opposite) else ""
    light = f" where light in fibre takes {quantity(row.fibre_ms, 'ms')}" if np.isfinite(row.fibre_ms) else ""
    found = f"{quantity(row.rtt_ms, 'ms')}{light}{other}"
    return RTT_UNIT.flag_round_trip(row, IMPOSSIBLE, found, cause, row.fibre_ms)


MIN_TARGETS = 3  # Fewer targets answered near the sender do not suffice to blame the sender.
ANSWERED_NEAR = (
    "answered near {region}, by a NAT or a proxy: these RTTs are under 1 ms and do not grow with the distance, as RTTs "
    "in seconds would"
)


def check_near_answers(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """Flag regions whose RTTs are under 1 ms at any distance; return the flags and a mask of these RTTs."""
    explained, flags = np.zeros(len(rtts), bool), []
    near = unexplained & sub_millisecond(rtts)
    opposite = opposite_ms(rtts, ~near)
    for (table, region), group in rtts[near].groupby(["table", "from_region"]):
        if group.to_region.nunique() < MIN_TARGETS or follows_distance(group, opposite[group.index]):
            continue
        middle, light = (quantity(group[name].median(), "ms") for name in ("rtt_ms", "fibre_ms"))
        rows = f"{count(len(group), 'row')} from {region}"
        found = f"{rows} have a median RTT of {middle}, where light in fibre takes {light}"
        flags += light_flags_of_region(group, table, region, found, ANSWERED_NEAR.format(region=region))
        explained[group.index] = True
    return flags, explained


HALF = RULES["half"]
ONE_WAY = "factor 2: one-way delays for round trips"
MIN_PAIRS = 3  # Fewer pairs can be too fast for other reasons.
BELOW_LIGHT = 0.5  # Minimum share of RTTs below light: paths take about 1.5 times light, so most halved ones are.
POSSIBLE = 0.95  # This share of doubled RTTs must be possible; others may have other faults.
# In natural logarithms: RTT over light scatters by about 0.2 within a survey.
MAX_SCATTER = 0.35
MORE_SCATTER = 1.5  # With wrong coordinates, RTT over light scatters more than so many times as much.
SAME_INFLATION = np.log(1.3)  # The median RTT over light differs by less between regions of a survey.


def check_halved(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """Flag columns and regions with halved RTTs; return the flags and a mask of all rows of these."""
    explained, flags = np.zeros(len(rtts), bool), []
    far = unexplained & (rtts.fibre_ms > FAR_MS).to_numpy()
    for (table, column), group in rtts[far].groupby(["table", "column_name"], sort=False):
        here = unexplained & ((rtts.table == table) & (rtts.column_name == column)).to_numpy()
        if _pairs(group) >= MIN_PAIRS and _halved(group) and _scatter(2 * group.rtt_ms / group.light_ms) < MAX_SCATTER:
            flags.append(_halved_flag(table, "column", f"{column}: {_doubled(group)}", ONE_WAY, group))
            flags += light_flags(rtts[here & _fast(rtts)], ONE_WAY)
            explained |= here
            continue
        for region in _regions(group):
            cause = f"{ONE_WAY}, in measurements from and to {region}"
            mine = _of(group, region)
            found = f"{_doubled(mine, f' of {region}')}, as for other regions"
            flags.append(_halved_flag(table, "region", found, cause, mine, region=region))
            theirs = here & ~explained & _ends_in(rtts, region)
            flags += light_flags(rtts[theirs & _fast(rtts)], f"{region}: {cause}")
            explained |= theirs
    return flags, explained


def _regions(group: pd.DataFrame) -> list[str]:
    fast = group[_fast(group)]
    counts = pd.concat([fast.from_region, fast.to_region]).value_counts()
    halved = []
    for region in counts.index:
        others = group[~_ends_in(group, region)]
        mine = _of(group, region)
        if len(others) < MIN_PAIRS or _pairs(mine) < MIN_PAIRS or not _halved(mine):
            continue
        difference = abs(np.log(_inflation(2 * mine.rtt_ms, mine) / _inflation(others.rtt_ms, others)))
        limit = min(MORE_SCATTER * _scatter(others.rtt_ms / others.light_ms), MAX_SCATTER)
        if difference < SAME_INFLATION and _scatter(2 * mine.rtt_ms / mine.light_ms) < limit:
            halved.append(region)
            group = others
    return halved


def _doubled(rows: pd.DataFrame, of: str = "") -> str:
    below, inflation = f"{_below(rows):.0%} of {count(len(rows), 'row')}{of}", _inflation(2 * rows.rtt_ms, rows)
    return f"{below} are faster than light in fibre; twice their median RTT would be {number(inflation)} times light"


def _fast(rows: pd.DataFrame) -> np.ndarray:
    return (rows.rtt_ms < rows.fibre_ms).to_numpy()


def _below(rows: pd.DataFrame) -> float:
    return float(_fast(rows).mean())


def _halved(rows: pd.DataFrame) -> bool:
    """Return whether most RTTs are impossible, but almost all doubled RTTs are possible."""
    return _below(rows) >= BELOW_LIGHT and float((2 * rows.rtt_ms >= rows.fibre_ms).mean()) >= POSSIBLE


def _inflation(rtt_ms: pd.Series, rows: pd.DataFrame) -> float:
    return float((rtt_ms / rows.light_ms).median())


def _pairs(rows: pd.DataFrame) -> int:
    return len({frozenset(pair) for pair in zip(rows.from_region, rows.to_region, strict=True)})


def _ends_in(rows: pd.DataFrame, region: str) -> np.ndarray:
    return ((rows.from_region == region) | (rows.to_region == region)).to_numpy()


def _of(rows: pd.DataFrame, region: str) -> pd.DataFrame:
    return rows[_ends_in(rows, region)]


def _halved_flag(table: str, scope: str, found: str, cause: str, rows: pd.DataFrame, **where: str) -> Flag:
    ends = {"value": float(rows.rtt_ms.median()), "bound": float(rows.fibre_ms.median())}
    column = rows.column_name.iloc[0]
    return HALF.flag(table, scope, IMPOSSIBLE, found, cause, column_name=column, **ends, **where)

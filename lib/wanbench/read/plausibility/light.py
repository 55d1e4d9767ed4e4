"""
Compare RTTs with light, with the opposite direction, and with the fastest way over a third region.

`rtts` are the rows of `rule.round_trips` with the columns of `against_light`. `unexplained` is a mask of the rows for
which no earlier rule has found a cause.
"""

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, quantity
from wanbench.regions import FIBRE_INDEX, LIGHT_RTT_MS_PER_KM, cloud_title

from .places import distances
from .rule import IMPOSSIBLE, RULES, SUSPECT, Flag, Flagged, RoundTrip, tail_bound

LIGHT = RULES["light"]
ONE_WAY = "this RTT or its label is wrong: the opposite direction is possible"
ISOLATED = "the RTT, a label or a coordinate is wrong; this pair alone does not show which"
ZERO = "an RTT of 0 ms was not measured, or was truncated to whole units"
NEAR = "an answer from near the sender (by a NAT or a proxy), or a wrong RTT"
SUB_MS = 1.0  # A NAT or a proxy near the sender answers faster than this.
FAR_MS = 5.0  # If light takes longer, an RTT below `SUB_MS` is in seconds, or something near the sender answered.
MIN_LIGHT_MS = 1.0  # If light takes less, an RTT truncated to whole ms can be 0.


def zero_rtts(rtts: pd.DataFrame) -> tuple[list[Flag], pd.DataFrame]:
    """Flag RTTs of 0 ms over paths for which light needs more than 1 ms; return the flags and the other round trips."""
    zero = rtts.rtt_ms <= 0
    return light_flags(rtts[zero & (rtts.vacuum_ms > MIN_LIGHT_MS)], ZERO), rtts[~zero].reset_index(drop=True)


def against_light(rtts: pd.DataFrame, places: pd.DataFrame) -> pd.DataFrame:
    """
    Add columns distance_km, light_ms (round trip of light in fibre), fibre_ms and vacuum_ms to round trips.

    fibre_ms and vacuum_ms are lower bounds of the RTT: the round trip of light, in fibre and in vacuum, over the
    distance less the tolerance of the coordinates. All columns are NaN if a region has no coordinates.
    """
    apart = distances(places, rtts.from_region, rtts.to_region)
    nearest = (apart.distance_km - apart.tolerance_km).clip(lower=0)
    fibre = nearest * LIGHT_RTT_MS_PER_KM
    return rtts.assign(
        distance_km=apart.distance_km,
        light_ms=apart.distance_km * LIGHT_RTT_MS_PER_KM,
        fibre_ms=fibre,
        vacuum_ms=fibre / FIBRE_INDEX,
    )


def light_flags(rows: pd.DataFrame, causes: object = ISOLATED) -> list[Flag]:
    """Flag each of these round trips as faster than light; `causes` has one cause for all of them, or one for each."""
    causes = np.broadcast_to(np.asarray(causes, dtype=object), len(rows))
    return [_light_flag(row, cause) for row, cause in zip(rows.itertuples(index=False), causes, strict=True)]


def light_flags_of_region(rows: pd.DataFrame, table: str, region: str, found: str, cause: str) -> list[Flag]:
    """Flag `region` as the cause of round trips `rows` that are faster than light, and flag each of these rows."""
    where = {"region": region, "column_name": rows.column_name.iloc[0]}
    where |= {"value": float(rows.rtt_ms.median()), "bound": float(rows.fibre_ms.median())}
    return [LIGHT.flag(table, "region", IMPOSSIBLE, found, cause, **where), *light_flags(rows, cause)]


def _light_flag(row: RoundTrip, cause: str) -> Flag:
    medium, verdict, bound = "fibre", SUSPECT, row.fibre_ms
    if row.rtt_ms < row.vacuum_ms:
        medium, verdict, bound = "vacuum", IMPOSSIBLE, row.vacuum_ms
    found = f"{quantity(row.rtt_ms, 'ms')} where light in {medium} takes at least {quantity(bound, 'ms')}"
    found += f" over {row.distance_km:,.0f} km"
    return LIGHT.flag_round_trip(row, verdict, found, cause, bound)


def opposite_ms(rtts: pd.DataFrame, among: object = slice(None)) -> np.ndarray:
    """Return, for each row, the median RTT in ms of the opposite direction over the rows `among`; NaN without any."""
    median = rtts[among].groupby(["from_region", "to_region"]).rtt_ms.median().to_dict()
    return np.array([median.get(pair, np.nan) for pair in zip(rtts.to_region, rtts.from_region, strict=True)], float)


def sub_millisecond(rtts: pd.DataFrame) -> np.ndarray:
    """Return a mask of the rows whose echoes all took under 1 ms, although light in fibre takes more than 5 ms."""
    return ((rtts.max_ms < SUB_MS) & (rtts.fibre_ms > FAR_MS)).to_numpy()


def check_light(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """Flag every unexplained row that is faster than light in fibre; return the flags and a mask of these rows."""
    below = unexplained & (rtts.rtt_ms < rtts.fibre_ms).to_numpy()
    causes = np.where(opposite_ms(rtts) >= rtts.fibre_ms.to_numpy(), ONE_WAY, ISOLATED)
    causes = np.where(sub_millisecond(rtts), NEAR, causes)
    return light_flags(rtts[below], causes[below]), below


ASYMMETRY = RULES["asymmetry"]
MIN_DIRECTIONS_RATIO = 2.0  # Load and unequal routes make smaller ratios.
MIN_DIRECTIONS_MS = 10.0  # Between near regions the queue of one test can double an RTT.
AGREEMENT = 1.25  # A maximum RTT agrees with the opposite direction if they differ by less than this factor.
FAR_LIGHT_MS = 5.0  # Over paths that light takes less time for, the last mile dominates the RTT.
DIRECTIONS_OFFSET_MS = 5.0  # Added to both RTTs before they are compared, so that fractions of a ms matter less.
EARLY = "ping timed some echoes too short: the maximum RTT agrees with the opposite direction, the minimum does not"


def check_asymmetry(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """Flag pairs with very different RTTs in the two directions; return the flags and a mask of the flagged rows."""
    explained, flags = np.zeros(len(rtts), bool), []
    for _, frame in _measured(rtts, unexplained).groupby("table"):
        medians = frame.groupby(["from_region", "to_region"]).rtt_ms.median()
        pairs = medians.rename("there").to_frame()
        pairs["back"] = [medians.get((b, a), np.nan) for a, b in medians.index]
        once = medians.index.get_level_values(0) < medians.index.get_level_values(1)
        pairs = pairs[pairs.back.notna() & once]
        apart = (pairs.there - pairs.back).abs()
        bound = max(tail_bound(apart.to_numpy()), MIN_DIRECTIONS_MS)
        ratio = np.maximum(pairs.there / pairs.back, pairs.back / pairs.there)
        for (a, b), pair in pairs[(apart > bound) & (ratio > MIN_DIRECTIONS_RATIO)].iterrows():
            new, rows = _direction_flags(frame, a, b, pair, bound)
            flags += new
            explained[rows] = True
    return flags, explained


def _measured(rtts: pd.DataFrame, unexplained: np.ndarray) -> pd.DataFrame:
    """Return unexplained rows, except those of transfers, whose RTTs include the queues that the transfers cause."""
    return rtts[unexplained & (rtts.table != "transfers").to_numpy()]


def _direction_flags(frame: pd.DataFrame, a: str, b: str, pair: pd.Series, bound: float) -> Flagged:
    """
    Flag the direction that deviates more from the RTT expected for the distance; return flags and indices of rows.
    """
    usual = float((frame.rtt_ms / frame.light_ms).where(frame.light_ms > FAR_LIGHT_MS).median())
    rows = frame[(frame.from_region == a) & (frame.to_region == b)]
    expected = usual * float(rows.light_ms.iloc[0])
    if not np.isfinite(expected):  # without coordinates, take the smaller: queues lengthen RTTs, nothing shortens them
        expected = min(pair.there, pair.back)
    off_there, off_back = (
        abs(np.log((rtt + DIRECTIONS_OFFSET_MS) / (expected + DIRECTIONS_OFFSET_MS))) for rtt in (pair.there, pair.back)
    )
    start, end, other = (a, b, pair.back) if off_there >= off_back else (b, a, pair.there)
    rows = frame[(frame.from_region == start) & (frame.to_region == end)]
    rows = rows[(rows.rtt_ms - other).abs() > bound]
    flags = []
    for row in rows.itertuples():
        early = row.rtt_ms < other and abs(np.log(row.max_ms / other)) < np.log(AGREEMENT)
        cause = EARLY if early else "the RTT or label of one direction is wrong, or all its echoes waited in a queue"
        found = (
            f"{quantity(row.rtt_ms, 'ms')}, and {quantity(other, 'ms')} in the opposite direction; in other pairs, the "
            f"directions differ by less than {number(bound)} ms, or by a factor of less than {MIN_DIRECTIONS_RATIO:g}"
        )
        flags.append(ASYMMETRY.flag_round_trip(row, SUSPECT, found, cause, other))
    return flags, rows.index.to_numpy()


MIN_EARLY_RATIO = 1.2  # If the maximum is closer to the minimum, the fault is not in single echoes.
MIN_EARLY_MS = 5.0  # Queues make smaller differences between the directions.
MIN_ROWS = 3  # Fewer rows do not suffice to blame a sender.
MIN_ROWS_OF_CLOUD = 10  # So many confirmed pings of a cloud show that its hosts report echoes as too fast.
SENDER_SHARE = 0.9  # The sender of a smaller share of the rows does not explain them.
EARLY_MINIMUM = (
    "some echoes of this ping were timed too short: its maximum RTT agrees with the opposite direction, so the place "
    "is correct and the minimum RTT is wrong"
)
LOCAL = (
    "a proxy or NAT near {region} answered instead of the targets, or echoes were timed wrongly there: the RTTs of the "
    "opposite directions are possible"
)


def check_early_echoes(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """
    Flag pings whose minimum RTT is faster than light in fibre, while the maximum is not; return flags and a mask of the
    flagged rows.

    In a cloud with many such pings, also flag pings whose minimum is far below the RTT of the opposite direction.
    """
    fibre, maximum = rtts.fibre_ms.to_numpy(), rtts.max_ms.to_numpy()
    below = unexplained & (rtts.rtt_ms.to_numpy() < fibre)
    if not below.any():
        return [], below
    opposite = opposite_ms(rtts)
    possible = below & (maximum >= fibre) & (maximum > MIN_EARLY_RATIO * rtts.rtt_ms.to_numpy())
    agrees = (opposite >= fibre) & _agree(maximum, opposite)
    cloud = rtts.from_region.str.partition(":")[0]
    many = cloud[possible & agrees].value_counts()
    usual = cloud.isin(many[many >= MIN_ROWS_OF_CLOUD].index).to_numpy()
    early = possible & (agrees | usual)
    also = unexplained & usual & ~below & _short(rtts, opposite)
    flags = _of_a_sender(rtts, early, also) + light_flags(rtts[early], EARLY_MINIMUM)
    flags += [_shorter(row, other) for row, other in zip(rtts[also].itertuples(), opposite[also], strict=True)]
    return flags, early | also


def _short(rtts: pd.DataFrame, opposite: np.ndarray) -> np.ndarray:
    """Return a mask of pings whose maximum RTT agrees with the opposite direction, but whose minimum does not."""
    minimum = rtts.rtt_ms.to_numpy()
    short = (minimum < opposite / AGREEMENT) & (opposite - minimum > MIN_EARLY_MS)
    return short & _agree(rtts.max_ms.to_numpy(), opposite)


def _agree(maximum: np.ndarray, opposite: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.abs(np.log(maximum / opposite)) < np.log(AGREEMENT)


def _shorter(row: RoundTrip, opposite: float) -> Flag:
    minimum, maximum, back = (quantity(value, "ms") for value in (row.rtt_ms, row.max_ms, opposite))
    found = f"minimum {minimum}, maximum {maximum}, and {back} in the opposite direction"
    return ASYMMETRY.flag_round_trip(row, SUSPECT, found, EARLY_MINIMUM, opposite / AGREEMENT)


def check_opposite(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """Flag regions from which several RTTs are faster than light, while the opposite directions are not."""
    explained = np.zeros(len(rtts), bool)
    fibre = rtts.fibre_ms.to_numpy()
    below = unexplained & (rtts.rtt_ms.to_numpy() < fibre) & (opposite_ms(rtts) >= fibre)
    flags = []
    for (table, region), group in rtts[below].groupby(["table", "from_region"]):
        if group.to_region.nunique() < MIN_ROWS:
            continue
        cause = LOCAL.format(region=region)
        found = f"{count(len(group), 'row')} from {region} are faster than light in fibre; opposite directions are not"
        flags += light_flags_of_region(group, table, region, found, cause)
        explained[group.index] = True
    return flags, explained


def _of_a_sender(rtts: pd.DataFrame, early: np.ndarray, also: np.ndarray) -> list[Flag]:
    flags = []
    for (table, column), group in rtts[early].groupby(["table", "column_name"]):
        if len(group) < MIN_ROWS:
            continue
        clouds = group.from_region.str.partition(":")[0]
        who = _one(group.from_region) or _one(clouds)
        if who is None:
            continue
        rows = rtts[rtts.table == table]
        theirs, mine = (sum(_of(frame.from_region, who)) for frame in (rows, group))
        n_also = int((also & _of(rtts.from_region, who)).sum())
        more = f"; {n_also:,} more are below 0.8 times the RTT of the opposite direction" if n_also else ""
        worst = group.loc[(group.rtt_ms / group.fibre_ms).idxmin()]
        found = (
            f"{mine:,} of {count(theirs, 'row')} that start in {cloud_title(who)} are faster than light in fibre, and "
            f"{len(group) - mine:,} of {count(len(rows) - theirs, 'other')}; the worst is {worst.from_region} to "
            f"{worst.to_region} with a minimum of {quantity(worst.rtt_ms, 'ms')} and a maximum of "
            f"{quantity(worst.max_ms, 'ms')}{more}"
        )
        cause = (
            f"the ping or the clock of the hosts of {cloud_title(who)} timed some echoes too short: the maximum "
            f"RTTs of the same pings are possible, so do not use {column} of these hosts"
        )
        scope, region = ("region", who) if ":" in who else ("column", None)
        where = {"region": region, "column_name": column}
        where |= {"value": float(worst.rtt_ms), "bound": float(worst.vacuum_ms)}
        flags.append(LIGHT.flag(table, scope, IMPOSSIBLE, found, cause, **where))
    return flags


def _of(names: pd.Series, who: str) -> pd.Series:
    """Return a mask of the regions that are `who`, or belong to the cloud `who`."""
    return (names == who) | names.str.startswith(f"{who}:")


def _one(names: pd.Series) -> str | None:
    """Return the name that at least 9 of 10 rows have; None if there is none."""
    shares = names.value_counts(normalize=True)
    return shares.index[0] if shares.iloc[0] >= SENDER_SHARE else None


TRIANGLE = RULES["triangle"]
MIN_DETOUR_RATIO = 3.0  # Real routes have smaller ratios, according to the papers in `rules.csv`.
MIN_DETOUR_MS = 100.0  # A detour within a continent costs less.
DETOUR_OFFSET_MS = 20.0  # Added to both sides, so that short paths do not give large ratios.
LONGER_THAN_DETOUR = "the RTT or a label is wrong, all echoes waited in a queue, or the route makes a long detour"


def check_triangle(rtts: pd.DataFrame, unexplained: np.ndarray) -> Flagged:
    """
    Flag pairs whose minimum RTT is far above the sum of the RTTs over the best third region; return the flags and a
    mask of the flagged rows.
    """
    explained, flags = np.zeros(len(rtts), bool), []
    for _, frame in _measured(rtts, unexplained).groupby("table"):
        names = sorted({*frame.from_region, *frame.to_region})
        first, second = (np.searchsorted(names, frame[name]) for name in ("from_region", "to_region"))
        direct = np.full((len(names), len(names)), np.inf)
        np.minimum.at(direct, (first, second), frame.rtt_ms.to_numpy())
        direct = np.minimum(direct, direct.T)
        detour = _detours(direct)
        comparable = np.isfinite(direct) & np.isfinite(detour)
        ratio = np.zeros_like(direct)
        np.divide(direct + DETOUR_OFFSET_MS, detour + DETOUR_OFFSET_MS, out=ratio, where=comparable)
        usual = tail_bound(ratio[np.triu(comparable, 1)])
        bound = max(usual if np.isfinite(usual) else 0.0, MIN_DETOUR_RATIO)
        longer = np.subtract(direct, detour, out=np.zeros_like(direct), where=comparable)
        off = (ratio > bound) & (longer > MIN_DETOUR_MS)
        rows = off[first, second]
        for row, best in zip(frame[rows].itertuples(), detour[first, second][rows], strict=True):
            found = (
                f"{quantity(row.rtt_ms, 'ms')}, but {quantity(best, 'ms')} over the best third region; other RTTs are "
                f"at most {number(bound)} times those over a third region"
            )
            flags.append(TRIANGLE.flag_round_trip(row, SUSPECT, found, LONGER_THAN_DETOUR, best))
        explained[frame.index[rows]] = True
    return flags, explained


def _detours(direct: np.ndarray) -> np.ndarray:
    """Return the smallest sums of RTTs over a third region (regions, regions); infinite if there is none."""
    best = np.full_like(direct, np.inf)
    for k in range(len(direct)):
        over = direct[:, k][:, None] + direct[k][None, :]
        over[k, :] = over[:, k] = np.inf
        np.minimum(best, over, out=best)
    return best

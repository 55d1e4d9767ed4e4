"""Summarise tests per ordered pair of regions or per test, select tests by setting, and warn if settings are mixed."""

import warnings
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import numpy as np
import pandas as pd

from wanbench import tables
from wanbench.checks import check_choice, refusal
from wanbench.errors import ParameterError
from wanbench.formatting import count
from wanbench.regions import distance_km, geodesic_km, light_rtt_ms, region

PAIR = ["from_region", "to_region"]
TEST = [*PAIR, "run_id", "test_id", "attempt"]
KEY = ["run_id", "test_id"]
RTT_COLUMNS = {name: f"{name}_rtt_ms" for name in ("min", "mean", "median")}
FROM_RUN = ("tests", "echoes", "transfers")


def summarise_pairs(
    run: Mapping[str, pd.DataFrame],
    rtt: str = "min",
    *,
    regions: pd.DataFrame | None = None,
    setting: str | Iterable[str] | None = None,
) -> pd.DataFrame:
    """
    Summarise all tests of each ordered pair of regions, as table pairs.

    A transfer counts for the pair in the direction of its data, so a reverse transfer counts for the opposite pair. UDP
    transfers, whose rate was chosen, transfers that ended in an error, and echoes while a link was cut or changed do
    not count. Echoes sent and lost are null if a source does not give them.

    Parameters
    ----------
    run : mapping of DataFrame
        Tables tests, echoes and transfers from `read_run` (concatenated for several runs), or tests and pings from an
        importer, with or without further tables.
    rtt : "min", "mean" or "median"
        The statistic that represents the round-trip times of a test; `rtt_ms` is its median over the tests. Duplicate
        replies and lost echoes do not count. A time with only an upper bound (Windows "time<1ms") counts as smaller
        than all others; if the statistic depends on such a time, it is null. From table pings, the column of this
        statistic is used.
    regions : DataFrame, optional
        A table regions with coordinates for the distances; regions that it lacks have the catalogue's coordinates.
    setting : str or several, optional
        Patterns: only tests whose setting matches one of them count, such as "PREMIUM * to PREMIUM *". By default all
        tests count, with a `MixedSettings` warning if a pair mixes settings; "*" selects all tests that have a setting,
        without the warning.

    Raises
    ------
    ParameterError
        If a table is missing or has rows without regions, if a source of pings lacks this statistic, or if no test has
        a matching setting.
    """
    check_choice("rtt", rtt, RTT_COLUMNS)
    found = {name: _of_pairs(run, name) for name in (*FROM_RUN, "pings")}
    if setting is not None:
        found = selected(found, setting)
    elif warning := mixture(found):
        warnings.warn(warning, MixedSettings, stacklevel=2)
    tests, echoes, pings = found["tests"], found["echoes"], found["pings"]
    echoes = echoes[~_disturbed(echoes, run.get("sources")) & ~echoes.duplicate]
    transfers = _by_sender(found["transfers"])
    pairs = pd.concat([frame[PAIR] for frame in (tests, echoes, pings, transfers)]).drop_duplicates().sort_values(PAIR)
    if pairs.empty:
        return tables.from_rows("pairs", [])
    for end in ("from", "to"):
        pairs[f"{end}_cloud"] = pairs[f"{end}_region"].str.partition(":")[0]
    pairs = pairs.set_index(PAIR)
    points = _points(regions)
    pairs["distance_km"] = [_distance_km(a, b, points) for a, b in pairs.index]
    pairs["light_rtt_ms"] = light_rtt_ms(pairs.distance_km)
    done = tests[tests.outcome == "done"].drop_duplicates(["run_id", "test_id"])
    pairs["n_tests"] = done.groupby(PAIR).size()
    pairs["n_echoes"] = _count(pairs.index, echoes.groupby(PAIR).size(), pings, "n_sent")
    pairs["n_lost"] = _count(pairs.index, echoes.groupby(PAIR).lost.sum(), pings, "n_lost")
    pairs["rtt_ms"] = _rtt_ms(echoes, pings, rtt)
    rates = transfers.groupby(TEST, dropna=False).throughput_bps.median()
    pairs["throughput_bps"] = rates.groupby(PAIR).median()
    pairs["n_transfers"] = transfers.groupby(PAIR).size()
    retransmits = transfers.retransmits.astype("float64").groupby([transfers[name] for name in PAIR])
    pairs["retransmits"] = retransmits.sum(min_count=1)
    return tables.validate("pairs", pairs.fillna({"n_tests": 0, "n_transfers": 0}).reset_index())


def _of_pairs(run: Mapping[str, pd.DataFrame], name: str) -> pd.DataFrame:
    if name not in run:
        if name != "tests" and (name == "pings" or "pings" in run):
            return tables.from_rows(name, [])
        raise ParameterError(f"summarise_pairs needs table {name}; given: {', '.join(run) or 'none'}.")
    frame = run[name]
    missing = frame[PAIR].isna().any(axis=1)
    if missing.any():
        raise ParameterError(f"table {name}, row {int(np.flatnonzero(missing)[0])} has no from_region or to_region.")
    return frame


def _disturbed(echoes: pd.DataFrame, sources: pd.DataFrame | None) -> pd.Series:
    """
    Return a mask of the echoes measured while a link was cut or changed, as the folder of their raw file shows;
    imported echoes never are.
    """
    foreign = echoes.source_file.isin([] if sources is None else sources.path)
    return echoes.source_file.str.startswith(("cut/", "shorten/")) & ~foreign


def _by_sender(transfers: pd.DataFrame) -> pd.DataFrame:
    kept = transfers[(transfers.protocol == "TCP") & transfers.throughput_bps.notna() & transfers.error.isna()]
    reverse = kept.direction == "reverse"
    senders = kept.from_region.where(~reverse, kept.to_region)
    receivers = kept.to_region.where(~reverse, kept.from_region)
    return kept.assign(from_region=senders, to_region=receivers)


def _count(index: pd.Index, of_echoes: pd.Series, pings: pd.DataFrame, column: str) -> pd.Series:
    """Add the counts in rows of table pings to the numbers of single echoes; null if a row lacks its count."""
    groups = [pings[name] for name in PAIR]
    counted = pings[column].groupby(groups).sum().reindex(index).fillna(0)
    unknown = pings[column].isna().groupby(groups).any().reindex(index).fillna(False).astype(bool)
    total = of_echoes.reindex(index).fillna(0) + counted.astype("float64")
    return total.mask(unknown)


def _rtt_ms(echoes: pd.DataFrame, pings: pd.DataFrame, rtt: str) -> pd.Series:
    # -inf stands for "smaller than all others", so that minimum, mean and median are right; it becomes null below
    replies = echoes[~echoes.lost]
    bounded = replies.rtt_ms.isna() & replies.error.str.startswith("time<").fillna(False).astype(bool)
    times = replies.rtt_ms.mask(bounded, -np.inf)
    by_test = times.groupby([replies[name] for name in TEST], dropna=False).agg(rtt)
    summarised = _statistic(pings, rtt).groupby([pings[name] for name in TEST], dropna=False).median()
    return pd.concat([by_test, summarised]).groupby(PAIR).median().replace(-np.inf, np.nan)


def _statistic(pings: pd.DataFrame, rtt: str) -> pd.Series:
    """Return the column of pings for this statistic; raise ParameterError if one of the sources lacks it."""
    has = pings[list(RTT_COLUMNS.values())].notna().groupby(pings.source_file).any()
    lacking = has[~has[RTT_COLUMNS[rtt]] & has.any(axis=1)]
    if len(lacking):
        there = [name for name, column in RTT_COLUMNS.items() if lacking[column].all()]
        allowed = ", ".join(there) or "no statistic, because these sources have different ones"
        raise ParameterError(f"rtt is {rtt!r}; allowed for the pings of {', '.join(lacking.index)}: {allowed}.")
    return pings[RTT_COLUMNS[rtt]]


def _points(regions: pd.DataFrame | None) -> dict[str, tuple[float, float]]:
    if regions is None:
        return {}
    known = tables.validate("regions", regions)
    if not known.name.is_unique:
        twice = known.name[known.name.duplicated()].iloc[0]
        raise ParameterError(f"table regions holds {twice} more than once.")
    points = zip(known.latitude_deg.tolist(), known.longitude_deg.tolist(), strict=True)
    return dict(zip(known.name, points, strict=True))


def _distance_km(a: str, b: str, points: Mapping[str, tuple[float, float]]) -> float:
    try:
        if a not in points and b not in points:
            return distance_km(a, b)
        ends = [points.get(name) or (region(name).latitude_deg, region(name).longitude_deg) for name in (a, b)]
    except ParameterError:
        return np.nan
    return geodesic_km(*ends)


SHOWN = 8
"""Maximum number of settings named in an error."""


class MixedSettings(UserWarning):
    """Warning that the summary of a pair mixes tests of different settings."""


def mixture(tables: Mapping[str, pd.DataFrame]) -> str | None:
    """Return a warning if the RTTs, or the throughputs, of any pair come from several settings; otherwise None."""
    tests = tables["tests"]
    done = tests[(tests.outcome == "done") & tests.setting.notna()]
    if done.empty:
        return None
    keys = pd.MultiIndex.from_frame(done[KEY])
    several = {}
    for sources in (("echoes", "pings"), ("transfers",)):
        measured = pd.concat([tables[name][KEY] for name in sources]).drop_duplicates()
        part = done[keys.isin(pd.MultiIndex.from_frame(measured))]
        for pair, names in part.groupby(PAIR).setting.unique().items():
            if len(names) > 1:
                several.setdefault(pair, names)
    if not several:
        return None
    (start, end), names = next(iter(several.items()))
    n = tests[PAIR].drop_duplicates().shape[0]
    return (
        f"{len(several):,} of {count(n, 'pair')} mix tests of different settings, as {start} to {end} does "
        f"({' and '.join(map(repr, names[:2]))}); select settings with setting=, or all of them with setting='*'"
    )


def of_setting(tables: Mapping[str, pd.DataFrame], setting: str | Iterable[str]) -> dict[str, pd.DataFrame]:
    """
    Keep only imported tests whose setting matches a pattern, the rows of these tests in all tables, and flags of these
    rows. Flags that are not about a row are kept, too.
    """
    by_test = {name: frame for name, frame in tables.items() if set(KEY) <= set(frame.columns)}
    chosen = selected(by_test, setting)
    if (flags := tables.get("flags")) is not None:
        chosen["flags"] = flags[(flags.scope != "row") | flags.row.isin(chosen["tests"].test_id)]
    return dict(tables) | chosen


def selected(tables: Mapping[str, pd.DataFrame], setting: str | Iterable[str]) -> dict[str, pd.DataFrame]:
    """Return the tables with only the tests whose setting matches a pattern, and only the rows of these tests."""
    patterns = [setting] if isinstance(setting, str) else list(setting)
    if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
        raise refusal("setting", setting, "a pattern or several, such as 'PREMIUM *'")
    tests = tables["tests"]
    names = tests.setting.dropna().unique()
    chosen = [name for name in names if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if not chosen:
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        listed = "; ".join(sorted(names)[:SHOWN]) or "none"
        raise refusal("setting", setting, f"{listed}{more}")
    tests = tests[tests.setting.isin(chosen)]
    keys = pd.MultiIndex.from_frame(tests[KEY])
    kept = {name: frame[pd.MultiIndex.from_frame(frame[KEY]).isin(keys)] for name, frame in tables.items()}
    return kept | {"tests": tests}


def per_test(
    tables: Mapping[str, pd.DataFrame], *, rtt: str = "mean", regions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """
    Join the pings and transfers of imported tables by test; a test with only one of them has nulls for the other.

    `rtt` is "min", "mean" or "median". Columns: run_id, test_id, from_region, to_region, from_cloud, to_cloud,
    started_at_utc, rtt_ms, throughput_bps, bytes, distance_km and distance_catalogue_km. `distance_km` uses the
    coordinates of table `regions`, or else the catalogue's; `distance_catalogue_km` always uses the catalogue's. A
    distance is null if a region has no coordinates.
    """
    check_choice("rtt", rtt, RTT_COLUMNS)
    missing = [name for name in ("pings", "transfers") if name not in tables]
    if missing:
        raise ParameterError(f"per_test needs the tables pings and transfers; missing: {', '.join(missing)}.")
    pings, transfers = tables["pings"], tables["transfers"]
    for name, table in (("pings", pings), ("transfers", transfers)):
        if table.duplicated(KEY).any():
            raise ParameterError(f"table {name} has more than one row per test.")
    joined = pings[[*KEY, *PAIR, "started_at_utc", RTT_COLUMNS[rtt]]].merge(
        transfers[[*KEY, *PAIR, "started_at_utc", "throughput_bps", "bytes"]],
        on=[*KEY, *PAIR],
        how="outer",
        suffixes=("", "_transfer"),
    )
    joined["started_at_utc"] = joined.started_at_utc.fillna(joined.pop("started_at_utc_transfer"))
    joined = joined.rename(columns={RTT_COLUMNS[rtt]: "rtt_ms"})
    for end in ("from", "to"):
        joined[f"{end}_cloud"] = joined[f"{end}_region"].str.partition(":")[0]
    for name, coordinates in (("distance_km", regions), ("distance_catalogue_km", None)):
        distances = summarise_pairs(tables, rtt, regions=coordinates)[[*PAIR, "distance_km"]]
        joined = joined.merge(distances.rename(columns={"distance_km": name}), on=PAIR, how="left")
    return joined

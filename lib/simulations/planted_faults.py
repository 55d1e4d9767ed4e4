"""Plant faults in clean tables, and state which flag the plausibility rules must raise for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from wanbench import tables as declared
from wanbench.checks import check_choice
from wanbench.read.plausibility.places import great_circle_km

from . import clean_tables

MIN_MOVE_KM = 1500.0
"""Minimum distance by which a region is moved: RTTs can allow nearer wrong places."""
RTTS = tuple(f"{name}_rtt_ms" for name in ("min", "mean", "median", "max", "sd", "p90", "p95", "p99"))
Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class Planted:
    """Tables with a fault, and the flag that should be raised: its rule, a part of its cause, its region and scope."""

    tables: Tables
    rule: str
    cause: str
    region: str | None = None
    scope: str | None = None

    def named(self, flags: pd.DataFrame) -> bool:
        """Return whether a flag names the fault, and no flag blames another region."""
        names_it = (flags.rule == self.rule) & flags.cause.str.contains(self.cause, regex=False)
        if self.scope:
            names_it &= flags.scope == self.scope
        if self.region:
            names_it &= flags.region == self.region
        others = flags.region.notna() & (flags.region != (self.region or ""))
        return bool(names_it.any()) and not bool(others.any())


def plant(fault: str, seed: int, **settings) -> Planted:
    """Return tables of `clean_tables.clean(seed, **settings)` with a fault; raise ParameterError for an unknown one."""
    form, make = FAULTS[check_choice("fault", fault, FAULTS)]
    tables = clean_tables.clean(seed, **({"form": form, "invented": True} | settings))
    return make(tables, np.random.default_rng(seed + 1_000_003))


def _move(tables: Tables, rng, to: Callable[[float, float], tuple[float, float]], cause: str) -> Planted:
    """
    Replace the coordinates of a random region by `to(latitude, longitude)`, which moves it by `MIN_MOVE_KM` or more.
    """
    places = tables["regions"].copy()
    moved = [(k, *to(row.latitude_deg, row.longitude_deg)) for k, row in enumerate(places.itertuples())]
    far = [
        (k, a, b)
        for k, a, b in moved
        if abs(a) <= 90 and great_circle_km(places.latitude_deg[k], places.longitude_deg[k], a, b) > MIN_MOVE_KM
    ]
    k, latitude, longitude = far[rng.integers(len(far))]
    places.loc[k, ["latitude_deg", "longitude_deg"]] = [latitude, longitude]
    return Planted(tables | {"regions": places}, "coordinates", cause, places.name[k], "region")


def swapped(tables: Tables, rng) -> Planted:
    """Exchange the latitude and longitude of a region."""
    return _move(tables, rng, lambda a, b: (b, a), "latitude and longitude are exchanged")


def wrong_sign(tables: Tables, rng) -> Planted:
    """Give the longitude of a region the wrong sign."""
    return _move(tables, rng, lambda a, b: (a, -b), "the longitude has the wrong sign")


def no_place(tables: Tables, rng) -> Planted:
    """Place a region at 0 N 0 E."""
    return _move(tables, rng, lambda a, b: (0.0, 0.0), "0 N 0 E")


def another_place(tables: Tables, rng) -> Planted:
    """Give a region the coordinates of another region of the table."""
    places = tables["regions"]
    k = int(rng.integers(len(places)))
    away = great_circle_km(places.latitude_deg[k], places.longitude_deg[k], places.latitude_deg, places.longitude_deg)
    other = int(rng.choice(np.flatnonzero(np.asarray(away) > MIN_MOVE_KM)))
    columns = ["latitude_deg", "longitude_deg"]
    moved = places.copy()
    moved.loc[k, columns] = places.loc[other, columns].to_numpy()
    return Planted(tables | {"regions": moved}, "coordinates", "the coordinates are those of", places.name[k], "region")


def _scaled(frame: pd.DataFrame, rows, columns, factor: float) -> pd.DataFrame:
    frame = frame.copy()
    for name in columns:
        if name in frame:
            frame[name] = frame[name].where(~rows, frame[name] * factor)
    return frame


def _whole(tables: Tables, factor: float, cause: str) -> Planted:
    pings = _scaled(tables["pings"], pd.Series(True, index=tables["pings"].index), RTTS, factor)
    return Planted(tables | {"pings": pings}, "unit of RTT", cause, scope="column")


def seconds(tables: Tables, rng) -> Planted:
    """Give all RTTs in seconds."""
    return _whole(tables, 1e-3, "seconds for milliseconds")


def microseconds(tables: Tables, rng) -> Planted:
    """Give all RTTs in microseconds."""
    return _whole(tables, 1e3, "microseconds for milliseconds")


def one_direction(tables: Tables, rng) -> Planted:
    """Give the RTTs of one direction of each pair in seconds: those from the region whose name sorts first."""
    pings = tables["pings"]
    pings = _scaled(pings, pings.from_region < pings.to_region, RTTS, 1e-3)
    return Planted(tables | {"pings": pings}, "unit of RTT", "seconds for milliseconds", scope="column")


def one_region(tables: Tables, rng) -> Planted:
    """Give the RTTs from one region in seconds."""
    pings = tables["pings"]
    region = str(rng.choice(tables["regions"].name))
    pings = _scaled(pings, pings.from_region == region, RTTS, 1e-3)
    return Planted(tables | {"pings": pings}, "unit of RTT", "seconds for milliseconds", region, "region")


def one_pair(tables: Tables, rng) -> Planted:
    """Give the RTTs of one direction of one pair, over more than 1,000 km, in seconds."""
    pings, places = tables["pings"], tables["regions"].set_index("name")
    ends = [places.loc[pings[name]] for name in ("from_region", "to_region")]
    away = great_circle_km(*(end[name].to_numpy() for end in ends for name in ("latitude_deg", "longitude_deg")))
    k = int(rng.choice(np.flatnonzero(away > 1000)))
    rows = (pings.from_region == pings.from_region[k]) & (pings.to_region == pings.to_region[k])
    return Planted(
        tables | {"pings": _scaled(pings, rows, RTTS, 1e-3)}, "unit of RTT", "seconds for milliseconds", scope="row"
    )


def early_echoes(tables: Tables, rng) -> Planted:
    """Replace the minimum RTT of 30 % of the pings of one cloud by a random part of it."""
    pings = tables["pings"].copy()
    cloud = pings.from_region.str.partition(":")[0]
    rows = (cloud == cloud.mode()[0]) & (rng.random(len(pings)) < 0.3)
    pings["min_rtt_ms"] = pings.min_rtt_ms.where(~rows, (pings.min_rtt_ms * rng.random(len(pings))).round(3) + 0.001)
    return Planted(tables | {"pings": pings}, "light", "timed some echoes too short")


def _rates(tables: Tables, factor: float, cause: str) -> Planted:
    transfers = tables["transfers"]
    rows = pd.Series(True, index=transfers.index)
    transfers = _scaled(transfers, rows, ["throughput_bps"], factor)
    return Planted(tables | {"transfers": transfers}, "bytes", cause, scope="column")


def bytes_for_bits(tables: Tables, rng) -> Planted:
    """Give rates in bytes per second."""
    return _rates(_with_bytes(tables), 1 / 8, "bytes for bits")


def bits_for_bytes(tables: Tables, rng) -> Planted:
    """Multiply the rates by 8 once too often."""
    return _rates(_with_bytes(tables), 8.0, "8 times too large")


def mebibytes(tables: Tables, rng) -> Planted:
    """Scale rates that are counted in MB as if they were in MiB, so they are 2^20 / 10^6 times too large."""
    return _rates(_with_bytes(tables), 1.048576, "factor 1.048576")


def _with_bytes(tables: Tables) -> Tables:
    """Add missing bytes and durations to transfers: ten seconds, and the bytes that the rate sends in this time."""
    transfers = tables["transfers"].copy()
    transfers["duration_s"] = transfers.duration_s.fillna(10.0)
    made = (transfers.throughput_bps * transfers.duration_s / 8).round().astype("Int64")
    transfers["bytes"] = transfers.bytes.fillna(made)
    return tables | {"transfers": transfers}


def blocks(tables: Tables, rng) -> Planted:
    """Fill the column of rates with the bytes transferred, which are multiples of iperf's block of 128 KiB."""
    transfers = tables["transfers"].copy()
    carried = np.maximum((transfers.throughput_bps * 10 / 8 / 131072).round(), 1) * 131072
    transfers = _without(transfers.assign(throughput_bps=carried), "bytes", "duration_s")
    return Planted(tables | {"transfers": transfers}, "block", "bytes transferred, not a rate", scope="column")


def above_link(tables: Tables, rng) -> Planted:
    """Make one transfer of the lab faster than its link."""
    transfers = tables["transfers"].copy()
    k = int(rng.integers(len(transfers)))
    faster = 1.5 * tables["links"].rate_bps.iloc[0]
    transfers.loc[k, "throughput_bps"] = faster
    transfers.loc[k, "bytes"] = int(faster * transfers.duration_s[k] / 8)
    return Planted(tables | {"transfers": transfers}, "link", "the link's rate", scope="row")


def link_in_bytes(tables: Tables, rng) -> Planted:
    """Let transfers saturate their links, but give rates in bytes per second, without bytes to compare with."""
    transfers = tables["transfers"].copy()
    rate = tables["links"].rate_bps.iloc[0]
    transfers["throughput_bps"] = rate * rng.uniform(0.93, 0.96, len(transfers)) / 8
    transfers = _without(transfers, "bytes")
    return Planted(tables | {"transfers": transfers}, "link", "bytes for bits", scope="column")


def duplicated(tables: Tables, rng) -> Planted:
    """Copy one row in twenty."""
    pings = tables["pings"]
    copies = pings.sample(max(1, len(pings) // 20), random_state=int(rng.integers(1 << 31)))
    both = pd.concat([pings, copies], ignore_index=True)
    return Planted(tables | {"pings": declared.validate("pings", both)}, "copies", "the row was copied", scope="row")


def mirrored(tables: Tables, rng) -> Planted:
    """Replace the measurements of one direction of each pair by copies of those of the other direction."""
    pings = tables["pings"]
    pings = pings[pings.from_region < pings.to_region].drop_duplicates(["from_region", "to_region"])
    back = pings.assign(from_region=pings.to_region, to_region=pings.from_region)
    both = pd.concat([pings, back], ignore_index=True)
    return Planted(tables | {"pings": declared.validate("pings", both)}, "mirror", "copied to the other")


def mean_above_maximum(tables: Tables, rng) -> Planted:
    """Raise one mean RTT above the maximum RTT of its row."""
    pings = tables["pings"].copy()
    k = int(rng.integers(len(pings)))
    pings.loc[k, "mean_rtt_ms"] = pings.max_rtt_ms[k] * 1.2 + 1
    return Planted(tables | {"pings": pings}, "summary", "mean_rtt_ms cannot exceed max_rtt_ms", scope="row")


def exchanged_columns(tables: Tables, rng) -> Planted:
    """Exchange the columns of the minimum and the maximum RTT."""
    pings = tables["pings"].rename(columns={"min_rtt_ms": "max_rtt_ms", "max_rtt_ms": "min_rtt_ms"})
    pings = declared.validate("pings", pings)
    return Planted(tables | {"pings": pings}, "summary", "are exchanged or misnamed", scope="column")


def halved(tables: Tables, rng) -> Planted:
    """Fill the columns of RTTs with one-way delays."""
    pings = _scaled(tables["pings"], pd.Series(True, index=tables["pings"].index), RTTS, 0.5)
    return Planted(tables | {"pings": pings}, "half", "one-way delays", scope="column")


def halved_region(tables: Tables, rng) -> Planted:
    """Halve all RTTs from and to one region."""
    pings, region = tables["pings"], str(rng.choice(tables["regions"].name))
    rows = (pings.from_region == region) | (pings.to_region == region)
    pings = _scaled(pings, rows, RTTS, 0.5)
    return Planted(tables | {"pings": pings}, "half", "one-way delays", region, "region")


def answered_near(tables: Tables, rng) -> Planted:
    """Replace RTTs from one region by those of echoes that a NAT near it answers within a millisecond."""
    pings, region = tables["pings"].copy(), str(rng.choice(tables["regions"].name))
    rows = np.flatnonzero(pings.from_region == region)
    echoes = np.sort(rng.uniform(0.1, 0.3) + 0.03 * rng.pareto(2, (len(rows), 5)).clip(max=15), axis=1)
    for name, values in (("min", echoes[:, 0]), ("mean", echoes.mean(axis=1)), ("max", echoes[:, -1])):
        if pings[f"{name}_rtt_ms"].notna().any():
            pings.loc[rows, f"{name}_rtt_ms"] = values.round(3)
    pings["sd_rtt_ms"] = pings.sd_rtt_ms.mask(pings.from_region == region)
    return Planted(tables | {"pings": pings}, "light", f"answered near {region}", region, "region")


def kilobits_in_a_third(tables: Tables, rng) -> Planted:
    """Give a third of the rates in kbit/s, without bytes to compare with."""
    transfers = _bare(tables["transfers"])
    rows = pd.Series(rng.random(len(transfers)) < 1 / 3)
    transfers = _scaled(transfers, rows, ["throughput_bps"], 1e-3)
    return Planted(tables | {"transfers": transfers}, "two units", "kbit/s for bit/s", scope="column")


def _bare(transfers: pd.DataFrame) -> pd.DataFrame:
    """Remove bytes, durations and windows, with which rates could be compared, from transfers."""
    return _without(transfers, "bytes", "duration_s", "window_bytes")


def _without(frame: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Replace the values of some columns by null."""
    nulls = {name: pd.Series(None, index=frame.index, dtype=frame[name].dtype) for name in names}
    return frame.assign(**nulls)


def limited(tables: Tables, rng) -> Planted:
    """Limit the rates, including headers, to 1, 2.5 or 5 x 10^k bit/s; this affects two in five transfers or more."""
    transfers = _bare(tables["transfers"])
    rate = transfers.throughput_bps
    exact = np.log10(rate.quantile(0.6))
    rounds = [(factor, power) for factor in (1, 2.5, 5) for power in range(3, 12)]
    at = max(factor * 10.0**power for factor, power in rounds if np.log10(factor) + power <= exact)
    passed = 0.95 * at * rng.uniform(0.995, 1.0, len(rate))
    transfers["throughput_bps"] = rate.where(rate < passed, passed.round())
    return Planted(tables | {"transfers": transfers}, "limiter", "a rate limiter at", scope="column")


def copied_day(tables: Tables, rng) -> Planted:
    """Copy all measurements of the first day to the day after it."""
    pings = tables["pings"]
    first = pings[pings.started_at_utc < pings.started_at_utc.min() + pd.Timedelta(days=1)]
    again = first.assign(started_at_utc=first.started_at_utc + pd.Timedelta(days=1))
    both = declared.validate("pings", pd.concat([first, again], ignore_index=True))
    return Planted(tables | {"pings": both}, "copied day", "was copied under the date", scope="table")


def ends_exchanged(tables: Tables, rng) -> Planted:
    """Make one direction of each link ten times slower, and exchange from and to in a third of the transfers."""
    links, transfers = tables["links"].copy(), tables["transfers"].copy()
    slow = links.from_region < links.to_region
    links["rate_bps"] = links.rate_bps.where(~slow, links.rate_bps / 10)
    slow = transfers.from_region < transfers.to_region
    rate = tables["links"].rate_bps.iloc[0] * rng.uniform(0.7, 0.95, len(transfers))
    rate = np.where(slow, rate / 10, rate)
    carried = (rate * transfers.duration_s / 8).round()
    transfers = transfers.assign(throughput_bps=carried * 8 / transfers.duration_s, bytes=carried.astype("Int64"))
    rows = rng.random(len(transfers)) < 1 / 3
    ends = transfers[["from_region", "to_region"]].to_numpy()
    transfers.loc[rows, ["from_region", "to_region"]] = ends[rows][:, ::-1]
    return Planted(
        tables | {"links": links, "transfers": transfers}, "link", "from and to are exchanged", scope="column"
    )


FAULTS: Mapping[str, tuple[str, Callable]] = {
    "coordinates exchanged": ("pings", swapped),
    "longitude with the wrong sign": ("grid", wrong_sign),
    "coordinates 0 N 0 E": ("pings", no_place),
    "coordinates of another region": ("survey", another_place),
    "RTT in seconds": ("survey", seconds),
    "RTT in microseconds": ("pings", microseconds),
    "one direction in seconds": ("pings", one_direction),
    "one region in seconds": ("survey", one_region),
    "one pair in seconds, one direction": ("survey", one_pair),
    "one-way delays for RTT": ("grid", halved),
    "one region with one-way delays": ("survey", halved_region),
    "one region answered near it": ("grid", answered_near),
    "echoes timed too short": ("grid", early_echoes),
    "bytes for bits": ("survey", bytes_for_bits),
    "bits times 8": ("survey", bits_for_bytes),
    "MiB for MB": ("survey", mebibytes),
    "bytes transferred for a rate": ("survey", blocks),
    "kbit/s in a third of the rows": ("survey", kilobits_in_a_third),
    "a rate limiter at a round number": ("survey", limited),
    "throughput above the link": ("lab", above_link),
    "bytes for bits at the link": ("lab", link_in_bytes),
    "from and to exchanged": ("lab", ends_exchanged),
    "a day copied": ("pings", copied_day),
    "duplicated rows": ("pings", duplicated),
    "one direction copied": ("grid", mirrored),
    "mean above the greatest": ("pings", mean_above_maximum),
    "columns exchanged": ("grid", exchanged_columns),
}
"""For each fault, the form of clean tables in which it is planted, and the function that plants it."""

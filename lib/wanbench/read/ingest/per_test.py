"""One row per test with its RTT and its throughput, for charts of single tests."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from wanbench.checks import check_choice
from wanbench.errors import ParameterError

from .pairs import PAIR, summarise_pairs

KEY = ["run_id", "test_id"]
STATISTICS = {name: f"{name}_rtt_ms" for name in ("min", "mean", "median")}


def per_test(
    tables: Mapping[str, pd.DataFrame], *, rtt: str = "mean", regions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """
    Join the pings and transfers of imported tables by test; a test with only one of them has nulls for the other.

    Parameters
    ----------
    tables : mapping of DataFrame
        With `pings` and `transfers`, as an importer gives them: one of each per test.
    rtt : str
        "min", "mean" or "median".
    regions : DataFrame, optional
        Table `regions` whose coordinates give `distance_km`; by default the catalogue's.

    Returns
    -------
    DataFrame
        run_id, test_id, from_region, to_region, from_cloud, to_cloud, started_at_utc, rtt_ms, throughput_bps, bytes,
        distance_km and distance_catalogue_km (null where a region has no coordinates).
    """
    check_choice("rtt", rtt, STATISTICS)
    missing = [name for name in ("pings", "transfers") if name not in tables]
    if missing:
        raise ParameterError(f"per_test needs the tables pings and transfers; missing: {', '.join(missing)}.")
    pings, transfers = tables["pings"], tables["transfers"]
    for name, table in (("pings", pings), ("transfers", transfers)):
        if table.duplicated(KEY).any():
            raise ParameterError(f"table {name} has more than one row of a test.")
    joined = pings[[*KEY, *PAIR, "started_at_utc", STATISTICS[rtt]]].merge(
        transfers[[*KEY, *PAIR, "started_at_utc", "throughput_bps", "bytes"]],
        on=[*KEY, *PAIR],
        how="outer",
        suffixes=("", "_transfer"),
    )
    joined["started_at_utc"] = joined.started_at_utc.fillna(joined.pop("started_at_utc_transfer"))
    joined = joined.rename(columns={STATISTICS[rtt]: "rtt_ms"})
    for end in ("from", "to"):
        joined[f"{end}_cloud"] = joined[f"{end}_region"].str.partition(":")[0]
    for name, coordinates in (("distance_km", regions), ("distance_catalogue_km", None)):
        distances = summarise_pairs(tables, rtt, regions=coordinates)[[*PAIR, "distance_km"]]
        joined = joined.merge(distances.rename(columns={"distance_km": name}), on=PAIR, how="left")
    return joined

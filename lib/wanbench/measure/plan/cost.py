"""Cost of a plan on clouds: instance hours and egress, as a range."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

import pandas as pd

from wanbench.errors import ParameterError
from wanbench.folders import published_folder

BETWEEN_REGIONS = "egress between regions"
TO_INTERNET = "egress to internet"
UNITS = {BETWEEN_REGIONS: "GB", TO_INTERNET: "GB", "volume": "GB-month", "MSK volume": "GB-month"}
"""Units of prices; instances and other time-based items are priced per hour."""
SET_UP_S = 300.0
"""
Assumed time that an instance is paid for besides measuring: starting, installing tools, stopping.
"""


@cache
def _price_list() -> pd.DataFrame:
    with (files(__package__) / "prices.csv").open() as file:
        own = pd.read_csv(file)
    published = pd.read_csv(published_folder() / "prices" / "list-prices.csv")
    is_type = (published.unit == "hour") & ~published["item"].str.contains(" ")
    chosen = published[(is_type | (published["item"] == BETWEEN_REGIONS)) & (published.term == "on demand")]
    ranges = chosen.rename(columns={"provider": "cloud"}).groupby(["cloud", "item"], sort=False, as_index=False)
    listed = ranges.agg(
        low_usd=("price_usd", "min"),
        high_usd=("price_usd", "max"),
        unit=("unit", "last"),
        source=("source", "last"),
        as_of=("as_of", "last"),
    )
    return pd.concat([own, listed[own.columns]], ignore_index=True)


def prices(overrides: Mapping[str, Mapping[str, float]] | None = None) -> pd.DataFrame:
    """
    Prices in US dollars, as ranges over the regions of a cloud: columns cloud, item, low_usd, high_usd, unit, source,
    as_of.

    The package's list, and instance types and egress between regions in `data/published/prices`, are for a first
    estimate. Missing prices are
    unknown unless `overrides` gives them: {cloud: {item: price}}, where a price is a number, or (lowest, highest).
    Items are instance types and "public address" (per hour), "volume" (per GB-month), "egress between regions" and
    "egress to internet" (per GB of 10^9 bytes).
    """
    listed = {(row["cloud"], row["item"]): row for row in _price_list().to_dict("records")}
    for cloud, items in (overrides or {}).items():
        for item, given in items.items():
            low, high = given if isinstance(given, list | tuple) else (given, given)
            if not 0 <= low <= high < math.inf:
                raise ParameterError(
                    f"price of {item!r} on {cloud!r} is {given!r}; allowed: a number of at least 0, or two in order."
                )
            listed[cloud, item] = {
                "cloud": cloud,
                "item": item,
                "low_usd": float(low),
                "high_usd": float(high),
                "unit": UNITS.get(item, "hour"),
                "source": "parameters",
                "as_of": "",
            }
    return pd.DataFrame(list(listed.values()), columns=_price_list().columns)


def cost(
    *,
    regions: list[str],
    sent_bytes: Mapping[tuple[str, str], float] | None,
    measuring_s: float,
    instance_types: Mapping[str, str],
    price_list: pd.DataFrame,
    hosts_per_region: int = 1,
    per_host_hour: Mapping[str, float] | None = None,
    set_up_s: float = SET_UP_S,
) -> pd.DataFrame:
    """
    Cost of a plan by cloud and item; NaN if a price or the volume is unknown.

    Parameters
    ----------
    regions : list of str
        Each has `hosts_per_region` instances, paid for `measuring_s` plus `set_up_s`.
    sent_bytes : {(sending region, receiving region): bytes}, or None if unknown
        The sender's cloud charges for it, within the cloud or to the internet; within a region it is free.
    price_list : DataFrame
        See `prices`.
    per_host_hour : {item: amount}, optional
        What every instance also uses per hour, such as a public address, or GB-months of a volume.

    Returns
    -------
    DataFrame
        Columns cloud, item, amount, unit, low_usd, high_usd.
    """
    clouds = sorted({region.partition(":")[0] for region in regions})
    if lacking := [cloud for cloud in clouds if cloud not in instance_types]:
        raise ParameterError(f"No instance type is given for {', '.join(lacking)}; given: {dict(instance_types)!r}.")
    listed = price_list.set_index(["cloud", "item"])
    rows = []
    for cloud in clouds:
        n_hosts = hosts_per_region * sum(region.startswith(f"{cloud}:") for region in regions)
        hours = n_hosts * (measuring_s + set_up_s) / 3600
        within = to_internet = math.nan
        if sent_bytes is not None:
            leaving = [(ends, n) for ends, n in sent_bytes.items() if ends[0].startswith(f"{cloud}:")]
            leaving = [(ends, n) for ends, n in leaving if ends[1] != ends[0]]
            within = sum(n for ends, n in leaving if ends[1].startswith(f"{cloud}:")) / 1e9
            to_internet = sum(n for _, n in leaving) / 1e9 - within
        for item, amount, unit in (
            (instance_types[cloud], hours, "hour"),
            *((item, hours * each, UNITS.get(item, "hour")) for item, each in (per_host_hour or {}).items()),
            (BETWEEN_REGIONS, within, "GB"),
            (TO_INTERNET, to_internet, "GB"),
        ):
            price = listed.loc[(cloud, item)] if (cloud, item) in listed.index else None
            low, high = (math.nan, math.nan) if price is None else (price["low_usd"], price["high_usd"])
            free = amount == 0
            rows.append((cloud, item, amount, unit, 0.0 if free else amount * low, 0.0 if free else amount * high))
    return pd.DataFrame(rows, columns=["cloud", "item", "amount", "unit", "low_usd", "high_usd"])

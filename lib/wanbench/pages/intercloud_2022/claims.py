"""Test the claims of source 002 about latency and throughput between regions of two clouds, by its published rows."""

from collections.abc import Mapping
from math import pi

import numpy as np
import pandas as pd

from wanbench.formatting import count, number, percent, quantity
from wanbench.methods.claims.ledger import Audit, above, read_claims
from wanbench.methods.distance.inflation import ALL, Inflation
from wanbench.methods.result import Estimate
from wanbench.methods.tcp.models import window_limited_bps
from wanbench.read.plausibility import known_instances
from wanbench.regions import FIBRE_INDEX, LIGHT_KM_PER_MS

from .charts import Charts
from .clouds import CloudComparison
from .compare_models import WORSE, ModelComparison
from .matched_cities import MatchedCities
from .nearest_region import NearestRegion
from .readings import UNFLAGGED, UNFLAGGED_CATALOGUE, Correlations
from .variation import Repeats, Scatter

EARTH_RADIUS_KM = 6371.0088  # Mean radius (IUGG)
EXAMPLE_WINDOW_BYTES = 65_536  # The window of the article's example: 64 KiB
EXAMPLE_RTT_MS = 80.0  # The round trip of the article's example
NOISY_FACTOR = 1.5  # Factor from which two tests of one pair count as noisy: a reader sees it on a linear axis
NOISY_SHARE = 0.1  # Share of repeated pairs that must be noisy for the claim to hold: more than a few outliers
STRAIGHT = 1.25  # Path inflation below which latency counts as due to light and little else
NEAR_CEILING = 0.95  # Share of an instance's limit that counts as reaching it: payload is 96.5 % of the counted bytes
FAR_LESS = 10.0  # Factor by which a rate must be below another to be far less
COMPARABLE = 2.0  # Factor by which the rates of comparable instances may differ
# Lowest and highest list price of traffic to the internet (labs/rented/prices.csv)
INTERNET_USD_PER_GB = {"aws": (0.09, 0.155), "gcp": (0.08, 0.12)}
REGIONS_USD_PER_GB = {"aws": (0.02, 0.138), "gcp": (0.01, 0.08)}  # The same of traffic between regions


def throughput_across_clouds(
    *,
    tests: pd.DataFrame,
    charts: Charts,
    latency_r: Correlations,
    throughput_r: Correlations,
    inflation: Inflation,
    latency: MatchedCities,
    throughput: MatchedCities,
    clouds: CloudComparison,
    models: ModelComparison,
    repeats: tuple[Repeats, Repeats],
    scatters: Mapping[str, Scatter],
    nearest: NearestRegion,
) -> Audit:
    """
    Test every claim of source 002 that its published rows can test.

    `tests` has one row per test (`ingest.per_test`). `latency_r` and `throughput_r` are the correlations of RTT and of
    throughput with distance, over selections of which the first has all rows with the survey's coordinates and the
    second all rows with the catalogue's. `repeats` has the results for RTT and for throughput, and `scatters` the
    result of each chart by the chart's name. The other arguments are the results that their types describe, for all
    pairs of the survey.
    """
    audit = read_claims("002-throughput-across-clouds")
    _facts(audit, tests)
    for claim, result in (("latency-r", latency_r), ("throughput-r", throughput_r)):
        audit.compare(claim, float(result.rows.r_rows.iloc[0]), result.sentence)
    _coordinates(audit, latency_r)
    _noisy(audit, repeats)
    cost = f"Holds if the interval of RTT between clouds minus within one is above 0 ms. {latency.difference.sentence}"
    audit.judge("within-latency", above(latency.difference, 0), cost)
    faster = above(throughput.difference, 1)
    audit.judge(
        "within-throughput",
        None if faster is None else not faster,
        f"Holds if the interval of the ratio lies below 1. {throughput.difference.sentence} The receiving cloud "
        f"matters more: {' '.join(direction.sentence for direction in clouds.directions)}",
    )
    median = inflation.medians[ALL]
    straight = f"Holds if the interval of the median path inflation lies below {STRAIGHT:g}. {median.sentence}"
    audit.judge("straightforward", median.high < STRAIGHT, straight)
    most = (
        "Holds if the interval of the median path inflation lies below 2: light in fibre then takes more than half of "
        f"the RTT. {median.sentence}"
    )
    audit.judge("light-most", None if median.low <= 2 <= median.high else median.high < 2, most)
    _spiky(audit, scatters)
    _buffers(audit, models, charts)
    share = f"Holds if the interval of the share lies above one half. {nearest.sentence}"
    audit.judge("nearest", above(nearest.share, 0.5), share)
    return audit


def _by_clouds(estimates: Mapping[str, Estimate]) -> str:
    """Format estimates by ordered pair of clouds: "aws to gcp 1.2 (1.1 to 1.3); ..."."""
    return "; ".join(f"{name.replace('->', ' to ')} {estimate.with_ends}" for name, estimate in estimates.items())


def _coordinates(audit: Audit, latency_r: Correlations) -> None:
    r = latency_r.rows.set_index("selection").r_rows
    own, catalogue = r.iloc[0], r.iloc[1]
    working = (
        "Holds if both sets of coordinates give the same r over all rows, to half of the last claimed digit: "
        f"{number(own, 3)} with the survey's, {number(catalogue, 3)} with the catalogue's."
    )
    if UNFLAGGED in r and UNFLAGGED_CATALOGUE in r:
        working += (
            f" Without the regions that the plausibility rules flag, r is {number(r[UNFLAGGED], 3)} with the survey's "
            f"coordinates and {number(r[UNFLAGGED_CATALOGUE], 3)} with the catalogue's. So the difference over all "
            "rows comes from these regions, not from using a city's coordinates for a data centre."
        )
    audit.judge("coordinates", bool(abs(own - catalogue) < audit.claims["latency-r"].half_step), working)


def _spiky(audit: Audit, scatters: Mapping[str, Scatter]) -> None:
    ratios = {name: scatter.ratio for name, scatter in scatters.items() if name != "all"}
    spikier = [above(ratio, 1) for ratio in ratios.values()]
    whole = (
        f" Over all pairs the ratio is {scatters['all'].ratio.formatted}, because all pairs together mix receiving "
        "clouds."
        if "all" in scatters
        else ""
    )
    audit.judge(
        "spiky",
        True if all(spikier) else False if False in spikier else None,
        "Holds if throughput scatters more about its line than RTT (ratio above 1) in every ordered pair of clouds: "
        f"{_by_clouds(ratios)}.{whole}",
    )


def _buffers(audit: Audit, models: ModelComparison, charts: Charts) -> None:
    verdict = models.scores.set_index("model").verdict
    limited = [name for name in ("window-limited", "finite transfer") if name in verdict]
    windows = {name: chart.model.parameters["W"] for name, chart in charts.charts.items() if chart.model}
    audit.judge(
        "buffers",
        any(verdict[name] != WORSE for name in limited),
        f"Holds if a model with a TCP window predicts left-out regions best, or ties with the best. {models.sentence} "
        f"W by sending and receiving cloud: {_by_clouds(windows)}.",
    )


def _facts(audit: Audit, tests: pd.DataFrame) -> None:
    example_bps = float(window_limited_bps(EXAMPLE_WINDOW_BYTES, EXAMPLE_RTT_MS))
    audit.compare("window-example", example_bps / 1e6, "8 W / RTT with W = 65,536 bytes and an RTT of 80 ms.")
    limits_bps = known_instances().set_index("instance").egress_bps[["e2-small", "t3.nano"]]
    least_bps = float(limits_bps.min())
    printed_bps = 1e6 * audit.number("window-example")
    audit.judge(
        "far-less",
        FAR_LESS * printed_bps <= least_bps,
        f"Holds if the printed rate is at most a tenth of {quantity(least_bps, 'bit/s')}, the lowest rate limit of "
        "the instances in the published rows.",
    )
    rates = ", ".join(f"{name} {quantity(float(bps), 'bit/s')}" for name, bps in limits_bps.items())
    audit.judge(
        "instance-bandwidth", least_bps >= 1e9, f"Holds if each instance type may send 1 Gbit/s or more: {rates}."
    )
    audit.judge(
        "instances-alike",
        float(limits_bps.max()) <= COMPARABLE * least_bps,
        f"Holds if one instance type may send at most {COMPARABLE:g} times as much as the other: {rates}.",
    )
    around_ms = 2 * pi * EARTH_RADIUS_KM / LIGHT_KM_PER_MS
    audit.judge(
        "antipodes",
        None,
        f"Light takes {number(around_ms, 0)} ms around the earth in vacuum, which rounds to the claimed number. In "
        f"fibre, where data travel, light takes {number(around_ms * FIBRE_INDEX, 0)} ms: the minimum RTT to the "
        "opposite side of the earth.",
    )
    audit.note("n-regions", f"The published rows contain {len({*tests.from_region, *tests.to_region})} regions.")
    n_pairs = len(tests.drop_duplicates(["from_region", "to_region"]))
    n = audit.number("n-regions")
    published = f"The {count(len(tests), 'published row')} contain {number(n_pairs)} pairs; the other rows are repeats."
    audit.compare("n-pairs", n * (n - 1), f"{number(n)} regions, each tested to all other regions. {published}")
    sent = f"The mean of the column of bytes. All tests together sent {quantity(tests['bytes'].sum(), 'bytes')}."
    audit.compare("volume", float(tests["bytes"].mean() / 1e6), sent)
    clouds = tests.groupby(["from_cloud", "to_cloud"]).ngroups
    audit.compare(
        "charts", clouds + 1, f"One chart of all pairs, and one for each of {number(clouds)} ordered pairs of clouds."
    )
    _cost(audit, tests)
    _ceilings(audit, tests)


def _cost(audit: Audit, tests: pd.DataFrame) -> None:
    """Judge the claimed cost of a full test by list prices, for the volume that the source prints and the one sent."""
    n, n_pairs = audit.number("n-regions"), audit.number("n-pairs")
    hour_usd = n * audit.number("instance-high") / 100
    hours = audit.number("instances-cost") / hour_usd
    audit.judge(
        "instances-cost",
        None,
        f"{number(n)} instances cost at most {number(hour_usd, 2)} USD/h by the printed price, so the claim holds for "
        f"tests of less than {number(hours, 1)} h; the source does not say how long a test takes.",
    )
    prices = np.array(list(INTERNET_USD_PER_GB.values()))
    volumes_mb = {"as printed": audit.number("volume"), "as sent": float(tests["bytes"].mean() / 1e6)}
    usd = {name: n_pairs * mb / 1e3 * np.array([prices.min(), prices.max()]) for name, mb in volumes_mb.items()}
    claimed = audit.number("egress-cost")
    audit.judge(
        "egress-cost",
        any(low <= claimed <= high for low, high in usd.values()),
        f"Holds if one of these ranges contains the printed cost: {number(n_pairs)} tests at {prices.min():g} to "
        f"{prices.max():g} USD/GB to the internet cost "
        + " and ".join(
            f"{number(low)} to {number(high)} USD with {number(volumes_mb[name])} MB each ({name})"
            for name, (low, high) in usd.items()
        )
        + ".",
    )
    audit.judge(
        "egress-majority",
        bool(usd["as printed"][0] > hour_usd),
        f"Holds if egress of the printed volume costs more than an hour of the instances: "
        f"{number(usd['as printed'][0])} USD or more against {number(hour_usd, 2)} USD at most.",
    )
    dearer = [
        outside > inside
        for cloud, ends in INTERNET_USD_PER_GB.items()
        for outside, inside in zip(ends, REGIONS_USD_PER_GB[cloud], strict=True)
    ]
    audit.judge(
        "egress-dearer",
        all(dearer),
        "Holds if the lowest and the highest list price of each cloud are higher to the internet than between regions: "
        + "; ".join(
            f"{cloud} {ends[0]:g} to {ends[1]:g} against {REGIONS_USD_PER_GB[cloud][0]:g} to "
            f"{REGIONS_USD_PER_GB[cloud][1]:g} USD/GB"
            for cloud, ends in INTERNET_USD_PER_GB.items()
        )
        + ".",
    )


def _ceilings(audit: Audit, tests: pd.DataFrame) -> None:
    limit_bps = float(known_instances().set_index("instance").egress_bps["e2-small"])
    within = tests[(tests.from_cloud == "gcp") & (tests.to_cloud == "gcp")]
    capped = within[within.throughput_bps >= NEAR_CEILING * limit_bps]
    capped_km, all_km = capped.distance_catalogue_km.median(), within.distance_catalogue_km.median()
    audit.judge(
        "ceilings",
        bool(len(capped) > 0 and capped_km < all_km),
        f"{count(len(capped), 'test')} of {len(within):,} within Google Cloud reach {percent(NEAR_CEILING)} of the "
        f"{quantity(limit_bps, 'bit/s')} that an e2-small may send, and no test exceeds "
        f"{quantity(within.throughput_bps.max(), 'bit/s')}. The median distance of the tests near the limit is "
        f"{number(capped_km, 0)} km, against {number(all_km, 0)} km for all tests within Google Cloud.",
    )
    r = [
        float(np.corrcoef(rows.distance_catalogue_km, np.log10(rows.throughput_bps))[0, 1])
        for rows in (tests, tests.drop(capped.index))
    ]
    audit.judge(
        "ceilings-harmless",
        bool(abs(r[0] - r[1]) < audit.claims["throughput-r"].half_step),
        "Holds if r of log throughput against distance is the same without the tests near the limit, to half of the "
        f"last claimed digit: {number(r[0], 3)} with them, {number(r[1], 3)} without.",
    )


def _noisy(audit: Audit, repeats: tuple[Repeats, Repeats]) -> None:
    shares = [float((result.pairs.factor >= NOISY_FACTOR).mean()) for result in repeats]
    rtt, throughput = (quantity(share, "fraction") for share in shares)
    audit.judge(
        "noisy",
        True if max(shares) >= NOISY_SHARE else None,
        f"Holds if, for at least {percent(NOISY_SHARE)} of the pairs tested twice, the two tests differ by a factor of "
        f"{NOISY_FACTOR:g} or more, in RTT or in throughput: {rtt} do in RTT and {throughput} in throughput. "
        "Two tests of a pair cannot rule out noise at other times. "
        f"{repeats[0].factor.sentence} {repeats[1].factor.sentence}",
    )

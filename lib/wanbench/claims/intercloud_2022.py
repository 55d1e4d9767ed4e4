"""Source 002: latency and throughput between regions of two clouds, tried on its published rows."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi

import pandas as pd

from ..formatting import count, percent, quantity
from ..plausibility import known_instances
from ..regions import LIGHT_KM_PER_MS
from ..stats.distance.clouds import CloudComparison
from ..stats.distance.inflation import ALL, Inflation
from ..stats.result import Estimate
from ..stats.tcp.compare_models import ModelComparison
from ..stats.tcp.window import window_limited_bps
from ..studies.intercloud_2022.charts import Charts
from ..studies.intercloud_2022.matched import Matched
from ..studies.intercloud_2022.nearest import Nearest
from ..studies.intercloud_2022.repeats import Repeats
from ..studies.intercloud_2022.scatter import Scatter
from ..studies.intercloud_2022.variants import DOUBTED_OUT, DOUBTED_OUT_CATALOGUE, Variants
from .ledger import Audit, audit

EARTH_RADIUS_KM = 6371.0088
EXAMPLE_WINDOW_BYTES, EXAMPLE_RTT_MS = 65_536, 80.0
GREATLY, A_TENTH = 1.5, 0.1
A_LITTLE = 1.25
NEAR_CEILING = 0.95


def throughput_across_clouds(
    *,
    tests: pd.DataFrame,
    charts: Charts,
    latency_r: Variants,
    throughput_r: Variants,
    inflation: Inflation,
    latency: Matched,
    throughput: Matched,
    clouds: CloudComparison,
    models: ModelComparison,
    repeats: tuple[Repeats, Repeats],
    scatters: Mapping[str, Scatter],
    nearest: Nearest,
) -> Audit:
    """
    Every claim of source 002 that its published rows can try.

    Parameters
    ----------
    tests : DataFrame
        As `ingest.per_test` gives them: one row per test.
    charts, latency_r, throughput_r, inflation, models, nearest
        What the functions of `stats` gave for the survey's pairs: `charts`, `variants` of both correlations with the
        plain reading first, `path_inflation`, `compare_models`, `nearest`.
    latency, throughput : Matched
        Both columns over the cities in which both clouds are.
    clouds : CloudComparison
        Of throughput: what the direction across the clouds does.
    repeats : tuple of Repeats
        Of RTT and of throughput.
    scatters : mapping of Scatter
        By chart, and of all pairs ("all").
    """
    found = audit("002-throughput-across-clouds")
    _facts(found, tests)
    for name, ways, panel in (("latency-r", latency_r, "rtt"), ("throughput-r", throughput_r, "throughput")):
        found.compare(
            name,
            float(ways.rows.r_rows.iloc[0]),
            f"{ways} One value per unordered pair, with the catalogue's coordinates:",
            within=getattr(charts["all"], panel).pearson,
        )
    _coordinates(found, latency_r)
    _noise(found, repeats)
    cost = f"Holds if the interval lies above 0. {latency.difference}"
    found.judge("within-latency", _beyond(latency.difference, 0), cost)
    slower = _beyond(throughput.difference, 1)
    direction = " ".join(str(each) for each in clouds.directions)
    found.judge(
        "within-throughput",
        None if slower is None else not slower,
        f"Holds if the interval lies below 1. {throughput.difference} Who receives matters more: {direction}",
    )
    median = inflation.medians[ALL]
    found.judge(
        "straightforward",
        median.high < A_LITTLE,
        f"Holds if the median is below {A_LITTLE:g} times. {median}",
    )
    _spiky(found, scatters)
    verdict = models.scores.set_index("model").verdict
    limited = [name for name in ("window-limited", "finite transfer") if name in verdict]
    windows = "; ".join(
        f"{name.replace('->', ' to ')} {chart.model.parameters['W'].written} ({chart.model.parameters['W'].written_interval})"
        for name, chart in charts.charts.items()
        if chart.model
    )
    found.judge(
        "buffers",
        any(verdict[name] != "worse" for name in limited),
        "Holds if a model in which the window limits predicts left-out regions best, or as well as the best. "
        f"{models.sentence} W by sender and receiver: {windows}.",
    )
    found.judge(
        "nearest", _beyond(nearest.share, 0.5), f"Holds if the interval lies above one half. {nearest}"
    )
    return found


def _coordinates(found: Audit, latency_r: Variants) -> None:
    r = latency_r.rows.set_index("reading").r_rows
    own, catalogued = r.iloc[0], r.iloc[1]
    said = (
        f"Holds if r over all rows is the same to half of the claimed digits: {own:.3f} with the survey's coordinates, "
        f"{catalogued:.3f} with the catalogue's."
    )
    if DOUBTED_OUT in r and DOUBTED_OUT_CATALOGUE in r:
        said += (
            f" Without the regions that the gate doubts it is {r[DOUBTED_OUT]:.3f} and {r[DOUBTED_OUT_CATALOGUE]:.3f}: "
            "the difference comes from those alone, not from cities that stand for data centres."
        )
    found.judge("coordinates", abs(own - catalogued) < found.claims["latency-r"].half_step, said)


def _spiky(found: Audit, scatters: Mapping[str, Scatter]) -> None:
    apart = {name: each.ratio for name, each in scatters.items() if name != "all"}
    verdicts = [_beyond(ratio, 1) for ratio in apart.values()]
    said = "; ".join(
        f"{name.replace('->', ' to ')} {ratio.written} ({ratio.written_interval})"
        for name, ratio in apart.items()
    )
    whole = (
        f" All pairs: {scatters['all'].ratio.written}, as they mix receivers." if "all" in scatters else ""
    )
    found.judge(
        "spiky",
        True if all(verdicts) else False if any(each is False for each in verdicts) else None,
        f"Holds if in every ordered pair of clouds throughput scatters more about its line than RTT: {said}.{whole}",
    )


def _beyond(estimate: Estimate, bound: float) -> bool | None:
    """Whether an interval lies above a bound; None where the bound is inside, or there is no interval."""
    if estimate.low > bound:
        return True
    return False if estimate.high < bound else None


def _facts(found: Audit, tests: pd.DataFrame) -> None:
    example = window_limited_bps(EXAMPLE_WINDOW_BYTES, EXAMPLE_RTT_MS) / 1e6
    found.compare("window-example", float(example), "8 W / RTT with W = 65,536 bytes and 80 ms.")
    around = 2 * pi * EARTH_RADIUS_KM / LIGHT_KM_PER_MS
    found.compare("antipodes", around, "The circumference of the mean sphere over c.")
    regions = {*tests.from_region, *tests.to_region}
    found.compare("n-regions", len(regions), "The published rows have these; the tool could test more.")
    pairs = tests.drop_duplicates(["from_region", "to_region"])
    found.compare(
        "n-pairs",
        len(pairs),
        f"Ordered pairs in the {count(len(tests), 'published row')}; the others are repeats.",
    )
    sent = tests["bytes"].mean() / 1e6
    found.compare(
        "volume",
        float(sent),
        f"The mean of the bytes column; {quantity(tests['bytes'].sum(), 'bytes')} in all.",
    )
    cap = float(known_instances().set_index("instance").egress_bps["e2-small"])
    within = tests[(tests.from_cloud == "gcp") & (tests.to_cloud == "gcp")]
    capped = within[within.throughput_bps >= NEAR_CEILING * cap]
    most = within.throughput_bps.max()
    found.judge(
        "ceilings",
        len(capped) > 0 and capped.distance_catalogue_km.median() < within.distance_catalogue_km.median(),
        f"{count(len(capped), 'test')} of {len(within):,} within Google Cloud reach {percent(NEAR_CEILING)} of the "
        f"{quantity(cap, 'bit/s')} that an e2-small may send, none more than {quantity(most, 'bit/s')}; their median "
        f"distance is {capped.distance_catalogue_km.median():,.0f} km, that of all "
        f"{within.distance_catalogue_km.median():,.0f} km.",
    )


def _noise(found: Audit, repeats: tuple[Repeats, Repeats]) -> None:
    shares = [float((each.pairs.factor >= GREATLY).mean()) for each in repeats]
    said = " and ".join(
        f"{quantity(share, 'fraction')} of them in {name}"
        for share, name in zip(shares, ("RTT", "throughput"), strict=True)
    )
    found.judge(
        "noisy",
        True if max(shares) >= A_TENTH else None,
        f"Holds if a tenth of the pairs that were tested twice differ by a factor of {GREATLY:g}: so do {said}. Two "
        f"occasions cannot rule it out for others. {repeats[0].factor} {repeats[1].factor}",
    )

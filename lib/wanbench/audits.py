"""
What makes each claim of a source hold or not: one function per source. Imports `claims`, `gate`, `stats`, `wording`.

The rule of every verdict stands in the working, with the numbers it was applied to.
"""

from __future__ import annotations

from math import pi

import pandas as pd

from .claims import Audit, audit
from .gate import known_instances
from .stats.charts import Charts
from .stats.clouds import CloudComparison
from .stats.distance import LIGHT_KM_PER_MS
from .stats.estimate import Estimate
from .stats.inflation import ALL, Inflation
from .stats.models.compare import ModelComparison
from .stats.models.window import window_limited_bps
from .stats.nearest import Nearest
from .stats.repeats import Repeats
from .stats.scatter import Scatter
from .stats.tcp import WindowFit
from .stats.variants import Variants
from .wording import count, percent, quantity

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
    latency: CloudComparison,
    throughput: CloudComparison,
    windows: dict[str, WindowFit],
    models: ModelComparison,
    repeats: tuple[Repeats, Repeats],
    scatter: Scatter,
    nearest: Nearest,
) -> Audit:
    """
    Every claim of source 002 that its published rows can try.

    Parameters
    ----------
    tests : DataFrame
        As `ingest.per_test` gives them: one row per test.
    charts, latency_r, throughput_r, inflation, latency, throughput, models, scatter, nearest
        What the functions of `stats` gave for the survey's pairs: `charts`, `variants` of both correlations with the
        plain reading first, `path_inflation`, `compare_clouds` of both columns, `compare_models`, `scatter`, `nearest`.
    windows : dict of WindowFit
        By receiving cloud.
    repeats : tuple of Repeats
        Of RTT and of throughput.
    """
    found = audit("002-throughput-across-clouds")
    _facts(found, tests)
    for name, ways, panel in (("latency-r", latency_r, "rtt"), ("throughput-r", throughput_r, "throughput")):
        plain = ways.rows.iloc[0]
        found.compare(
            name,
            float(plain.r_rows),
            f"{ways} One value per unordered pair, with the catalogue's coordinates:",
            within=getattr(charts["all"], panel).pearson,
        )
    by_name = latency_r.rows.set_index("reading").r_rows
    own, catalogued = by_name.iloc[0], by_name.iloc[1]
    found.judge(
        "coordinates",
        abs(own - catalogued) < found.claims["latency-r"].half_step,
        f"Over all rows r = {own:.3f} with the survey's coordinates and {catalogued:.3f} with the catalogue's; errors "
        "do not show where both round alike.",
    )
    _noise(found, repeats)
    difference, ratio = latency.difference.estimate, throughput.difference.estimate
    found.judge("within-latency", _beyond(difference, 0), f"Holds if the interval lies above 0. {difference}")
    said = " ".join(str(each) for each in (*throughput.crossing, *throughput.directions))
    holds = _beyond(ratio, 1)
    found.judge(
        "within-throughput",
        None if holds is None else not holds,
        f"Holds if the interval lies below 1. {ratio} {said}",
    )
    median = inflation.medians[ALL]
    found.judge(
        "straightforward",
        median.high < A_LITTLE,
        f"Holds if the median is below {A_LITTLE:g} times. {median}",
    )
    found.judge("spiky", _beyond(scatter.ratio, 1), f"Holds if the interval lies above 1. {scatter.ratio}")
    verdict = models.scores.set_index("model").verdict
    fitted = "; ".join(f"W = {fit.window.written} to {cloud}" for cloud, fit in windows.items())
    limited = [name for name in ("window-limited", "finite transfer") if name in verdict]
    found.judge(
        "buffers",
        any(verdict[name] != "worse" for name in limited),
        "Holds if a model in which the window limits predicts left-out regions best, or as well as the best. "
        f"{models.sentence} The window belongs to the receiver: {fitted}.",
    )
    found.judge(
        "nearest", _beyond(nearest.share, 0.5), f"Holds if the interval lies above one half. {nearest}"
    )
    return found


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
    found.compare("n-regions", len(regions), "Regions in the published rows.")
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
        max(shares) >= A_TENTH,
        f"Holds if a tenth of the pairs that were tested twice differ by a factor of {GREATLY:g}: so do {said}. "
        f"{repeats[0].factor} {repeats[1].factor}",
    )

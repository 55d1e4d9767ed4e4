"""The distance that halves throughput, by sending cloud."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from wanbench.checks import check_columns
from wanbench.errors import ParameterError
from wanbench.methods.distance.ceiling import CeilingFit, fit_with_ceiling
from wanbench.methods.result import Estimate, Result


@dataclass(frozen=True, repr=False)
class HalfDistances(Result):
    """`fits` maps each sending cloud to throughput against distance, with values at its ceiling as "at least"."""

    fits: dict[str, CeilingFit]

    TITLE = "Half-distance by sending cloud"

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(
            replace(
                fit.half_distance,
                quantity=f"half-distance from {cloud}",
                claim=f"From {cloud}, throughput halves every {{}} of distance",
            )
            for cloud, fit in self.fits.items()
        )

    @property
    def sentence(self) -> str:
        return " ".join(estimate.sentence for estimate in self.estimates)


def half_distances(pairs: pd.DataFrame) -> HalfDistances:
    """Fit throughput against distance separately for each cloud that sends (`from_cloud` of table `pairs`)."""
    check_columns("pairs", pairs, ["from_cloud"])
    if pairs.empty:
        raise ParameterError("no pair is given, so no cloud sends.")
    return HalfDistances({cloud: fit_with_ceiling(part) for cloud, part in pairs.groupby("from_cloud")})

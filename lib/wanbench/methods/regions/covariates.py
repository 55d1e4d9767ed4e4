"""Shared by regressions of pairs on several covariates: method texts, and which pairs cross clouds."""

from __future__ import annotations

import numpy as np

from .line import DYADIC, REFERENCES, SCALED, SCALED_REFERENCES

METHOD = f"least squares over unordered pairs; interval from the {SCALED} ({SCALED_REFERENCES})"
OF_DIRECTIONS = f"least squares over ordered pairs; interval from the {DYADIC} ({REFERENCES})"
PERMUTED = (
    "MRQAP by double semi-partialling (Dekker, Krackhardt & Snijders 2007): (k + 1) / (B + 1) over B random "
    "relabellings of the residuals of this covariate on the others, by its t statistic; the interval is that of the "
    "Monte Carlo error alone (Clopper & Pearson 1934)"
)


def cross_cloud(names: list[str]) -> np.ndarray:
    """1 for two regions of different clouds, else 0: (regions, regions)."""
    clouds = np.array([name.partition(":")[0] for name in names])
    return (clouds[:, None] != clouds).astype(float)

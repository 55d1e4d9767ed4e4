"""
Models of TCP throughput: formulas (pure and vectorised), fits, and their comparison on left-out regions.

`window`, `mathis`, `pftk`, `cubic` and `finite` hold the formulas. `models` lists what is fitted to pairs of regions,
`window_fit` and `fit_model` fit one model, `compare_models` scores all of them; `loss` estimates the loss of a path.
None of the loss models describes BBR, which sends at the rate it measures and not by a window that losses shrink.
"""

from .fit_model import ModelFit, fit_model
from .models import (
    advertised_window_bytes,
    buffer_bytes,
    bytes_sent,
    cubic_bps,
    mathis_bps,
    pftk_bps,
    window_limited_bps,
)

__all__ = [
    "ModelFit",
    "advertised_window_bytes",
    "buffer_bytes",
    "bytes_sent",
    "cubic_bps",
    "fit_model",
    "mathis_bps",
    "pftk_bps",
    "window_limited_bps",
]

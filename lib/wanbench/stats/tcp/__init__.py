"""
Models of TCP throughput: formulas (pure and vectorised), and their comparison on left-out regions.

`window`, `mathis`, `pftk`, `cubic`, `finite` hold the formulas; `forms` says what is fitted, `fit` fits, `compare`
scores. None of the loss models is of BBR, which sends at the rate it measures and not by a window that losses shrink.
"""

from .compare_models import ModelComparison, compare_models
from .cubic import cubic_bps, cubic_window
from .finite import bytes_sent, transfer_time_s
from .fit_model import ModelFit, fit_model
from .mathis import mathis_bps, mathis_loss
from .pftk import pftk_bps
from .window import advertised_window_bytes, buffer_bytes, parallel_bps, streams_needed, window_limited_bps

__all__ = [
    "ModelComparison",
    "ModelFit",
    "advertised_window_bytes",
    "buffer_bytes",
    "bytes_sent",
    "compare_models",
    "cubic_bps",
    "cubic_window",
    "fit_model",
    "mathis_bps",
    "mathis_loss",
    "parallel_bps",
    "pftk_bps",
    "streams_needed",
    "transfer_time_s",
    "window_limited_bps",
]

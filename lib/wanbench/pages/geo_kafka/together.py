"""Response surface of settings varied jointly: the combination with the highest throughput in their ranges."""

from __future__ import annotations

from wanbench.errors import MissingDataError, ParameterError
from wanbench.methods.trials.rates import TrialRates

from . import factor_columns
from .curves import VALUE
from .surface import Surface, fit_surface


def together(rates: TrialRates, *, setting: str = "together", level: float = 0.95) -> Surface:
    """
    A quadratic throughput surface over all settings that vary among these trials.

    Parameters
    ----------
    setting : str
        The name that all these trials share, although their levels differ.

    Raises
    ------
    MissingDataError
        If no trial has that name, or too few for a surface.
    """
    own = rates.rates[rates.rates.setting == setting]
    if own.empty:
        raise MissingDataError(f"no trial of {setting!r} was measured, which varies several settings jointly.")
    frame, columns = factor_columns.with_settings(own)
    varied = [name for name in columns if frame[name].nunique(dropna=False) > 1]
    frame = frame.infer_objects()
    linear = [name for name in varied if (frame[name] == 0).any()]
    try:
        return fit_surface(frame, VALUE, varied, linear=linear, unit="bit/s", level=level)
    except ParameterError as error:
        raise MissingDataError(f"trials of {setting!r} do not determine a surface: {error}") from error

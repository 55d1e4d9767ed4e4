"""
Statistical methods: functions that take tidy tables and return estimates with intervals. One folder per subject.

`result` (what every analysis returns), `regions` (pairs of regions and their dependence: regression, space,
jackknives), `distance` (RTT and throughput against distance), `tcp` (models of throughput), `time` (autocorrelated
series), `tails` (latency quantiles), `factorial` (designed experiments), `lab` (whether a lab delivered what was
requested), `trials` (Kafka trials), `cost` (what a cluster costs), `claims` (verdicts on a source's claims),
`comparison` (what changed between two runs).

Nothing here imports a lab or a page.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # for tools that read the code
    from . import cost as cost
    from . import lab as lab
    from .distance.inflation import path_inflation as path_inflation
    from .distance.inflation import physics_check as physics_check
    from .distance.straight_lines import fit_rtt as fit_rtt
    from .distance.straight_lines import fit_throughput as fit_throughput
    from .regions.sensitivity import with_and_without as with_and_without
    from .tcp.window_fit import fit_window as fit_window
    from .trials.limits import limits as limits
    from .trials.processors import processor_roles as processor_roles
    from .trials.rates import trial_rates as trial_rates

_MODULE_OF = {
    "cost": "cost",
    "fit_rtt": "distance.straight_lines",
    "fit_throughput": "distance.straight_lines",
    "fit_window": "tcp.window_fit",
    "lab": "lab",
    "limits": "trials.limits",
    "path_inflation": "distance.inflation",
    "physics_check": "distance.inflation",
    "processor_roles": "trials.processors",
    "trial_rates": "trials.rates",
    "with_and_without": "regions.sensitivity",
}
"""The module of each method, imported when the method is first used: all of them together take seconds."""

__all__ = list(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_MODULE_OF)}")
    module = import_module(f"{__name__}.{_MODULE_OF[name]}")
    return getattr(module, name, module)


def __dir__():
    return __all__

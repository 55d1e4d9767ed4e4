"""Numbers as printed by a source, and values computed from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product

from ..formatting import count
from ..stats.result import Estimate
from .ledger import Audit

SETTING = "A setting, not a measurement."
RERUN_ONLY = "The source gives no figures for it."


def claimed(audit: Audit, claim: str) -> float:
    """The number that the source claims."""
    return audit.claims[claim].number


def leave_untested(
    audit: Audit, left: Mapping[str, str], settings: Iterable[str], untold: Iterable[str]
) -> None:
    """Claims without a test on the source's own numbers: for a stated reason, as a setting, or for lack of figures."""
    for claim, why in left.items():
        audit.leave(claim, why)
    for claim, why in (dict.fromkeys(settings, SETTING) | dict.fromkeys(untold, RERUN_ONLY)).items():
        audit.judge(claim, None, why)


def from_printed(audit: Audit, function: Callable[..., float], *names: str, unit: str = "") -> Estimate:
    """A value computed from printed numbers; its interval covers their rounding."""
    claims = [audit.claims[name] for name in names]
    ends = [(one.number - one.half_step, one.number + one.half_step) for one in claims]
    reached = [function(*corner) for corner in product(*ends)]
    return Estimate(
        quantity="value from the printed numbers",
        claim="The printed numbers make {}",
        estimate=function(*(one.number for one in claims)),
        low=min(reached),
        high=max(reached),
        unit=unit,
        n=len(claims),
        basis=count(len(claims), "printed number"),
        method="every printed number at the ends of its last digit",
        assumption="Printed numbers are rounded",
        level=1.0,
    )

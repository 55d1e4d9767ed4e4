"""When a re-run confirms a claim: bounds on the interval of its estimate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ..checks import refusal
from ..stats.result import Estimate, Result
from .ledger import NOT_REPRODUCED, Audit, above


@dataclass(frozen=True)
class Rule:
    """When a re-run confirms a claim: a function of its estimate (None: open), and its description."""

    claim: str
    holds: Callable[[Estimate], bool | None]
    words: str


def over(bound: float) -> Callable[[Estimate], bool | None]:
    """Whether the interval lies above a bound."""
    return lambda estimate: above(estimate, bound)


def under(bound: float) -> Callable[[Estimate], bool | None]:
    """Whether the interval lies below a bound."""

    def holds(estimate: Estimate) -> bool | None:
        return True if estimate.high < bound else False if estimate.low > bound else None

    return holds


def other_than_1(estimate: Estimate) -> bool | None:
    """True if the interval does not contain 1; open if it does."""
    return True if estimate.low > 1 or estimate.high < 1 else None


def none(estimate: Estimate) -> bool | None:
    """Whether a count or share is zero; open if it is NaN."""
    return estimate.estimate == 0 if estimate.estimate >= 0 else None


def some(estimate: Estimate) -> bool | None:
    """Whether a count or share is above zero; open if it is NaN."""
    return estimate.estimate > 0 if estimate.estimate >= 0 else None


def always(estimate: Estimate) -> bool | None:
    """Whether a share is 1; open if it is NaN."""
    return estimate.estimate == 1 if estimate.estimate >= 0 else None


def all_or_none(estimate: Estimate) -> bool | None:
    """True for a share of 1, False for 0, open between."""
    return {0: False, 1: True}.get(estimate.estimate)


def estimates_by_name(given: Mapping[str, object], names: Iterable[str]) -> dict[str, Estimate]:
    """
    The given parameters, each as its main estimate.

    Raises
    ------
    ParameterError
        A value is not an Estimate, nor a Result that has one.
    """
    found = {}
    for name in names:
        value = given[name]
        if value is None:
            continue
        estimates = value.estimates if isinstance(value, Result) else ()
        estimate = value if isinstance(value, Estimate) else next(iter(estimates), None)
        if estimate is None:
            raise refusal(name, value, "an Estimate, a Result that has one, or None")
        found[name] = estimate
    return found


def again(audit: Audit, claim: str, holds: bool | None, working: str) -> None:
    """
    Add the verdict of a re-run to that of the source's own numbers.

    No re-run mends a claim that the source's own numbers contradict, and one that leaves it open changes no verdict.
    """
    own = audit.rows[claim]
    audit.judge(claim, holds, f"{own['working']} Re-run: {working}")
    if own["verdict"] == NOT_REPRODUCED or holds is None:
        audit.rows[claim]["verdict"] = own["verdict"]


def try_rules(audit: Audit, rules: Mapping[str, tuple[Rule, ...]], estimates: Mapping[str, Estimate]) -> None:
    """Test the claims of every rule whose estimate was given."""
    for name, estimate in estimates.items():
        for rule in rules.get(name, ()):
            again(audit, rule.claim, rule.holds(estimate), f"{rule.words} {estimate.sentence}")

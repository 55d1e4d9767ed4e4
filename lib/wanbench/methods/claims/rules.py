"""
When a re-run reproduces a claim: one rule for all sources.

A verdict needs a quantity that is comparable with the claim's; other estimates are shown without one. It needs at least
two episodes and a finite interval at 95 % that lies where the claim holds, or where it fails. All else is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from wanbench.checks import check_choice, refusal
from wanbench.formatting import number, percent
from wanbench.methods.result import Estimate, Result

from .ledger import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Audit, Claim

FEWEST = 2  # Episodes that a verdict needs: one says nothing of the scatter.
LEVEL = 0.95
# What is said never to happen happens in less than this share, and what always happens in more than the rest; sources
# give no bound, and one in ten would be noticed.
RARE = 0.1
MARGIN = 0.1  # A number measured again may differ by a tenth from the claimed one: sources give no margin.
NO_VERDICT = "Re-run, without a verdict:"


def too_little(estimate: Estimate) -> str:
    """Why an estimate decides nothing; "" if it can decide."""
    if estimate.n < FEWEST:
        return "A verdict takes two trials or episodes or more."
    return f"A verdict takes an interval at {percent(LEVEL)}." if estimate.level < LEVEL else ""


@dataclass(frozen=True)
class Bound:
    """Where the ends of an interval must lie for a claim to hold, and where for it to fail."""

    holds: Callable[[float, float], bool]
    fails: Callable[[float, float], bool]
    words: str

    def verdict(self, estimate: Estimate) -> str:
        """Return the verdict of an estimate: reproduced, not reproduced or undecided."""
        ends, lacking = (estimate.low, estimate.high), too_little(estimate)
        if lacking:
            return UNDECIDED
        if self.fails(*ends):
            return NOT_REPRODUCED
        return REPRODUCED if self.holds(*ends) and all(map(isfinite, ends)) else UNDECIDED


def over(bound: float) -> Bound:
    """An interval above a bound."""
    words = f"Holds if the interval lies above {number(bound)}, fails if it lies below."
    return Bound(lambda low, high: low > bound, lambda low, high: high < bound, words)


def under(bound: float) -> Bound:
    """An interval below a bound."""
    words = f"Holds if the interval lies below {number(bound)}, fails if it lies above."
    return Bound(lambda low, high: high < bound, lambda low, high: low > bound, words)


def near(value: float, margin: float) -> Bound:
    """An interval around a value, no wider than a margin to each side."""
    low_end, high_end = value - margin, value + margin
    ends = f"{number(low_end)} to {number(high_end)}"
    return Bound(
        lambda low, high: low_end <= low and high <= high_end,
        lambda low, high: high < low_end or low > high_end,
        f"Holds if the interval lies inside {ends}, fails if it lies outside.",
    )


DIFFERS = Bound(
    lambda low, high: low > 1 or high < 1,
    lambda low, high: low >= 1 - MARGIN and high <= 1 + MARGIN,
    f"Fails if the interval lies within {percent(MARGIN)} of 1; else holds if it does not contain 1.",
)
NEVER = Bound(
    lambda low, high: high < RARE,
    lambda low, high: low > 0,
    f"Holds if the interval lies below {percent(RARE)}, fails if it happened.",
)
ALWAYS = Bound(
    lambda low, high: low > 1 - RARE,
    lambda low, high: high < 1,
    f"Holds if the interval lies above {percent(1 - RARE)}, fails if it was once not so.",
)
SOME = Bound(
    lambda low, high: low > 0,
    lambda low, high: high < RARE,
    f"Holds if it happened, fails if the interval lies below {percent(RARE)}.",
)


def as_printed(claim: Claim) -> Bound:
    """Return the bound of a claimed number: its rounding as printed, or `MARGIN` of it if that is wider."""
    return near(claim.number, max(claim.half_step, MARGIN * abs(claim.number)))


@dataclass(frozen=True)
class Rule:
    """Which measured quantity tests which claim; by a bound, or against the number of the claim."""

    measured: str
    claim: str
    bound: Bound | None = None

    def bound_of(self, audit: Audit) -> Bound:
        """Return the rule's bound, or that of the claimed number."""
        return self.bound or as_printed(audit.claims[self.claim])


def main_estimate(name: str, value: object) -> Estimate:
    """
    An Estimate, or the first one of a Result.

    Raises ParameterError: it is neither.
    """
    estimates = value.estimates if isinstance(value, Result) else ()
    estimate = value if isinstance(value, Estimate) else next(iter(estimates), None)
    if estimate is None:
        raise refusal(name, value, "an Estimate, a Result that has one, or None")
    return estimate


def apply_rules(
    audit: Audit,
    rules: tuple[Rule, ...],
    shown: Mapping[str, tuple[str, ...]],
    measured: Mapping[str, Estimate | Result | None],
) -> None:
    """
    Test claims on what was measured again.

    shown: By quantity that is not comparable with the claims': the claims beside which it is shown.
    measured: Quantities by name; None for one that was not measured.

    Raises ParameterError: no rule uses a quantity, or it is no estimate.
    """
    names = dict.fromkeys([*(rule.measured for rule in rules), *shown])
    for name, value in measured.items():
        check_choice("measured quantity", name, names)
        if value is None:
            continue
        estimate = main_estimate(name, value)
        for rule in rules:
            if rule.measured == name:
                bound = rule.bound_of(audit)
                numbers = None if rule.bound else estimate
                working = f"{bound.words} {estimate.sentence} {too_little(estimate)}".strip()
                audit.rerun(rule.claim, bound.verdict(estimate), working, numbers)
        for claim in shown.get(name, ()):
            audit.note(claim, f"{NO_VERDICT} {estimate.sentence}")

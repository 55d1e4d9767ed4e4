"""
Decide whether a re-run reproduces a claim, by the same rule for all sources.

Only a quantity that is comparable with the claimed one gets a verdict; other estimates are shown without a verdict. The
estimate must come from at least two trials or episodes. The claim is reproduced if the 95 % interval of the estimate
lies entirely where the claim holds, and not reproduced if the interval lies entirely where the claim fails. Otherwise
the claim is undecided.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite

from wanbench.checks import check_choice, refusal
from wanbench.formatting import number, percent
from wanbench.methods.result import Estimate, Result

from .ledger import NOT_REPRODUCED, REPRODUCED, UNDECIDED, Audit, Claim

FEWEST = 2  # Trials or episodes that a verdict needs: a single one does not show the scatter.
LEVEL = 0.95
# "Never" means in less than this share of cases, "always" in more than 1 minus this share. Sources state no bound; one
# case in ten would be noticed.
RARE = 0.1
MARGIN = 0.1  # A number measured again may differ by a tenth from the claimed one: sources give no margin.
NO_VERDICT = "Re-run, without a verdict:"


def too_little(estimate: Estimate) -> str:
    """Return why an estimate is too weak for a verdict; "" if it suffices."""
    if estimate.n < FEWEST:
        return "A verdict needs at least two trials or episodes."
    return f"A verdict needs an interval at {percent(LEVEL)}." if estimate.level < LEVEL else ""


@dataclass(frozen=True)
class Bound:
    """
    Where an interval must lie for a claim to hold, and where it must lie for the claim to fail.

    holds, fails: Functions of both ends of the interval; return whether the claim holds or fails.
    words: The rule as a sentence.
    """

    holds: Callable[[float, float], bool]
    fails: Callable[[float, float], bool]
    words: str

    def verdict(self, estimate: Estimate) -> str:
        """Return the verdict on a claim by an estimate's interval: reproduced, not reproduced or undecided."""
        ends, lacking = (estimate.low, estimate.high), too_little(estimate)
        if lacking:
            return UNDECIDED
        if self.fails(*ends):
            return NOT_REPRODUCED
        return REPRODUCED if self.holds(*ends) and all(map(isfinite, ends)) else UNDECIDED


def over(bound: float) -> Bound:
    """Return the rule that the interval lies above a bound."""
    words = f"Holds if the interval lies above {number(bound)}, fails if it lies below."
    return Bound(lambda low, high: low > bound, lambda low, high: high < bound, words)


def under(bound: float) -> Bound:
    """Return the rule that the interval lies below a bound."""
    words = f"Holds if the interval lies below {number(bound)}, fails if it lies above."
    return Bound(lambda low, high: high < bound, lambda low, high: low > bound, words)


def near(value: float, margin: float) -> Bound:
    """Return the rule that the interval lies within a margin around a value."""
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
    f"Holds if the interval lies below {percent(RARE)}, fails if the event happened.",
)
ALWAYS = Bound(
    lambda low, high: low > 1 - RARE,
    lambda low, high: high < 1,
    f"Holds if the interval lies above {percent(1 - RARE)}, fails if there was an exception.",
)
SOME = Bound(
    lambda low, high: low > 0,
    lambda low, high: high < RARE,
    f"Holds if the event happened, fails if the interval lies below {percent(RARE)}.",
)


def as_printed(claim: Claim) -> Bound:
    """
    Return the rule that the interval lies within the claimed number's rounding, or within `MARGIN` of it if wider.
    """
    return near(claim.number, max(claim.half_step, MARGIN * abs(claim.number)))


@dataclass(frozen=True)
class Rule:
    """
    The measured quantity that tests a claim, and where its interval must lie.

    measured, claim: Names of the quantity and of the claim.
    bound: Where the interval must lie; default: near the claimed number (`as_printed`).
    """

    measured: str
    claim: str
    bound: Bound | None = None


def main_estimate(name: str, value: object) -> Estimate:
    """
    Return `value` if it is an Estimate, or the first estimate if it is a Result.

    name: The name of the quantity, for the error message.

    Raises ParameterError: `value` is neither, or a Result without an estimate.
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
    Set the verdicts on the claims of an audit from the quantities that a re-run measured.

    shown: Names of quantities that are not comparable with a claim, each with the claims whose working states them.
    measured: Measured quantities by name; None for a quantity that was not measured.

    Raises ParameterError: a quantity is in no rule and not in `shown`, or is not an estimate.
    """
    names = dict.fromkeys([*(rule.measured for rule in rules), *shown])
    for name, value in measured.items():
        check_choice("measured quantity", name, names)
        if value is None:
            continue
        estimate = main_estimate(name, value)
        for rule in rules:
            if rule.measured == name:
                bound = rule.bound or as_printed(audit.claims[rule.claim])
                working = f"{bound.words} {estimate.sentence} {too_little(estimate)}".strip()
                audit.rerun(rule.claim, bound.verdict(estimate), working, estimate)
        for claim in shown.get(name, ()):
            audit.note(claim, f"{NO_VERDICT} {estimate.sentence}")

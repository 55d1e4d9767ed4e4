"""The one rule of all re-runs: every rule of every source can give each verdict, and little evidence gives none."""

from importlib import import_module
from itertools import combinations_with_replacement
from math import inf, nan

import pytest
from tested_claims import NOT, OWN, UNKNOWN, estimate

from wanbench.errors import ParameterError
from wanbench.methods.claims import ledger, rules

MODULES = ("private_vs_internet", "geo_kafka", "tail_latency", "rolling_and_degraded", "price_performance")
SOURCES = {name: import_module(f"wanbench.pages.{name}.claims") for name in MODULES}
CLAIMS = {module.SOURCE: ledger.read_claims(module.SOURCE).claims for module in SOURCES.values()}
ALL = [(module.SOURCE, rule) for module in SOURCES.values() for rule in module.RULES]
VALUES = (0, 0.001, 0.05, 0.2, 0.5, 0.92, 0.95, 0.98, 1, 1.04, 1.2, 1.4, 1.8, 2.5, 4, 8, 12, 30)
"""Ends of made intervals, on both sides of every bound."""


def each_rule(test):
    return pytest.mark.parametrize("source, rule", ALL, ids=[f"{rule.measured}-{rule.claim}" for _, rule in ALL])(test)


def verdict(source, rule, low, high, **about):
    audit = ledger.Audit(source, CLAIMS[source])
    rules.apply_rules(audit, (rule,), {}, {rule.measured: estimate((low + high) / 2, low, high, **about)})
    return audit.rows[rule.claim]["rerun"]


def intervals(source, rule):
    claimed = CLAIMS[source][rule.claim].number
    near = () if rule.bound else (0.5 * claimed, 0.99 * claimed, 1.01 * claimed, 2 * claimed)
    return list(combinations_with_replacement(sorted({*VALUES, *near}), 2))


@each_rule
def test_every_rule_can_give_each_verdict(source, rule):
    given = {verdict(source, rule, *ends) for ends in intervals(source, rule)}
    assert given == {OWN, NOT, UNKNOWN}


@each_rule
def test_one_episode_decides_nothing(source, rule):
    assert {verdict(source, rule, *ends, n=1) for ends in intervals(source, rule)} == {UNKNOWN}


@each_rule
def test_wide_open_and_missing_intervals_never_reproduce(source, rule):
    assert verdict(source, rule, -1e9, 1e9) == UNKNOWN and verdict(source, rule, nan, nan) == UNKNOWN
    for low, high in intervals(source, rule):
        assert verdict(source, rule, low, inf) != OWN
        assert verdict(source, rule, low, high, level=0.75) == UNKNOWN


@each_rule
def test_a_rule_is_about_a_claim_that_a_re_run_can_test(source, rule):
    claim = CLAIMS[source][rule.claim]
    assert claim.tested_by in ("re-run", "both") and bool(rule.bound) | bool(claim.value)


@pytest.mark.parametrize("name", MODULES)
def test_what_is_shown_is_about_claims_and_has_no_rule(name):
    module = SOURCES[name]
    shown = getattr(module, "SHOWN", {})
    assert not set(shown) & {rule.measured for rule in module.RULES}
    claims = CLAIMS[module.SOURCE]
    assert all(claim in claims for each in shown.values() for claim in each)


def test_a_claim_with_two_quantities_needs_both():
    both = (rules.Rule("a", "survives", rules.NEVER), rules.Rule("b", "survives", rules.ALWAYS))
    for lost, served, expected in (
        ((0, 0.05), (0.95, 1), OWN),
        ((0, 0.5), (0.95, 1), UNKNOWN),
        ((0, 0.05), (0.2, 1), UNKNOWN),
        ((0.1, 0.5), (0.95, 1), NOT),
        ((0, 0.05), (0.2, 0.9), NOT),
    ):
        audit = ledger.Audit("001-geo-kafka", CLAIMS["001-geo-kafka"])
        rules.apply_rules(audit, both, {}, {"a": estimate(0, *lost), "b": estimate(1, *served)})
        assert audit.rows["survives"]["rerun"] == expected, (lost, served)


def test_the_working_says_what_a_verdict_lacks():
    for about, text in (({"n": 1}, "two trials or episodes"), ({"level": 0.75}, "an interval at 95 %")):
        audit = ledger.Audit("001-geo-kafka", CLAIMS["001-geo-kafka"])
        rule = rules.Rule("rpo", "rpo", rules.NEVER)
        rules.apply_rules(audit, (rule,), {}, {"rpo": estimate(0, 0, 0.01, **about)})
        assert audit.rows["rpo"]["rerun"] == UNKNOWN and text in audit.rows["rpo"]["working"]


def test_a_number_is_compared_within_its_rounding_or_a_tenth():
    bound = rules.as_printed(CLAIMS["000-private-vs-internet"]["packets"])
    assert bound.verdict(estimate(2, 1.55, 2.45)) == OWN and bound.verdict(estimate(2, 1.4, 2.6)) == UNKNOWN
    bound = rules.as_printed(CLAIMS["000-private-vs-internet"]["times"])
    assert bound.verdict(estimate(2.25, 2.05, 2.45)) == OWN and bound.verdict(estimate(1.88, 1.6, 2)) == NOT


def test_what_is_no_estimate_or_unknown_is_refused():
    for module in SOURCES.values():
        function = getattr(module, module.__name__.split(".")[2].replace("intercloud_2022", "throughput_across_clouds"))
        name = next(rule.measured for rule in module.RULES)
        with pytest.raises(ParameterError, match=rf"{name} is 4\.0; allowed: an Estimate, a Result that has one"):
            function(**{name: 4.0})
        if module is not SOURCES["private_vs_internet"]:
            with pytest.raises(ParameterError, match="measured quantity is 'other'; allowed: "):
                function(other=estimate(1, 0.9, 1.1))

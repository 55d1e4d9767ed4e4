"""The base class of results: what text, table, page and finding derive from the estimates."""

from dataclasses import dataclass
from math import nan

import pandas as pd

from wanbench.methods.result import Estimate, Interval, Result, RowsResult
from wanbench.methods.result.means import ratio_estimate


def estimate(quantity, value, *warnings, **fields):
    fields = {"low": value - 0.4, "high": value + 0.4, "unit": "ms", "basis": "4 runs"} | fields
    return Estimate(
        quantity,
        f"The {quantity} is {{}}",
        value,
        n=4,
        method="a method",
        assumption="an assumption",
        warnings=warnings,
        **fields,
    )


@dataclass(frozen=True, repr=False)
class Pair(Result):
    one: Estimate
    other: Estimate
    missing: Estimate | None = None
    n: int = 2

    TITLE = "Two of them"


PAIR = Pair(estimate("delay", 14.237, "few runs"), estimate("jitter", 2.0, "few runs", "a <queue>"))


def test_the_estimates_are_the_fields_that_are_estimates_in_their_order():
    assert PAIR.estimates == (PAIR.one, PAIR.other)
    assert Result().estimates == ()


def test_text_is_the_first_estimate_and_each_caution_once():
    sentence = "The delay is 14.24 ms (95 % interval 13.84 to 14.64; 4 runs)."
    assert PAIR.sentence == sentence
    assert str(PAIR) == repr(PAIR) == f"{sentence} Caution: few runs. Caution: a <queue>."


def test_the_page_shows_every_estimate_as_its_sentence_writes_it():
    html = PAIR._repr_html_()
    assert html.count("few runs") == 1 and "a &lt;queue&gt;" in html and "Two of them" in html
    for one in PAIR.estimates:
        assert f"<td>{one.formatted}</td>" in html and f"<td>{one.formatted_interval}</td>" in html
    assert list(PAIR.table().quantity) == ["delay", "jitter"]


def test_the_finding_has_the_text_and_the_numbers_of_the_first_estimate():
    finding = PAIR.finding("delay")
    assert (
        str(finding) == str(PAIR)
        and finding.sentence == PAIR.sentence
        and finding.estimate == 14.237
        and finding.unit == "ms"
    )


def test_an_unknown_estimate_says_what_is_known_of_it():
    assert estimate("delay", nan, low=nan, high=nan).sentence == "Delay cannot be estimated (4 runs)."
    open_ended = estimate("delay", nan, low=3.0, high=float("inf")).sentence
    assert open_ended == "Delay cannot be estimated (it is at least 3.00 ms; 4 runs)."


def test_a_result_without_estimates_has_a_finding_without_numbers():
    finding = RowsOnly(pd.DataFrame({"n": [1]})).finding("rows")
    assert finding.sentence == "One row." and finding.estimate is None and finding.n is None


class RowsOnly(RowsResult):
    sentence = "One row."


def test_the_interval_of_a_ratio_may_end_beyond_the_largest_float():
    about = {"n": 2, "method": "a method", "assumption": "an assumption", "basis": "2 trials"}
    ratio = ratio_estimate(0.0, 1000.0, quantity="ratio", claim="The ratio is {}", **about)
    assert (ratio.low, ratio.high) == (0.0, float("inf")) and "1" in str(ratio)


def test_a_range_is_not_rounded_past_its_estimate():
    price = estimate("price", 0.0288, low=0.02815, high=0.02947)
    assert price.formatted_other(Interval("worst", 0.02815, 0.2434)) == "0.0282 to 0.243"
    assert price.formatted_other(Interval("worst", 0.02614, 0.03152)) == "0.0261 to 0.0315"


def test_the_interval_that_ignores_dependence_is_in_the_table_and_not_in_the_sentence():
    """It is narrower for most numbers and wider for some, so a sentence cannot say in passing what it shows."""
    one = estimate("slope", 14.237, naive=Interval("pairs taken as independent", 14.1, 14.4))
    assert "independent" not in one.sentence and "14.10 to 14.40" in one._repr_html_()
    assert "14.10 to 14.40" in Pair(one, one)._repr_html_()

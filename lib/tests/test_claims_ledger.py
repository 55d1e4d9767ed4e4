import math

import pytest

from wanbench.errors import ParameterError, RawDataError
from wanbench.methods.claims import ledger
from wanbench.methods.result.estimate import Estimate


def estimate(value, low, high):
    return Estimate("r", "r is {}", value, low, high, "", 10, 5, "method", "assumption")


HEAD = "claim,section,says,value,unit,page,tested_by,why\n"
REST = "03-a,own numbers,\n"


@pytest.fixture
def audit(tmp_path):
    rows = f"r,Results,r is so,0.92,,{REST}n,Tests,so many,2070,pairs,{REST}words,Results,it is so,,,{REST}"
    (tmp_path / "source.csv").write_text(HEAD + rows)
    return ledger.read_claims("source", tmp_path)


@pytest.mark.parametrize(
    "value, low, high, verdict",
    [
        (0.915, 0.915, 0.915, "reproduced"),
        (0.9249, 0.7, 0.99, "reproduced"),
        (0.914, 0.88, 0.93, "inside the interval"),
        (0.93, 0.923, 0.94, "inside the interval"),
        (0.88, 0.84, 0.91, "not reproduced"),
        (0.88, math.nan, math.nan, "not reproduced"),
    ],
)
def test_a_number_comes_out_where_it_rounds_to_the_printed_one(audit, value, low, high, verdict):
    audit.compare("r", estimate(value, low, high), "all rows")
    row = audit.table().set_index("claim").loc["r"]
    assert row.own == verdict
    assert row.working.startswith("all rows") and "r is" in row.working


def test_whole_numbers_and_sentences_are_tried_too(audit):
    audit.compare("n", 2070)
    audit.judge("words", False, "because of <this>")
    table = audit.table().set_index("claim")
    assert table.own.to_dict() == {"r": "not tested", "n": "reproduced", "words": "not reproduced"}
    assert str(audit) == "3 claims of this source. By its own numbers: 1 reproduced, 1 not reproduced."
    assert "&lt;this&gt;" in audit._repr_html_()
    made = audit.finding("claims-of-it")
    assert made.n == 2 and made.answer and made.counted == "2 claims"
    assert made.headline == "Of 3 claims of this source, 1 holds by its own numbers and 1 fails."
    audit.judge("words", None, "too few pairs")
    assert audit.table().set_index("claim").own["words"] == "undecided"


def test_arithmetic_that_holds_is_no_measurement_that_agrees(audit):
    audit.compare("n", 2070)
    audit.rerun("n", "not reproduced", "it was 1,500.", estimate(1500, 1400, 1600))
    row = audit.table().set_index("claim").loc["n"]
    assert (row.own, row.rerun, row.recomputed) == ("reproduced", "not reproduced", 2070)
    assert row.measured == "1,500 (95 % interval 1,400 to 1,600)"
    assert str(audit).endswith("By its own numbers: 1 reproduced. By the re-run: 1 not reproduced.")
    assert [one.estimate for one in audit.estimates] == [1, 0]


def test_claims_that_only_the_re_run_tests_are_counted(audit):
    audit.rerun("n", "reproduced", "it was 2,070.")
    assert audit.finding("claims-of-it").counted == "1 claim"


def test_a_claim_that_is_not_there_or_has_no_number_is_refused(audit):
    with pytest.raises(ParameterError, match="claim of source is 'q'; allowed: 'r', 'n', 'words'"):
        audit.judge("q", True, "")
    with pytest.raises(ParameterError, match="has no number"):
        audit.compare("words", 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n",
        HEAD + f"r,s,t,much,u,{REST}",
        HEAD + f"r,s,t,1,u,{REST}r,s,t,2,u,{REST}",
        HEAD + f",s,t,1,u,{REST}",
        HEAD + "r,s,t,1,u,v,03-a,somehow,\n",
    ],
)
def test_a_broken_file_of_claims_is_refused(tmp_path, text):
    (tmp_path / "source.csv").write_text(text)
    with pytest.raises(RawDataError):
        ledger.read_claims("source", tmp_path)


def test_an_unknown_source_names_those_there_are():
    with pytest.raises(ParameterError, match=r"source is 'nobody'; allowed: .*002-throughput-across-clouds"):
        ledger.read_claims("nobody")


def test_what_could_not_be_recomputed_is_no_verdict_and_claims_keep_their_digits(audit):
    audit.compare("r", estimate(math.nan, math.nan, math.nan))
    assert audit.table().set_index("claim").own["r"] == "undecided"
    shown = audit._repr_html_()
    assert "<td>0.92</td>" in shown and "<td>2,070 pairs</td>" in shown


def test_a_source_without_claims_is_shown():
    empty = ledger.Audit("nothing", {})
    assert len(empty.table()) == 0 and "0 claims" in str(empty) and "none" in empty._repr_html_()


def test_claims_start_with_what_the_file_says_of_them(tmp_path):
    rows = (
        "r,Results,so,1,,08-a,own numbers,\nn,Results,so,2,,09-b,not here,needs a cloud\ns,Setup,so,3,,09-b,setting,\n"
    )
    (tmp_path / "source.csv").write_text(HEAD + rows)
    audit = ledger.read_claims("source", tmp_path)
    found = audit.table().set_index("claim")
    assert found.own.to_dict() == {"r": "not tested", "n": "cannot be tested here", "s": "not tested"}
    assert found.working[["n", "s"]].tolist() == ["needs a cloud", "The claim states a setting, not a measurement."]
    assert str(audit) == "3 claims of this source (1 states a setting, 1 cannot be tested here)."
    assert audit.estimates[0].n == 0
    part = audit.on_page("09-b")
    assert list(part.claims) == list(part.rows) == ["n", "s"]
    with pytest.raises(ParameterError, match="page of source is '10-c'; allowed: '08-a', '09-b'"):
        audit.on_page("10-c")


@pytest.mark.parametrize(
    "source",
    [
        "000-private-vs-internet",
        "001-geo-kafka",
        "002-throughput-across-clouds",
        "003-tail-latency",
        "004-price-performance",
    ],
)
def test_every_claim_names_its_page_and_how_it_is_tried(source):
    claims = ledger.read_claims(source).claims.values()
    assert len(claims) >= 16 and all(claim.page and claim.says for claim in claims)
    assert all(claim.why for claim in claims if claim.tested_by == "not here")

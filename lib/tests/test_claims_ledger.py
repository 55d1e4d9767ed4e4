import math

import pytest

from wanbench.claims import ledger
from wanbench.errors import ParameterError, RawDataError
from wanbench.stats.result.estimate import Estimate


def estimate(value, low, high):
    return Estimate("r", "r is {}", value, low, high, "", 10, 5, "method", "assumption")


HEAD = "claim,section,says,value,unit,source\n"


@pytest.fixture
def audit(tmp_path):
    rows = "r,Results,r is so,0.92,,the article\nn,Tests,so many,2070,pairs,the article\nwords,Results,it is so,,,x\n"
    (tmp_path / "source.csv").write_text(HEAD + rows)
    return ledger.read_claims("source", tmp_path)


@pytest.mark.parametrize(
    "value, low, high, verdict",
    [
        (0.915, 0.915, 0.915, "reproduced"),
        (0.9249, 0.7, 0.99, "reproduced"),
        (0.914, 0.88, 0.93, "inside the interval"),
        (0.88, 0.84, 0.91, "not reproduced"),
        (0.88, math.nan, math.nan, "not reproduced"),
    ],
)
def test_a_number_comes_out_where_it_rounds_to_the_printed_one(audit, value, low, high, verdict):
    audit.compare("r", estimate(value, low, high), "all rows")
    row = audit.table().set_index("claim").loc["r"]
    assert row.verdict == verdict
    assert row.off_by == pytest.approx(value - 0.92)
    assert row.working.startswith("all rows") and "r is" in row.working


def test_whole_numbers_and_sentences_are_tried_too(audit):
    audit.compare("n", 2070)
    audit.judge("words", False, "because of <this>")
    table = audit.table().set_index("claim")
    assert table.verdict.to_dict() == {"r": "not tried", "n": "reproduced", "words": "not reproduced"}
    assert str(audit) == "3 claims of this source: 1 reproduced, 1 not reproduced, 1 not tried."
    audit.judge("words", None, "too few pairs")
    assert audit.table().set_index("claim").verdict["words"] == "undecided"
    audit.judge("words", False, "because of <this>")
    assert "&lt;this&gt;" in audit._repr_html_()
    assert audit.finding("claims-of-it").n == 2


def test_a_claim_that_is_not_there_or_has_no_number_is_refused(audit):
    with pytest.raises(ParameterError, match="claim of source is 'q'; allowed: 'r', 'n', 'words'"):
        audit.judge("q", True, "")
    with pytest.raises(ParameterError, match="has no number"):
        audit.compare("words", 1.0)


@pytest.mark.parametrize(
    "text", ["a,b\n", HEAD + "r,s,t,much,u,v\n", HEAD + "r,s,t,1,u,v\nr,s,t,2,u,v\n", HEAD + ",s,t,1,u,v\n"]
)
def test_a_broken_file_of_claims_is_refused(tmp_path, text):
    (tmp_path / "source.csv").write_text(text)
    with pytest.raises(RawDataError):
        ledger.read_claims("source", tmp_path)


def test_an_unknown_source_names_those_there_are():
    with pytest.raises(ParameterError, match=r"source is 'nobody'; allowed: .*002-throughput-across-clouds"):
        ledger.read_claims("nobody")


def test_every_published_file_can_be_read():
    assert len(ledger.read_claims("002-throughput-across-clouds").claims) >= 16


def test_what_could_not_be_recomputed_is_no_verdict_and_claims_keep_their_digits(audit):
    audit.compare("r", estimate(math.nan, math.nan, math.nan))
    assert audit.table().set_index("claim").verdict["r"] == "undecided"
    shown = audit._repr_html_()
    assert "<td>0.92</td>" in shown and "<td>2,070 pairs</td>" in shown


def test_a_source_without_claims_is_shown():
    empty = ledger.Audit("nothing", {})
    assert len(empty.table()) == 0 and "0 claims" in str(empty) and "none" in empty._repr_html_()


def test_a_claim_that_cannot_be_tried_here_says_why_and_is_not_counted(audit):
    audit.compare("n", 2070)
    audit.leave("words", "needs a cloud")
    row = audit.table().set_index("claim").loc["words"]
    assert (row.verdict, row.working) == ("cannot be tried here", "needs a cloud")
    assert "1 cannot be tried here" in str(audit) and audit.estimates[0].n == 1


def test_a_claim_may_name_the_page_that_tries_it_and_how(tmp_path):
    head = "claim,section,says,value,unit,source,page,tried_by\n"
    rows = "r,Results,so,1,,x,08-a,own numbers\nn,Results,so,2,,x,09-b,not here\n"
    (tmp_path / "source.csv").write_text(head + rows)
    audit = ledger.read_claims("source", tmp_path)
    audit.compare("n", 2)
    part = audit.on_page("09-b")
    assert list(part.claims) == list(part.rows) == ["n"] and audit.claims["r"].tried_by == "own numbers"
    with pytest.raises(ParameterError, match="page of source is '10-c'; allowed: '08-a', '09-b'"):
        audit.on_page("10-c")
    (tmp_path / "source.csv").write_text(head + rows.replace("not here", "somehow"))
    with pytest.raises(RawDataError, match="somehow"):
        ledger.read_claims("source", tmp_path)


@pytest.mark.parametrize("source", ["001-geo-kafka", "003-tail-latency", "004-price-performance"])
def test_sources_of_several_pages_say_of_every_claim_how_it_is_tried(source):
    claims = ledger.read_claims(source).claims.values()
    assert all(claim.page and claim.tried_by in ledger.WAYS and claim.says for claim in claims)

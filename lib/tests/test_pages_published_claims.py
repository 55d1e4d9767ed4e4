"""The ledger of all claims: every claim once, whoever tested it, and counts that add up."""

import pytest

from wanbench.errors import ParameterError
from wanbench.methods.claims.ledger import VERDICTS, read_articles, read_claims
from wanbench.pages import compression_levels, published_claims
from wanbench.pages.published_claims.all_claims import OWN, RERUN


@pytest.fixture
def folder(tmp_path):
    audit = compression_levels.claims.compression_levels()
    audit.rerun("gzip-rate", "not reproduced", "it was 4.6 times.")
    audit.save(tmp_path / "13-compression-levels")
    audit.save(tmp_path / ".13-compression-levels-being-written")
    return tmp_path


def test_every_claim_is_there_once_with_the_verdict_of_the_page_that_tested_it(folder):
    claims = published_claims.all_claims(folder=folder)
    expected = [(source, claim) for source in read_articles() for claim in read_claims(source).claims]
    assert list(zip(claims.rows.source, claims.rows.claim, strict=True)) == expected
    row = claims.rows[claims.rows.claim == "gzip-rate"].iloc[0]
    assert (row[OWN], row[RERUN], row.kind, row.page) == (
        "not reproduced", "not reproduced", "measured again", "13-compression-levels"
    )  # fmt: skip
    others = claims.rows[claims.rows.source != "005-compression-levels"]
    assert set(others.kind) == {"a setting", "cannot be tested here", "not tested"}
    assert others.Working.str.startswith("The page that tests this claim has not been made").all()


def test_counts_add_up_and_the_figure_has_them(folder):
    claims = published_claims.all_claims(["005-compression-levels"], folder)
    assert len(claims.rows) == 47 and claims.counts(RERUN)["not reproduced"] == 1
    assert sum(len(trace.x) and sum(trace.x) for trace in claims.figure().data) == 47
    verdicts = sum(sum(trace.x) for trace in claims.figure().data if trace.name != "not tested")
    assert f"of {verdicts} published claims with a verdict" in claims.figure().layout.title.text
    assert "47 claims in 1 published source" in claims.sentence and claims.cautions
    tested = [set(claims.rows.index[claims.rows[column].isin(VERDICTS)]) for column in (OWN, RERUN)]
    assert f"were measured again, including {len(set.intersection(*tested))} of the recomputed ones" in claims.sentence
    assert "KIP-390" in claims._repr_html_() and 'class="estimates ledger"' in claims._repr_html_()


def test_an_unknown_source_is_refused(folder):
    with pytest.raises(ParameterError, match="'006-none'"):
        published_claims.all_claims(["006-none"], folder)

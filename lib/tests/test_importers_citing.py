import pandas as pd
import pytest

from wanbench.errors import ParameterError
from wanbench.read import importers

ROW = {
    "path": "/somewhere/on/this/machine/a.csv",
    "title": "A <survey>",
    "address": "https://example.org/a.csv",
    "version": "commit 1234",
    "sha256": "ab" * 32,
    "bytes": 12345,
    "licence": None,
}


def test_a_citation_has_all_but_the_path():
    cited = importers.cite({"sources": pd.DataFrame([ROW])})
    expected = (
        "A <survey>; commit 1234; licence not known; https://example.org/a.csv; 12,345 bytes, SHA-256 " + "ab" * 32
    )
    assert str(cited) == expected + "."
    assert "A &lt;survey&gt;" in cited._repr_html_() and "machine" not in cited._repr_html_()


def test_tables_without_sources_are_refused():
    with pytest.raises(ParameterError, match="table sources is missing; there are tests"):
        importers.cite({"tests": pd.DataFrame()})

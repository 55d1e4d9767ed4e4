"""Published studies are committed as the importers make them of the original files, and name their sources."""

import pytest
from pandas.testing import assert_frame_equal
from published_studies import STUDIES, available, import_originals, write_tables

from wanbench import tables
from wanbench.errors import ParameterError
from wanbench.folders import published_folder
from wanbench.read.importers import read_published


@pytest.mark.parametrize("name", STUDIES)
def test_committed_tables_are_what_the_originals_hold(name):
    if not all(available(original) for original in STUDIES[name][1]):
        pytest.skip("the original files are not on this machine")
    committed, made = read_published(name), import_originals(name)
    assert set(committed) == set(made)
    for table in made:
        assert_frame_equal(committed[table], made[table])


@pytest.mark.parametrize("name", STUDIES)
def test_committed_tables_name_their_source(name):
    sources = tables.read("sources", published_folder() / name)
    assert len(sources) == len(STUDIES[name][1])
    assert sources.licence.eq("Apache-2.0").all() and sources.sha256.str.len().eq(64).all()
    assert not sources.path.str.contains("/").any()


def test_an_unknown_study_is_refused_with_those_that_exist():
    for use in (read_published, import_originals, write_tables):
        with pytest.raises(ParameterError, match="published study is 'x'; allowed: 'intercloud-2022-02', 'sky"):
            use("x")

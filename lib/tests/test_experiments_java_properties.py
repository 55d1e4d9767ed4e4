"""Java's properties files, as java.util.Properties reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.design.openmessaging_files import properties_text, read_properties


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("a=1\r\nb = 2\rc:3\nd 4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("#a=1\n  ! b=2\n\n \t\nc\n", {"c": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a\\ b\\=c=d", {"a b=c": "d"}),
        ("a = = b", {"a": "= b"}),
        ("a=x\\\n   y\nb=x\\\\\nc=1", {"a": "xy", "b": "x\\", "c": "1"}),
        ("a=\\\n#b", {"a": "#b"}),
        ("a=trailing  ", {"a": "trailing  "}),
        ("a=\\t\\n\\z\\u00fc\\ud83d\\ude00", {"a": "\t\nzü😀"}),
        ("a=x\\", {"a": "x"}),
    ],
)
def test_what_java_makes_of_it(text, found):
    assert read_properties(text) == found


def test_a_broken_escape_is_refused():
    with pytest.raises(ParameterError, match="four hexadecimal digits"):
        read_properties("a=\\u00g0")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)


@given(st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=4))
def test_what_is_written_reads_the_same(settings):
    text = properties_text(settings)
    assert read_properties(text) == settings and text.isascii()

"""YAML files of one level: what is read, and what is refused with its place."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.design.openmessaging_files import LARGEST_BYTES, Scalar, flat_text, read_flat


def read(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_flat(path)


def test_scalars_keep_their_text_and_line(tmp_path):
    found = read(tmp_path, "# why\na: 1\n\nb: 'x y'\nc: |\n  p=1\n  q=2\nd: [1, [2, 3]]\ne:\n  - x\n")
    assert found["a"] == Scalar("1", True, 2) and found["b"] == Scalar("x y", False, 4)
    assert found["c"].value == "p=1\nq=2\n"
    assert found["d"] == [1, [2, 3]] and found["e"] == ["x"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-7", -7), ("1_000", 1000), ("0", 0), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("true", True),
        ("FALSE", False), ("~", None), ("", None), ("null", None), ("'1'", "1"), ("yes", "yes"), ("010", "010"),
        ("0x1F", "0x1F"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01"), (".inf", ".inf"), ("NaN", "NaN"),
    ],
)  # fmt: skip
def test_only_what_all_parsers_agree_about_is_a_number(tmp_path, text, value):
    found = read(tmp_path, f"a: {text}\n")["a"].value
    assert found == value and type(found) is type(value)


BOMB = "a: &a [x, x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(9))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "line 1: there is an anchor or alias; allowed: values written out"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1: there is the tag"),
        ("a: !!int 3\n", "the tag 'tag:yaml.org,2002:int'"),
        ("a: 1\nb: 2\na: 3\n", "line 3: there is 'a' twice"),
        ("a: 1\n---\na: 2\n", "a second document"),
        ("a: {b: 1}\n", "a mapping in the mapping"),
        ("a: [[[1]]]\n", "a list in this place"),
        ("? [a]\n: 1\n", "a list in this place"),
        ("- a\n", "a list in this place"),
        ("just text", "there is the text 'just text'"),
        ("", "is empty; allowed: names with values"),
        ("# nothing\n", "is empty"),
        ("a: [1\n", "line 2"),
        ("a: '%\n", "allowed: YAML"),
        ("a: %x\n", "allowed: YAML"),
        ("[" * 60_000, "a list in this place"),
        (b"a: \xff\n", "not UTF-8"),
        (b"a: \x00\n", "allowed: YAML"),
        ("a: " + "x" * LARGEST_BYTES, f"more than {LARGEST_BYTES:,} bytes"),
    ],
)
def test_what_is_refused(tmp_path, text, said):
    with pytest.raises(ParameterError) as error:
        read(tmp_path, text)
    assert said in str(error.value) and "a.yaml" in str(error.value)


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "none.yaml", ".", "a\0b"):
        with pytest.raises(ParameterError):
            read_flat(f"{tmp_path}/{name}")


LINES = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"), exclude_characters="\xa0"))
TEXTS = st.lists(LINES.filter(str.isprintable), max_size=4).map("\n".join) | st.text("a #:=\\\"'\n\t-|>%@`", max_size=9)
VALUES = (
    TEXTS
    | st.integers(0, 2**63)
    | st.floats(0, 1)
    | st.booleans()
    | st.lists(st.integers(0, 9) | TEXTS, max_size=3)
    | st.lists(st.lists(st.integers(0, 9), max_size=3), max_size=3)
)


@given(values=st.dictionaries(st.from_regex(r"[a-zA-Z]{1,9}", fullmatch=True), VALUES, min_size=1, max_size=4))
def test_what_is_written_reads_the_same(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "written.yaml"
    path.write_bytes(flat_text(values).encode())
    found = {name: value.value if isinstance(value, Scalar) else value for name, value in read_flat(path).items()}
    assert found == values

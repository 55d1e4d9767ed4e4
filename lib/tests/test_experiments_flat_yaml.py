"""YAML files of one level: what is read, and what is refused with its place."""

import os

import pytest

from wanbench.errors import ParameterError
from wanbench.pages.tail_latency.design.openmessaging_files import LARGEST_BYTES, read_flat


def read(tmp_path, text):
    path = tmp_path / "a.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_flat(path)


def values(found):
    return {name: value for name, (_, value) in found.items()}


def test_entries_keep_their_place(tmp_path):
    found = read(tmp_path, "# why\na: 1\n\nb: 'x y'\nc: |\n  p=1\n  q=2\nd: [1, [2, 3]]\ne:\n  - x\n")
    assert values(found) == {"a": 1, "b": "x y", "c": "p=1\nq=2\n", "d": [1, [2, 3]], "e": ["x"]}
    assert found["b"][0].start_mark.line == 3


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1), ("-7", -7), ("1_000", 1000), ("0", 0), ("1.5", 1.5), ("1e3", 1000.0), (".5", 0.5), ("true", True),
        ("FALSE", False), ("~", None), ("", None), ("null", None), ("'1'", "1"), ("yes", "yes"), ("010", "010"),
        ("0x1F", "0x1F"), ("1:30", "1:30"), ("2024-01-01", "2024-01-01"), (".inf", ".inf"), ("NaN", "NaN"),
    ],
)  # fmt: skip
def test_only_what_all_parsers_agree_about_is_a_number(tmp_path, text, value):
    found = values(read(tmp_path, f"a: {text}\n"))["a"]
    assert found == value and type(found) is type(value)


BOMB = "a: &a [x, x]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [*{chr(97 + n)}, *{chr(97 + n)}]\n" for n in range(9))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "line 2: there is an alias; allowed: YAML"),
        ("a: !!python/object/apply:os.system [ls]\n", "line 1: could not determine a constructor for the tag"),
        ("a: 1\nb: 2\na: 3\n", "line 3: there is 'a' twice"),
        ("a: 1\n---\na: 2\n", "line 2: but found another document"),
        ("a: {b: 1}\n", "line 1: allowed: names with scalars, or lists"),
        ("a: [[[1]]]\n", "line 1: allowed: names with scalars, or lists"),
        ("? [a]\n: 1\n", "line 1: allowed: names with scalars, or lists"),
        ("- a\n", "holds sequence; allowed: names with values"),
        ("just text", "holds scalar; allowed: names with values"),
        ("", "holds nothing; allowed: names with values"),
        ("# nothing\n", "holds nothing"),
        ("a: [1\n", "line 2"),
        ("a: '%\n", "allowed: YAML"),
        ("a: %x\n", "allowed: YAML"),
        ("[" * 60_000, "cannot be read"),
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

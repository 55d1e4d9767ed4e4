"""The library stays thin: `make size` prints what these tests bound."""

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def size():
    """The script, which reads the whole library when it is imported: not while tests are collected."""
    spec = importlib.util.spec_from_file_location("size", ROOT / "scripts" / "size.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def total(size):
    return [sum(column) for column in zip(*map(size.lines, size.PATHS), strict=True)]


def test_the_library_stays_under_45_000_lines_of_code_in_400_files(size, total):
    assert total[0] < 45_000 and len(size.PATHS) <= 400


def test_docstrings_are_at_most_a_fifth_of_its_lines(size, total):
    assert total[1] <= 0.2 * sum(len(path.read_text().splitlines()) for path in size.PATHS.values())


def test_what_one_notebook_alone_reaches_stands_in_its_room(size):
    assert size.reached_by_one() == {}


def test_lines_of_code_are_counted_without_docstrings_comments_and_blank_lines(size, monkeypatch, tmp_path):
    path = tmp_path / "one.py"
    path.write_text('"""Two\nlines."""\n\n# a comment\nX = 1\n\n\ndef f():\n    """Return it."""\n    return X\n')
    monkeypatch.setitem(size.PATHS, "one", path)
    monkeypatch.setitem(size.TREES, "one", ast.parse(path.read_text()))
    assert size.lines("one") == (3, 3)

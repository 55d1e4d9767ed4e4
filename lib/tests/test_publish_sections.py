"""Sections that are left out where their data are absent, and what cell tags do to a page."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from wanbench.publish.cells import read_cells
from wanbench.publish.execute import NotebookError, execute
from wanbench.publish.notebooks import kind, optional_section

ABSENT = "from wanbench.errors import MissingDataError\nraise MissingDataError('this lab has no links table')"


def notebook(*cells):
    made = []
    for source, tag in cells:
        new = new_markdown_cell if source.startswith(("#", "Text")) else new_code_cell
        made.append(new(source, metadata={"tags": [tag]} if tag else {}))
    return new_notebook(cells=made)


def run(folder, *cells):
    path = folder / "page.ipynb"
    nbformat.write(notebook(*cells), path)
    return execute(path, {}, folder / "out.ipynb")


def test_optional_sections_without_data_have_no_heading_and_are_listed_at_the_end_with_the_reason(tmp_path):
    done = run(
        tmp_path,
        ("# Question", ""),
        ("## Links\nText of the section", "optional"),
        (ABSENT, ""),
        ("### Below", ""),
        ("print('never shown')", ""),
        ("## After", ""),
        ("print('shown')", ""),
        ("## No reason", "optional"),
        ("from wanbench.errors import MissingDataError\nraise MissingDataError", ""),
        ("## Hostile", "optional"),
        (ABSENT.replace("no links", "no <script>"), ""),
        ("## With data", "optional"),
        ("print('measured')", ""),
    )
    found = read_cells(done.notebook)
    *above, last = [str(part.html) for part in found.parts]
    html = "".join(above)
    assert ">shown" in html and "After" in html and "measured" in html
    assert not any(text in html for text in ("Links", "Below", "never shown", "Text of the section", "left out"))
    assert [heading.text for heading in found.headings] == ["Question", "After", "With data"]
    assert "3 sections are left out" in last and "<li>Links: this lab has no links table" in last
    assert "<li>No reason: its data are missing." in last
    assert "this lab has no &lt;script&gt; table" in last and "<script>" not in last


@pytest.mark.parametrize(
    "cells",
    [
        [("# Q", ""), ("## Links", "optional"), ("1 / 0", "")],
        [("# Q", ""), ("## Links", "optional"), ("1", ""), ("## Next", ""), (ABSENT, "")],
    ],
    ids=["another error", "after the section"],
)
def test_other_errors_fail_the_page(tmp_path, cells):
    with pytest.raises(NotebookError):
        run(tmp_path, *cells)


def test_a_section_ends_at_the_next_heading_of_its_level():
    made = notebook(("# Q", ""), ("## A", "optional"), ("1", ""), ("### B", ""), ("2", ""), ("## C", ""), ("3", ""))
    assert [optional_section(made, k) for k in (0, 2, 4, 6)] == [None, range(1, 5), range(1, 5), None]


def test_a_cell_after_an_inner_optional_section_stands_in_the_outer_one():
    made = notebook(
        ("## A", "optional"), ("1", ""), ("### B", "optional"), ("2", ""), ("### C", ""), ("3", ""), ("## D", "")
    )
    assert [optional_section(made, k) for k in (1, 3, 5, 6)] == [range(6), range(2, 4), range(6), None]


@pytest.mark.parametrize("tag, expected", [("check", "check"), ("introduction", "introduction"), ("", "study")])
def test_the_tag_of_the_title_says_what_a_page_is(tag, expected):
    assert kind(notebook(("# Q", tag), ("1", "check"))) == expected

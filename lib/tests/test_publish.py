"""Notebooks to pages: running them, what reaches the page, what is escaped, what is left out, what fails."""

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import nbformat
import pytest
from example_site import CELLS, FAILING, built_from, built_site, jobs, make_checkout, notebook

from wanbench.errors import ParameterError, RawDataError
from wanbench.publish.cells import read_cells
from wanbench.publish.cleaning import clean
from wanbench.publish.execute import NotebookError, Progress, execute
from wanbench.publish.figures import SHOWN_ROWS, read_figure
from wanbench.publish.files import replace_file, replaced_folder
from wanbench.publish.formulas import FormulaError, TextRenderer, mathml
from wanbench.publish.notebooks import find_notebook, notebook_paths, read_notebook
from wanbench.publish.report import publish
from wanbench.publish.site import Site
from wanbench.publish.static import Renderer, StaticFilesError, browser, normalised_svg

with_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(browser() is None, reason="no Chromium on this machine"),
]


class Elements(HTMLParser):
    """Every element of a page with its attributes, and the text between them."""

    def __init__(self, html):
        super().__init__()
        self.found, self.text = [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.found if name == tag]


@pytest.fixture(scope="module")
def site():
    return built_site() / "site"


@pytest.fixture(scope="module")
def page(site):
    return (site / "00-example.html").read_text()


def outputs(*contents, **streams):
    """A notebook whose only code cell has left these outputs."""
    made = notebook([("code", "x")])
    made.cells[0].outputs = [nbformat.v4.new_output("display_data", data=data) for data in contents]
    made.cells[0].outputs += [
        nbformat.v4.new_output("stream", name=name, text=text) for name, text in streams.items()
    ]
    return made


def plotly_output(**meta):
    return {
        "application/vnd.plotly.v1+json": {
            "data": [],
            "layout": {"title": {"text": "A <b>title</b>"}, "meta": meta},
        }
    }


# Pages


def test_page_has_title_language_and_skip_link(page):
    elements = Elements(page)
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert "<title>How does latency grow with distance? · wanbench</title>" in page
    assert elements.all("a")[0] == {"class": "skip", "href": "#content"}


def test_page_asks_no_server_for_anything(site):
    fetched = {
        "script": "src",
        "img": "src",
        "link": "href",
        "iframe": "src",
        "source": "src",
        "video": "src",
    }
    for path in site.glob("*.html"):
        for tag, attributes in Elements(path.read_text()).found:
            wanted = attributes.get(fetched.get(tag), "data:,")
            assert re.match(r"data:|(assets|figures)/", wanted), (path.name, tag, wanted)
            if not wanted.startswith("data:"):
                assert (site / wanted).is_file(), wanted


def test_every_local_link_leads_somewhere(site):
    for path in site.glob("*.html"):
        elements = Elements(path.read_text())
        anchors = {attributes.get("id") for _, attributes in elements.found}
        for attributes in elements.all("a"):
            file, _, anchor = attributes["href"].partition("#")
            assert not file or (site / file).is_file(), attributes
            assert file or anchor in anchors, attributes


def test_table_of_contents_lists_the_headings(page):
    contents = page[page.index('<nav class="contents"') : page.index("</nav>")]
    assert re.findall(r'href="#([^"]+)">([^<]+)<', contents) == [
        ("the-model", "The model"),
        ("the-first-rows", "The first rows"),
        ("the-figures", "The figures"),
        ("colophon", "How this page was made"),
    ]


def test_code_is_there_but_folded(page):
    folds = [attributes for attributes in Elements(page).all("details") if attributes.get("class") == "code"]
    assert len(folds) >= 4
    assert all("open" not in attributes for attributes in folds)
    assert "linspace" in page


def test_the_colophon_cell_is_left_out_of_the_text(page):
    assert "colophon()" not in page and "This page names no run." in page


def test_formulas_need_no_script(page):
    assert page.count("<math") == 3 and page.count('display="block"') == 1
    assert "$" not in "".join(Elements(page).text)


def test_page_ends_with_parameters_versions_and_commit(page):
    footer = page[page.index('<footer id="colophon">') :]
    assert "<code>n_points</code></th><td><code>20</code></td><td>points on the line" in footer
    assert "<code>slope_ms_per_km</code></th><td><code>0.01</code>" in footer
    assert re.search(r"Made with wanbench [\d.]+, Python 3\.\d+\.\d+, numpy", footer)
    assert re.search(r"Commit <code>[0-9a-f]{40}</code>|Not made from a git checkout", footer)


def test_banner_says_why_samples_are_shown(page):
    assert "<strong>Replayed from the committed samples:</strong> no &lt;rights&gt; here." in page


def test_progress_of_measuring_is_not_on_the_page(page):
    assert '<pre class="printed">points: 20' in page and "\n12 of 12 tests done" not in page


def test_figure_has_alt_text_caption_numbers_and_files(site, page):
    figure = page[page.index('id="figure-rtt-by-distance"') : page.index("</figure>")]
    assert 'role="img" aria-label="RTT rises with distance along a straight line for both clouds."' in figure
    assert "A made-up line &lt;/script&gt;" in figure
    assert 'href="figures/00-example/rtt-by-distance.csv"' in figure
    assert figure.count("<tr>") == 21 and '<td class="number">100.0</td>' in figure
    lines = (site / "figures/00-example/rtt-by-distance.csv").read_text().splitlines()
    assert lines[0] == "distance_km,rtt_ms" and len(lines) == 21


def test_figure_json_cannot_end_its_script_and_holds_no_numbers_twice(page):
    scripts = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    drawings = [json.loads(script) for script in scripts]
    assert len(drawings) == 2
    assert drawings[0]["layout"]["meta"]["name"] == "rtt-by-distance"
    assert "csv" not in drawings[0]["layout"]["meta"]
    assert drawings[0]["config"]["displaylogo"] is False
    assert "width" not in drawings[0]["layout"]
    assert not any(character in script for script in scripts for character in "<>&")


def test_figure_without_meta_gets_a_name_and_alt_text(page):
    assert 'id="figure-figure-2"' in page and 'aria-label="Tests per cloud"' in page


def test_hostile_text_is_escaped(page):
    assert "alert(1)" in page and "alert(2)" in page
    assert not any(
        "alert" in text
        for text in re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
        if '"data"' not in text
    )
    assert "<script>alert" not in page


def test_two_builds_are_byte_identical(site, tmp_path, monkeypatch):
    for module in ("page", "site"):  # a commit in between is another origin
        monkeypatch.setattr(f"wanbench.publish.{module}.origin", lambda: built_from)
    again = Site(built_site(), tmp_path / "site", tmp_path / "build")
    publish(jobs(built_site()), again, io.StringIO())
    first = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    second = {
        path.relative_to(again.folder): path.read_bytes()
        for path in again.folder.rglob("*")
        if path.is_file()
    }
    assert set(first) == set(second)
    assert [str(path) for path in first if first[path] != second[path]] == []


# The front page


def test_front_page_lists_findings_and_pages(site):
    html = (site / "index.html").read_text()
    assert "RTT rises by &lt;10&gt; ms per 1,000 km." in html and "9.80 to 10.70" in html
    assert html.index("00-example.html") < html.index("01-failing") < html.index("02-later")
    assert "Every pair of <em>regions</em> was looked at" in html
    assert "Not made yet: <code>wanbench report 02-later</code>" in html


def test_failed_page_is_not_published_and_the_front_page_says_so(site):
    html = (site / "index.html").read_text()
    assert not (site / "01-failing.html").exists()
    assert (
        "01-failing.ipynb: cell 5 of 6, under &#39;Where it fails&#39;: ValueError: no &lt;data&gt; for 1"
        in html
    )
    assert "Found on a page that failed" not in html
    assert (built_site() / "build/notebooks/01-failing.ipynb").is_file()


def test_a_page_that_fails_takes_its_predecessor_away(tmp_path):
    top = make_checkout(tmp_path / "top", {"01-failing": FAILING})
    site = Site.of(top)
    replace_file(site.folder / "01-failing.html", b"old")
    replace_file(site.folder / "figures/01-failing/a.csv", b"old")
    site.record_failed("01-failing", "reason")
    site.write_front_page()
    assert [path.name for path in site.folder.rglob("*failing*")] == []


def test_record_that_is_damaged_is_refused(tmp_path):
    site = Site.of(make_checkout(tmp_path / "top", {"01-failing": FAILING}))
    replace_file(site.build / "pages/01-failing.json", b"{}")
    with pytest.raises(RawDataError, match=r"01-failing\.json: expected the record of a page"):
        site.records()


# Running


def test_wrong_parameters_stop_everything_before_anything_runs(tmp_path):
    top = make_checkout(tmp_path / "top", {"00-example": CELLS})
    good, bad = jobs(built_site())[1], jobs(built_site())[1]
    bad.given["n_pointz"] = 3
    stream = io.StringIO()
    with pytest.raises(ParameterError, match=r"unknown parameter 'n_pointz' \(did you mean 'n_points'\?\)"):
        publish([good, bad], Site.of(top), stream)
    assert stream.getvalue() == "" and not (top / "site").exists()


def test_progress_says_where_the_notebook_is():
    stream = io.StringIO()
    progress = Progress("02-x", 3, stream)
    cells = notebook([("text", "# Title"), ("code", "1"), ("text", "## Part\n\ntext")]).cells
    progress.cell_starts(cells[0], 0)
    injected = nbformat.v4.new_code_cell("x = 1", metadata={"tags": ["injected-parameters"]})
    progress.cell_starts(injected, 1)
    progress.cell_starts(cells[1], 2)
    progress.write("1 of 2\n")
    progress.write("half a line")
    progress.cell_starts(cells[2], 3)
    assert progress.place() == "cell 3 of 3, under 'Part'"
    assert stream.getvalue() == (
        "02-x: 3 cells\n  cell 1 of 3: Title\n    1 of 2\n    half a line\n  cell 3 of 3: Part\n"
    )


def test_a_killed_kernel_is_said_so(tmp_path):
    cells = [("text", "# Kill"), ("code", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")]
    top = make_checkout(tmp_path / "top", {"00-kill": cells})
    with pytest.raises(NotebookError, match=r"00-kill\.ipynb: cell 2 of 2, under 'Kill': the kernel died"):
        execute(top / "notebooks/00-kill.ipynb", {}, tmp_path / "out.ipynb", io.StringIO())


WAITING = """\
import sys, time
from pathlib import Path
print("measuring", file=sys.stderr, flush=True)
try:
    Path("started").touch()
    time.sleep(60)
finally:
    time.sleep(0.5)
    Path("put-away").touch()"""


@pytest.mark.parametrize(("signal_number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupts_reach_the_notebook_which_puts_its_things_away(tmp_path, signal_number, status):
    top = make_checkout(
        tmp_path / "top", {"00-wait": [("code", WAITING), ("code", "Path('went-on').touch()")]}
    )
    words = [sys.executable, "-c", "import sys; from wanbench.cli import main; sys.exit(main())", "run", "00"]
    process = subprocess.Popen(words, cwd=top, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not (top / "notebooks/started").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal_number)
        _, stderr = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == status
    assert (top / "notebooks/put-away").exists() and not (top / "notebooks/went-on").exists()
    assert "    measuring\n" in stderr and "interrupted" in stderr and "Traceback" not in stderr


# Notebook files


def test_notebooks_are_found_by_name_or_its_start(tmp_path):
    top = make_checkout(tmp_path / "top", {"00-tour": CELLS, "02-a": CELLS, "02-b": CELLS})
    paths = notebook_paths(top)
    assert [path.stem for path in paths] == ["00-tour", "02-a", "02-b"]
    for name in ("00", "00-tour", "00-tour.ipynb", str(paths[0])):
        assert find_notebook(name, top) == paths[0]
    with pytest.raises(ParameterError, match="more than one notebook is meant by '02'"):
        find_notebook("02", top)
    with pytest.raises(
        ParameterError, match=r"no notebook is meant by '00-tuor' \(did you mean '00-tour'\?\)"
    ):
        find_notebook("00-tuor", top)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"nbformat": 4}', b"\xff\xfe"])
def test_files_that_are_no_notebooks_are_refused(tmp_path, content):
    (tmp_path / "x.ipynb").write_bytes(content)
    with pytest.raises(RawDataError, match=r"x\.ipynb: expected a Jupyter notebook"):
        read_notebook(tmp_path / "x.ipynb")
    with pytest.raises(ParameterError, match="cannot be read"):
        read_notebook(tmp_path / "none.ipynb")


# Parts of pages


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        (
            "<style>td {color: red}</style><table><tr><td>1</td></tr></table>",
            "<table><tbody><tr><td>1</td></tr></tbody></table>",
        ),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ('<a href="javascript:alert(1)">x</a>', "<a>x</a>"),
        ('<p onclick="alert(1)" class="c">x</p>', '<p class="c">x</p>'),
        ("<iframe src='http://x'></iframe>", "&lt;iframe src='http://x'&gt;&lt;/iframe&gt;"),
        (
            '<p style="text-align: left; background: url(http://x)">x</p>',
            '<p style="text-align: left;">x</p>',
        ),
    ],
)
def test_only_harmless_html_is_kept(dirty, cleaned):
    assert clean(dirty) == cleaned


def test_output_kinds():
    made = outputs(
        {"text/html": "<b>bold</b>", "text/plain": "plain"},
        {"text/markdown": "*soft* $x$ <script>1</script>"},
        {"image/png": "iVBORw0KGgo=\n"},
        {"image/svg+xml": "<svg onload='x'/>"},
        {"text/plain": "<plain>"},
        {"application/unknown": "x"},
        stdout="\x1b[31mred\x1b[0m <tag>",
        stderr="progress",
    )
    html = [str(part.html) for part in read_cells(made).parts if part.kind == "output"]
    assert html[0] == '<div class="wide"><b>bold</b></div>'
    assert "<em>soft</em> <math" in html[1] and "<script" not in html[1]
    assert html[2].endswith('src="data:image/png;base64,iVBORw0KGgo=">')
    assert "data:image/svg+xml;base64," in html[3] and "onload" not in html[3]
    assert html[4] == '<pre class="printed">&lt;plain&gt;</pre>'
    assert 'class="ansi-red-fg"' in html[5] and "&lt;tag&gt;" in html[5]
    assert len(html) == 6


def test_figure_names_are_file_names_and_differ():
    made = outputs(plotly_output(name="../Rtt & more"), plotly_output(name="rtt more"), plotly_output())
    found = read_cells(made).figures
    assert [figure.name for figure in found] == ["rtt-more", "rtt-more-2", "figure-3"]
    assert found[2].alt == "A title"


@pytest.mark.parametrize("csv", [3, "a,b\n1\n", 'a\n"x'])
def test_numbers_that_are_no_csv_are_refused(csv):
    with pytest.raises(RawDataError, match="figure 1"):
        read_cells(outputs(plotly_output(csv=csv)))


@pytest.mark.parametrize("content", ["x", {}, {"data": "x"}])
def test_what_is_no_figure_is_refused(content):
    with pytest.raises(RawDataError, match="figure 1: expected a Plotly figure"):
        read_figure(content, 1, set())


def test_long_tables_are_cut_with_their_length_known():
    csv = "n\n" + "".join(f"{number}\n" for number in range(1000))
    figure = read_figure({"data": [], "layout": {"meta": {"csv": csv}}}, 1, set())
    header, rows, count = figure.rows()
    assert (header, len(rows), count) == (["n"], SHOWN_ROWS, 1000)


@pytest.mark.parametrize(
    ("source", "message"),
    [(r"\frac{", "no formula"), (r"x + \nosuch<y", r"the command \\nosuch is not known")],
)
def test_formulas_that_fail_show_their_source(source, message):
    with pytest.raises(FormulaError, match=message):
        mathml(source)
    shown = source.replace("<", "&lt;")
    assert TextRenderer().html_of(f"${source}$") == f'<p><code class="formula">{shown}</code></p>\n'


def test_headings_get_anchors_that_differ():
    renderer = TextRenderer()
    renderer.html_of("## Results & *more*\n\n## Results & more\n\n### Δ")
    assert [(one.level, one.text, one.anchor) for one in renderer.headings] == [
        (2, "Results & more", "results-more"),
        (2, "Results & more", "results-more-2"),
        (3, "Δ", "section"),
    ]


# Files


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path):
    with replaced_folder(tmp_path / "a") as folder:
        (folder / "x").write_text("1")
    with pytest.raises(KeyError), replaced_folder(tmp_path / "a") as folder:
        (folder / "y").write_text("2")
        raise KeyError
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "x"]


def test_svg_ids_are_normalised():
    assert (
        normalised_svg(b'<g id="defs-7f22fe"/><g id="clip7f22fexy"/>')
        == b'<g id="defs-000000"/><g id="clip000000xy"/>'
    )
    assert normalised_svg(b"<svg/>") == b"<svg/>"


# Static files


def test_without_a_browser_the_page_says_so(tmp_path, monkeypatch):
    top = make_checkout(tmp_path / "top", {"00-example": CELLS})
    monkeypatch.setattr("wanbench.publish.report.browser", lambda: None)
    executed = shutil.copy(built_site() / "build/notebooks/00-example.ipynb", tmp_path / "executed.ipynb")
    monkeypatch.setattr("wanbench.publish.report.execute", lambda *_: stored(executed))
    (record,) = publish([jobs(top)[1]], Site.of(top), io.StringIO())
    html = (top / "site/00-example.html").read_text()
    assert record.outcome == "published" and record.thumbnail == ""
    assert "have no SVG and PNG files: the machine that made it has no Chromium" in html
    assert [path.name for path in (top / "site/figures/00-example").iterdir()] == ["rtt-by-distance.csv"]
    assert "For a blog" not in html


def stored(path):
    from wanbench.publish.execute import Executed

    return Executed("00-example", read_notebook(path), ())


def test_a_browser_that_does_not_start_is_said_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.publish.static.browser", lambda: "/bin/false")
    monkeypatch.setattr("wanbench.publish.static.START_S", 5)
    figure = read_figure({"data": [], "layout": {}}, 1, set())
    with Renderer() as renderer, pytest.raises(StaticFilesError, match="figure figure-1"):
        renderer.write(figure, tmp_path)


class TestStaticFiles:
    pytestmark = with_browser

    def test_files_have_the_blog_sizes(self, site):
        folder = site / "figures/00-example"
        for width, height in ((1200, 675), (800, 450)):
            png = (folder / f"rtt-by-distance-{width}x{height}.png").read_bytes()
            assert png[:8] == b"\x89PNG\r\n\x1a\n"
            assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (width, height)
            svg = (folder / f"rtt-by-distance-{width}x{height}.svg").read_text()
            assert f'width="{width}" height="{height}"' in svg and "Latency against distance" in svg
        assert len(list(folder.iterdir())) == 9

    def test_first_figure_is_the_thumbnail(self, site):
        assert 'src="figures/00-example/rtt-by-distance-800x450.png"' in (site / "index.html").read_text()

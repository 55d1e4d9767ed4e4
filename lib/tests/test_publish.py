"""Notebooks to pages: running them, what reaches the page, what is escaped, what is left out, what fails."""

import io
import json
import re
import shutil
import sys
from html.parser import HTMLParser

import pytest
from example_site import CELLS, FAILING, ONE_SIZE, PARAMETERS, built_from, built_site, jobs, make_checkout

from wanbench.errors import RawDataError
from wanbench.files import replace_file
from wanbench.findings import Finding
from wanbench.methods.claims.ledger import Audit, Claim
from wanbench.publish.figures import read_figure
from wanbench.publish.jobs import Job
from wanbench.publish.notebooks import read_notebook
from wanbench.publish.pictures import Renderer, StaticFilesError, browser
from wanbench.publish.provenance import Source
from wanbench.publish.site import Record, Site, _data, library_hash_now, publish

pytestmark = pytest.mark.browser


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


@pytest.fixture(scope="module", name="site")
def example_site():
    return built_site() / "site"


@pytest.fixture(scope="module")
def page(site):
    return (site / "00-example.html").read_text()


# Pages


def test_page_has_title_language_and_skip_link(page):
    elements = Elements(page)
    assert page.startswith('<!doctype html>\n<html lang="en">')
    assert "<title>How does latency grow with distance? · wanbench</title>" in page
    assert elements.all("a")[0] == {"class": "skip", "href": "#content"}


def test_page_asks_no_server_for_anything(site):
    fetched = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
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
        ("provenance", "How this page was made"),
    ]


def test_code_is_there_but_folded(page):
    folds = [attributes for attributes in Elements(page).all("details") if attributes.get("class") == "code"]
    assert len(folds) >= 4
    assert all("open" not in attributes for attributes in folds)
    assert "linspace" in page


def test_the_provenance_cell_is_left_out_of_the_text(page):
    assert "provenance()" not in page and "This page uses no run." in page


def test_formulas_need_no_script(page):
    assert page.count("<math") == 3 and page.count('display="block"') == 1
    assert "$" not in "".join(Elements(page).text)


def test_page_ends_with_parameters_versions_and_commit(page):
    footer = page[page.index('<footer id="provenance">') :]
    assert "<code>n_points</code></th><td><code>20</code></td><td>points on the line" in footer
    assert "<code>slope_ms_per_km</code></th><td><code>0.01</code>" in footer
    assert re.search(r"Made with wanbench [\d.]+, Python 3\.\d+\.\d+, numpy", footer)
    assert re.search(r"Commit <code>[0-9a-f]{40}</code>|Not made from a git checkout", footer)


def test_banner_says_why_samples_are_shown(page):
    assert "<strong>Replayed from the committed recording.</strong> no &lt;rights&gt; here." in page


def test_progress_of_measuring_is_not_on_the_page(page):
    assert '<pre class="printed">points: 20' in page and "\n12 of 12 tests done" not in page


def test_figure_has_alt_text_caption_numbers_and_files(site, page):
    figure = page[page.index('id="figure-rtt-by-distance"') : page.index("</figure>")]
    assert 'alt="RTT rises with distance along a straight line for both clouds."' in figure
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
    assert "meta" not in drawings[0]["layout"]
    assert drawings[0]["config"]["displayModeBar"] is False
    assert "width" not in drawings[0]["layout"]
    assert not any(character in script for script in scripts for character in "<>&")


def test_figure_without_meta_gets_a_name_and_alt_text(page):
    assert 'id="figure-figure-2"' in page and 'aria-label="Tests per cloud"' in page


def test_hostile_text_is_escaped(page):
    assert "alert(1)" in page and "alert(2)" in page
    assert not any(
        "alert" in text for text in re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL) if '"data"' not in text
    )
    assert "<script>alert" not in page


def test_two_builds_are_byte_identical(site, tmp_path, monkeypatch):
    for module in ("page", "site"):  # a commit in between is another origin
        monkeypatch.setattr(f"wanbench.publish.{module}.origin", lambda: built_from)
    again = Site(built_site(), tmp_path / "site", tmp_path / "build", tmp_path / "findings")
    with ONE_SIZE:
        publish(jobs(built_site()), again, io.StringIO())
    shutil.copytree(built_site() / "data/findings", again.findings, dirs_exist_ok=True)
    again.write_front_page()
    first = {path.relative_to(site): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    second = {path.relative_to(again.folder): path.read_bytes() for path in again.folder.rglob("*") if path.is_file()}
    assert set(first) == set(second)
    assert [str(path) for path in first if first[path] != second[path]] == []


def test_a_page_is_made_again_only_when_what_it_is_made_from_has_changed(tmp_path, monkeypatch):
    measuring = ("parameters", PARAMETERS + '\ncampaign = "example"  # of its runs')
    top = make_checkout(tmp_path / "top", {"00-example": [CELLS[0], measuring, *CELLS[2:]]})
    executed = shutil.copy(built_site() / "build/notebooks/00-example.ipynb", tmp_path / "executed.ipynb")
    runs = []
    monkeypatch.setattr("wanbench.publish.site.browser", lambda: None)
    monkeypatch.setattr("wanbench.publish.site.execute", lambda *_: runs.append(1) or stored(executed))

    def made(again=False, **given):
        before = len(runs)
        job = Job(top / "notebooks/00-example.ipynb", given)
        (record,) = publish([job], Site.of(top), io.StringIO(), again=again)
        assert record.outcome == "published"
        return len(runs) - before

    assert [made(), made(), made(again=True), made()] == [1, 0, 1, 0]
    assert [made(n_points=3), made(n_points=3), made()] == [1, 0, 1]
    (top / "data/raw/other/run").mkdir(parents=True)
    (top / "data/raw/other/run/journal.jsonl").write_text("{}")
    assert made() == 0, "a run of another campaign"
    changes = [top / "data/raw/example-rtt/run/journal.jsonl", top / "data/findings/00-example/slope.txt"]
    changes.append(top / "notebooks/00-example.ipynb")
    for path in changes:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text((path.read_text() if path.exists() else "{}") + "\n")
        assert [made(), made()] == [1, 0], path
    (top / "site/00-example.html").unlink()
    assert [made(), made()] == [1, 0]


def test_a_page_is_made_from_committed_tables_and_from_the_packages_that_notebooks_import(tmp_path, monkeypatch):
    (tmp_path / "papermill-params").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("wanbench.publish.site.LIBRARY", tmp_path)
    for name in ("data/robustness/fuzz.csv", "data/validity/rtt.csv", "torture/table.py", "simulations/rtt.py"):
        before = [*_data()], library_hash_now(strict=False)
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("changed")
        assert before != ([*_data()], library_hash_now(strict=False)), name


# The front page


def test_front_page_lists_findings_and_pages(site):
    html = (site / "index.html").read_text()
    assert "RTT rises by &lt;10&gt; ms per 1,000 km." in html and "9.80 to 10.70" in html
    assert html.index("00-example.html") < html.index("01-failing") < html.index("02-later")
    assert "Every pair of <em>regions</em> was looked at" in html
    assert "Not made yet: <code>.venv/bin/wanbench report 02-later</code>" in html


def test_front_page_lists_the_claims_that_a_re_run_contradicts(tmp_path):
    claims = [Claim(name, "", f"{name} is so", "2", "ms", "05-page", "re-run", "") for name in "abc"]
    audit = Audit("005-compression-levels", {claim.claim: claim for claim in claims})
    audit.rerun("a", "reproduced", "Holds. It is 2 ms.")
    audit.rerun("b", "not reproduced", "Holds below 3 ms. It is 9 ms.")
    site = Site.of(tmp_path)
    for name, kind, days in (("05-page", "study", ["2026-11-02", "2026-11-04"]), ("11-claims", "ledger", [])):
        for file in (
            tmp_path / "notebooks" / f"{name}.ipynb",
            site.folder / f"{name}.html",
            site.folder / "figures" / name,
        ):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("<main></main>")
        site._write(Record(name, "published", kind, "A question?", where="on links" if days else "", days=days))
    (site.findings / "05-page").mkdir(parents=True)
    audit.save(site.findings / "05-page")
    front = site.write_front_page().read_text()
    assert "Measured on links, from 2026-11-02 to 2026-11-04." in front
    title = "(“KIP-390: Support Compression Level”)"
    assert f'<li><a href="05-page.html">b is so: 2 ms</a> {title}. Holds below 3 ms. It is 9 ms.</li>' in front
    assert "a is so" not in front and "c is so" not in front


def test_front_page_without_pages_says_that_there_is_no_finding(tmp_path):
    (tmp_path / "papermill-params").mkdir()
    (tmp_path / "notebooks").mkdir()
    html = Site.of(tmp_path).write_front_page().read_text()
    assert "All findings of the studies (0)" in html and "There are no findings yet." in html and "<table" not in html


def test_failed_page_is_not_published_and_the_front_page_says_so(site):
    html = (site / "index.html").read_text()
    assert not (site / "01-failing.html").exists()
    assert "01-failing.ipynb: cell 5 of 6, under &#39;Where it fails&#39;: ValueError: no &lt;data&gt; for 1" in html
    assert "Found on a page that failed" not in html
    assert (built_site() / "build/notebooks/01-failing.ipynb").is_file()


def test_a_page_that_fails_keeps_its_predecessor_and_findings_and_says_that_it_is_older(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.publish.site.browser", lambda: None)
    top = make_checkout(tmp_path / "top", {"00-page": CELLS})
    site, job = Site.of(top), Job(top / "notebooks/00-page.ipynb")
    publish([job], site, io.StringIO())
    good = (site.folder / "00-page.html").read_bytes()
    finding = Finding("slope", "It was so.", 1, None, None, "", 2, None, "m", "a", answer=True)
    finding.save(site.findings / "00-page")
    shutil.copy(make_checkout(tmp_path / "other", {"a": FAILING}) / "notebooks/a.ipynb", job.notebook)
    [record] = publish([job], site, io.StringIO())
    assert record.outcome == "failed" and "no <data> for 1" in record.reason
    assert (site.folder / "00-page.html").read_bytes() == good
    front = (site.folder / "index.html").read_text()
    assert "This page is older: the last attempt to make it failed." in front and "It was so." in front


def test_a_page_that_is_made_again_names_the_findings_that_no_longer_stand(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.publish.site.browser", lambda: None)
    save = "from wanbench.findings import Finding, Page\n"
    save += "Page('00-page').add(Finding('gain', 'Twice.', 2, None, None, '', 2, None, 'm', 'a'))"
    top = make_checkout(tmp_path / "top", {"00-page": [CELLS[0], ("code", save)]})
    site, stream = Site.of(top), io.StringIO()
    for name, sentence in (("gain", "Thrice."), ("loss", "None.")):
        Finding(name, sentence, 1, None, None, "", 2, None, "m", "a").save(site.findings / "00-page")
    publish([Job(top / "notebooks/00-page.ipynb")], site, stream)
    assert "00-page: finding gain changed from: Thrice. To: Twice." in stream.getvalue()
    assert "00-page: finding loss is gone; it was: None." in stream.getvalue()


def test_a_replay_that_fails_says_why_nothing_was_measured(tmp_path):
    top = make_checkout(tmp_path / "top", {"00-a": FAILING})
    job = Job(top / "notebooks/00-a.ipynb", replay_reason="programs are missing: iperf3.")
    [record] = publish([job], Site.of(top), io.StringIO())
    assert record.reason.endswith("no <data> for 1 Nothing was measured. programs are missing: iperf3.")


def test_record_that_is_damaged_is_refused(tmp_path):
    site = Site.of(make_checkout(tmp_path / "top", {"01-failing": FAILING}))
    replace_file(site.build / "pages/01-failing.json", b"{")
    with pytest.raises(RawDataError, match=r"01-failing\.json: expected the record of a page"):
        site.record("01-failing")


def test_a_record_of_another_version_counts_as_no_page(tmp_path):
    site = Site.of(make_checkout(tmp_path / "top", {"01-failing": FAILING}))
    replace_file(site.build / "pages/01-failing.json", b'{"name": "01-failing", "earlier": 1}')
    assert site.record("01-failing").outcome == "not made"


# Static files


def test_without_a_browser_the_page_says_so(tmp_path, monkeypatch):
    top = make_checkout(tmp_path / "top", {"00-example": CELLS})
    for module in ("site", "page"):
        monkeypatch.setattr(f"wanbench.publish.{module}.browser", lambda: None)
    executed = shutil.copy(built_site() / "build/notebooks/00-example.ipynb", tmp_path / "executed.ipynb")
    monkeypatch.setattr("wanbench.publish.site.execute", lambda *_: stored(executed))
    (record,) = publish([jobs(top)[1]], Site.of(top), io.StringIO())
    html = (top / "site/00-example.html").read_text()
    assert record.outcome == "published" and record.thumbnail == ""
    assert "have no SVG and PNG files, because the machine that made the page has no Chromium" in html
    assert {path.suffix for path in (top / "site/figures/00-example").iterdir()} == {".csv", ".json"}
    assert "For a blog" not in html


def stored(path):
    from wanbench.publish.execute import Executed

    return Executed("00-example", read_notebook(path), ())


def test_a_browser_that_does_not_start_is_said_on_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.publish.pictures.browser", lambda: "/bin/false")
    monkeypatch.setattr("wanbench.publish.pictures.START_S", 5)
    figure = read_figure({"data": [], "layout": {}}, 1, set())
    with Renderer(tmp_path / "kept") as renderer, pytest.raises(StaticFilesError, match="figure figure-1"):
        renderer.write(figure, tmp_path, "page", Source("Simulated"))


def test_a_figure_is_drawn_again_only_when_it_has_changed(tmp_path, monkeypatch):
    monkeypatch.setattr("wanbench.publish.pictures.browser", lambda: sys.executable)
    drawn = []
    drawings = {"svg": b"<svg>drawing</svg>", "png": bytes(33)}
    monkeypatch.setattr(Renderer, "draw", lambda _, figure, *size: drawn.append(figure.title) or drawings)
    kept, folder = tmp_path / "kept", tmp_path / "figures"
    folder.mkdir()

    def write(title, line="Simulated", software="wanbench"):
        drawn.clear()
        figure = read_figure({"data": [], "layout": {"title": {"text": title}, "meta": {"name": "rtt"}}}, 1, set())
        paths = Renderer(kept).write(figure, folder, "page", Source(line, software=software))
        assert all(software.encode() in path.read_bytes() for path in paths)
        return len(drawn)

    assert [write("one"), write("one"), write("two"), write("two")] == [2, 0, 2, 0]
    assert [write("two", "Emulated links"), write("two", "Emulated links", "of another commit")] == [2, 0]
    next(kept.glob("page/rtt/*.svg")).unlink()
    assert write("two", "Emulated links") == 2
    monkeypatch.setattr("wanbench.publish.pictures.browser", lambda: str(tmp_path))
    assert write("two", "Emulated links") == 2


class TestStaticFiles:
    pytestmark = pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")

    def test_files_have_the_blog_sizes(self, tmp_path):
        layout = {"title": {"text": "Latency against distance"}, "meta": {"name": "rtt"}}
        with Renderer(tmp_path / "kept") as renderer:
            figure = read_figure({"data": [], "layout": layout}, 1, set())
            renderer.write(figure, tmp_path, "page", Source("Emulated links, wanbench, run 1, 2026-11-22"))
        png = (tmp_path / "rtt-1200x675.png").read_bytes()
        assert png[:8] == b"\x89PNG\r\n\x1a\n"
        assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == (1200, 675)
        for width, height in ((1200, 675), (800, 450)):
            svg = (tmp_path / f"rtt-{width}x{height}.svg").read_text()
            assert f'width="{width}" height="{height}"' in svg and "Latency against distance" in svg
            assert ">Emulated links, wanbench, run 1, 2026-11-22</text>" in svg
        assert len(list(tmp_path.glob("rtt-*"))) == 3

    def test_a_page_lists_the_files_of_its_figures(self, site):
        names = {path.name for path in (site / "figures/00-example").iterdir()}
        drawn = {
            f"{figure}-800x450.{ending}" for figure in ("rtt-by-distance", "figure-2") for ending in ("svg", "png")
        }
        assert names == {"rtt-by-distance.csv", "rtt-by-distance.json", *drawn}

    def test_first_figure_is_the_thumbnail(self, site):
        assert 'src="figures/00-example/rtt-by-distance-800x450.svg"' in (site / "index.html").read_text()

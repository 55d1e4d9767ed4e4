"""Pictures of figures: their source, their metadata, their headings, and `wanbench figure`."""

import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from example_site import built_site
from test_figures import MAKERS

from wanbench import cli
from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.publish.cells import Parts
from wanbench.publish.figures import canvas, fitted, read_figure, stamped
from wanbench.publish.page import _cover as cover_of
from wanbench.publish.pictures import EXPORT_PX, Renderer, browser, export, find_figure, snippet
from wanbench.publish.provenance import LICENCE, Source, source_of

playwright = pytest.importorskip("playwright.sync_api")
ORIGIN = {"wanbench_version": "9.9", "git_commit": "abc", "git_dirty": False}
SOURCE = Source("Emulated links, wanbench, run 1 & 2, 2026-11-22", "2026-11-22", "wanbench 9.9, commit abc")
CUT = """() => {
  const edge = document.querySelector("svg").getBoundingClientRect();
  return [...document.querySelectorAll("svg text")].filter((one) => one.textContent.trim()).filter((one) => {
    const box = one.getBoundingClientRect();
    return box.left < -1 || box.top < -1 || box.right > edge.right + 1 || box.bottom > edge.bottom + 1;
  }).map((one) => one.textContent);
}"""


def figure(title="Latency & distance", **more):
    layout = {"title": {"text": theme.plain(title), "subtitle": {"text": "A line."}}, "margin": {"t": 79}}
    meta = {"name": "rtt", "alt": 'It "rises" <so>.', "caption": "Made up.", "csv": "km,ms,of\n1,2.5,a\n"}
    return read_figure({"data": [], "layout": layout | {"meta": meta} | more}, 1, set())


def test_a_tall_figure_is_a_cover_only_if_the_notebook_chooses_it():
    tall, low = replace(figure(height=1_400), name="tall"), figure(height=400)
    drawn = {tall.name, low.name}
    assert cover_of(Parts([], figures=[tall, low]), drawn) == low.name
    assert cover_of(Parts([], figures=[tall]), drawn) == ""
    assert cover_of(Parts([], figures=[tall, low], cover=tall), drawn) == "tall"


def notebook(code="", tag="cover"):
    cells = [nbformat.v4.new_markdown_cell("# Title", metadata={"tags": [tag]}), nbformat.v4.new_code_cell(code)]
    return nbformat.v4.new_notebook(cells=cells)


def run(number=1, lab="local by relay", day="2026-11-22"):
    return {"run_id": f"2026T{number}", "lab": lab, "started_at_utc": f"{day}T09:00:00+00:00"}


@pytest.mark.parametrize(
    ("runs", "made", "line", "date"),
    [
        ([run()], notebook(), "Emulated links, wanbench, run 2026T1, 2026-11-22", "2026-11-22"),
        (
            [run(2, day="2026-11-24"), run(1), run(3, day="2026-11-23")],
            notebook('read_published("skyplane-2022-01")'),
            "Emulated links, wanbench, 3 runs, 2026T1 to 2026T3, 2026-11-22 to 2026-11-24",
            "2026-11-22 to 2026-11-24",
        ),
        ([run(lab="aws, 1.20 USD")], notebook(), "Hosts: aws, wanbench, run 2026T1, 2026-11-22", "2026-11-22"),
        (
            [],
            notebook('a = read_published("b-2022-02")\nb = read_published("a-2021-12")'),
            "Published data of 2021 and 2022 (a-2021-12, b-2022-02), wanbench, page 03",
            "2022-02",
        ),
        ([], notebook(tag="check"), "Simulations and tests, wanbench, page 03", ""),
        ([], notebook(tag="ledger"), "Published claims, checked, wanbench, page 03", ""),
        ([], notebook(), "Not measured, wanbench, page 03", ""),
    ],
)
def test_the_source_of_a_page_is_its_runs_or_else_what_it_reads(runs, made, line, date):
    source = source_of("03", made, runs, ORIGIN)
    assert (source.line, source.date) == (line, date)
    assert source.software == "wanbench 9.9, commit abc"


def test_the_licence_is_that_of_the_repository():
    text = (Path(__file__).parents[2] / "LICENSE").read_text()
    assert LICENCE == "Apache-2.0" and "Apache License" in text and "Version 2.0" in text


def test_an_svg_says_what_it_shows():
    svg = stamped(b'<svg xmlns="http://www.w3.org/2000/svg" width="8"><g/></svg>', "svg", figure(), SOURCE)
    root = ET.fromstring(svg)
    names = {"svg": "http://www.w3.org/2000/svg", "dc": "http://purl.org/dc/elements/1.1/"}
    assert root.attrib == {"width": "8", "role": "img"}
    assert root.find("svg:title", names).text == "Latency & distance"
    assert root.find("svg:desc", names).text == 'It "rises" <so>.'
    facts = {name: root.find(f".//dc:{name}", names).text for name in ("source", "date", "rights", "creator")}
    assert facts == {"source": SOURCE.line, "date": SOURCE.date, "rights": LICENCE, "creator": SOURCE.software}


def text_chunks(png):
    found, at = {}, 8
    while at < len(png):
        length, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        if kind == b"iTXt":
            name, _, rest = png[at + 8 : at + 8 + length].partition(b"\0")
            found[name.decode()] = rest[4:].decode()
        at += length + 12
    return found


def test_a_sidecar_describes_the_csv_file_which_stays_plain():
    content = json.loads(figure().sidecar(SOURCE))
    assert content["url"] == "rtt.csv" and content["dc:source"] == SOURCE.line
    kinds = {one["titles"]: one["datatype"] for one in content["tableSchema"]["columns"]}
    assert kinds == {"km": "integer", "ms": "number", "of": "string"}
    assert list(pd.read_csv(io.StringIO(figure().csv)).columns) == ["km", "ms", "of"]


def test_long_headings_are_wrapped_escaped_and_given_room():
    short, long = fitted(figure("Short"), 900), fitted(figure("Longer <than> a line " * 6), 900)
    assert short["title"]["text"] == "Short" and short["margin"]["t"] == 79
    lines = long["title"]["text"].split("<br>")
    assert len(lines) == 2 and "&lt;than&gt;" in lines[0]
    assert long["margin"]["t"] > short["margin"]["t"] + 30
    assert fitted(replace(figure(), title="", layout={"width": 3}), 900) == {}


@pytest.mark.parametrize("size", EXPORT_PX.values())
def test_a_drawing_is_as_high_and_wide_as_its_labels_need(size):
    for height in (300, 520, 1200):
        across, high, scale = canvas(figure(height=height), size, SOURCE.line)
        assert high >= height - 1 and across >= 899 and scale <= 1.5
        assert across * scale == pytest.approx(size[0], abs=1)
        assert high * scale < size[1] - 12


def test_a_figure_that_cannot_be_found_is_answered_with_what_there_is():
    top = built_site()
    for path, message in (
        ("00", "figure is '00'; allowed: PAGE/NAME"),
        ("00/rtt-by-distanc", r"no figure 'rtt-by-distanc' \(did you mean 'rtt-by-distance'\?\); allowed: rtt-by-"),
        ("02/rtt", "page 02-later is not made yet; make it first: wanbench report 02-later"),
        ("99/rtt", "no notebook matches '99'"),
    ):
        with pytest.raises(ParameterError, match=message):
            find_figure(path, top)


def test_a_title_and_dark_colours_of_ones_own():
    found, source = find_figure("00/figure-2", built_site(), "Mine & <yours>", dark=True)
    assert found.title == "Mine & <yours>" and found.layout["title"]["text"] == "Mine &amp; &lt;yours&gt;"
    assert found.layout["template"]["layout"]["paper_bgcolor"] == "rgb(20, 24, 29)"
    assert source.line.endswith("page 00-example")


def test_a_snippet_says_its_source_in_the_picture_and_below(tmp_path):
    found, source = find_figure("00/rtt-by-distance", built_site())
    paths = export(found, source, "blog", "html", tmp_path / "rtt.html")
    assert [path.name for path in paths] == ["rtt.html", "plotly.min.js"]
    html = snippet(found, source, EXPORT_PX["blog"])
    assert paths[0].read_text() == html and html.count(source.line) == 2
    assert '<script src="plotly.min.js">' in html and html.count("</script>") == 2 and "<script>alert" not in html


@pytest.mark.browser
@pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
class TestDrawn:
    def test_every_size_and_format_has_no_text_cut_and_its_source(self, tmp_path):
        made = [MAKERS[name]().to_plotly_json() for name in ("requested-against-delivered", "path-inflation")]
        figures = [read_figure(json.loads(json.dumps(one, default=list)), n, set()) for n, one in enumerate(made)]
        long = "A title of one's own that is too long for a line, and says so at length, twice over if need be"
        found, _ = find_figure("00/rtt-by-distance", built_site(), long, dark=True)
        with Renderer() as renderer, playwright.sync_playwright() as play:
            tab = play.chromium.launch(executable_path=browser(), args=["--no-sandbox"]).new_page(
                viewport={"width": 2000, "height": 1200}
            )
            for size in EXPORT_PX.values():
                for one in (*figures, found):
                    drawn = renderer.draw(one, size, ("svg", "png"), SOURCE.line)
                    tab.set_content(f'<body style="margin: 0">{drawn["svg"].decode()}</body>')
                    assert tab.evaluate(CUT) == [], (one.name, size)
                    assert tab.locator("g.source").text_content() == SOURCE.line
                    png = stamped(drawn["png"], "png", one, SOURCE)
                    assert (int.from_bytes(png[16:20]), int.from_bytes(png[20:24])) == size
                    assert text_chunks(png)["Source"] == SOURCE.line and text_chunks(png)["Title"] == one.title

    def test_the_command_writes_a_pdf_of_one_page_in_the_size_asked_for(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(built_site())
        path = tmp_path / "new" / "rtt.pdf"
        asked = ["--format", "pdf", "--size", "square", "-o", str(path)]
        assert cli.main(["figure", "00/rtt-by-distance", *asked]) == 0
        assert capsys.readouterr().out == f"Wrote {path}\n"
        pdf = path.read_bytes()
        assert pdf.startswith(b"%PDF") and re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf) == [
            (b"810", b"810")
        ]

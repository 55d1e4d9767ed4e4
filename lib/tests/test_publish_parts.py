"""What a notebook left, as the parts of a page: what is shown, escaped, named, refused."""

import nbformat
import pytest
from example_site import notebook

from wanbench.files import replaced_folder
from wanbench.publish.cells import FormulaError, TextRenderer, clean, mathml, read_cells
from wanbench.publish.figures import SHOWN_ROWS, read_figure
from wanbench.publish.pictures import browser, normalised_svg

with_browser = [pytest.mark.browser, pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")]


def outputs(*contents, **streams):
    """A notebook whose only code cell has left these outputs."""
    made = notebook([("code", "x")])
    made.cells[0].outputs = [nbformat.v4.new_output("display_data", data=data) for data in contents]
    made.cells[0].outputs += [nbformat.v4.new_output("stream", name=name, text=text) for name, text in streams.items()]
    return made


def plotly_output(**meta):
    return {
        "application/vnd.plotly.v1+json": {"data": [], "layout": {"title": {"text": "A <b>title</b>"}, "meta": meta}}
    }


# Parts of pages


@pytest.mark.parametrize(
    ("dirty", "cleaned"),
    [
        (
            "<style>td {color: red}</style><table><tr><td>1</td></tr></table>",
            '<table><tbody><tr><td class="number">1</td></tr></tbody></table>',
        ),
        ("<img src=x onerror=alert(1)>", "&lt;img src=x onerror=alert(1)&gt;"),
        ('<a href="javascript:alert(1)">x</a>', "<a>x</a>"),
        ('<p onclick="alert(1)" class="c">x</p>', '<p class="c">x</p>'),
        ("<iframe src='http://x'></iframe>", "&lt;iframe src='http://x'&gt;&lt;/iframe&gt;"),
        ('<p style="text-align: left; background: url(http://x)">x</p>', '<p style="text-align: left;">x</p>'),
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


def test_a_caption_does_not_repeat_what_is_stated_above_it():
    said = {"text/html": "<p>RTT grows by 2 ms (n = 3). It &lt; 5.</p><p>Caution: few pairs.</p>"}
    folded = {"text/html": "<p>Only in a fold.</p><table>" + "<tr><td>1</td></tr>" * 20 + "</table>"}
    caption = "RTT grows by 2 ms (n = 3). It < 5. Caution: few pairs. Bars: by place. Only in a fold."
    page = read_cells(outputs(plotly_output(caption=caption), said, folded, plotly_output(caption=caption)))
    first, *_, last = page.parts[1:]
    assert first.caption == caption and last.caption == "Bars: by place. Only in a fold."
    assert last.figure.caption == caption


def test_long_tables_are_cut_with_their_length_known():
    csv = "n\n" + "".join(f"{number}\n" for number in range(1000))
    figure = read_figure({"data": [], "layout": {"meta": {"csv": csv}}}, 1, set())
    header, rows, count = figure.rows()
    assert (header, len(rows), count) == (["n"], SHOWN_ROWS, 1000)


@pytest.mark.parametrize(
    ("source", "message"), [(r"\frac{", "not a formula"), (r"x + \nosuch<y", r"the command \\nosuch is not known")]
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
        normalised_svg(b'<g id="defs-7f22fe"/><g id="clip7f22fexy"/>') == b'<g id="defs-000000"/><g id="clip000000xy"/>'
    )
    assert normalised_svg(b"<svg/>") == b"<svg/>"


def test_a_mark_of_many_points_is_in_an_svg_once():
    points = "".join(
        f'<path class="point" transform="translate({n}.12345,7)" d="M3,0Z" style="fill: rgb(0, 0, 255);"/>'
        for n in range(20)
    )
    svg = normalised_svg(f"<svg><g>{points}</g></svg>".encode()).decode()
    assert svg.startswith('<svg><defs><path id="mark0" d="M3,0Z" style="fill:#0000ff;"/></defs><g>')
    assert svg.count("M3,0Z") == 1 and svg.count('<use xlink:href="#mark0"') == 20
    assert 'transform="translate(19.12,7)"' in svg

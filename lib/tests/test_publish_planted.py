"""Scripts planted in every text that a recording, a notebook or a finding brings: pages show them as text."""

import json
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import plotly.graph_objects as go
import pytest
from example_site import make_checkout, notebook
from nbformat import v4
from run_folders import PLAN, TEST, claimed, finish, lines, rewrite, start

from wanbench.figures import theme
from wanbench.findings import Finding, Page
from wanbench.methods.claims import ledger
from wanbench.methods.comparison import verdicts
from wanbench.methods.result.estimate import Estimate
from wanbench.publish import batch_page, comparison
from wanbench.publish.batch import BatchJob, State
from wanbench.publish.execute import Executed
from wanbench.publish.jobs import Job
from wanbench.publish.page import make_page, write_claims_page
from wanbench.publish.provenance import provenance
from wanbench.publish.site import Site
from wanbench.read.importers.originals import Citations
from wanbench.read.ingest import tabulate
from wanbench.read.ingest.account import account, failures
from wanbench.runs import Run

PLANTS = (
    "<script>wanbench_planted()</script>",
    '"><img src=x onerror=wanbench_planted()>',
    "'><svg/onload=wanbench_planted()>",
    '<a href="javascript:wanbench_planted()">x</a>',
    "[x](javascript:wanbench_planted())",
    "</style></title></textarea><iframe srcdoc=wanbench_planted()>",
    "-->{{7*7}}planted",
)
ALLOWED_SCRIPTS = {"assets/plotly.min.js", "assets/page.js", "assets/search.js", "plotly.min.js"}
LINKS = ("href", "src", "action", "formaction", "srcdoc", "data", "xlink:href", "poster", "background", "content")
NO_TEXT_INSIDE = {"script", "style"}


planted = set()
NOT_SHOWN = {"parameter", "plan-note", "quantity"}  # on no page


def plant(field: str) -> str:
    """The text that stands in this field: its name, so that a page proves to show it, and all plants."""
    planted.add(field)
    return f"({field}) {' '.join(PLANTS)}"


class Found(HTMLParser):
    """What would run in a page, and the text that it shows."""

    def __init__(self, html: str):
        super().__init__()
        self.wrong, self.text, self.inside = [], "", ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        """Note what would run, and the texts of attributes that screen readers speak."""
        attributes = {name: value or "" for name, value in attrs}
        self.inside = tag if tag in NO_TEXT_INSIDE else ""
        self.kind = attributes.get("type")
        if tag in ("iframe", "object", "embed", "base", "form") and attributes.get("class") != "search":
            self.wrong.append(tag)
        if tag == "script" and "src" in attributes and attributes["src"] not in ALLOWED_SCRIPTS:
            self.wrong.append(f"script {attributes['src']}")
        for name, value in attributes.items():
            if name.startswith("on") or (name in LINKS and value.strip().lower().startswith("javascript:")):
                self.wrong.append(f"{tag} {name}={value}")
            if name in ("aria-label", "alt", "content", "title"):
                self.text += f" {value}"

    def handle_endtag(self, tag):
        self.inside = "" if tag in NO_TEXT_INSIDE else self.inside

    def handle_data(self, data):
        if self.inside == "script" and self.kind != "application/json":
            # The only script inside a page draws a figure, from JSON in which no element can begin.
            if data.strip() and (not data.startswith("Plotly.newPlot(") or "<" in data):
                self.wrong.append(data)
        elif (self.inside == "style" and "planted" in data) or (self.inside == "script" and "<" in data):
            self.wrong.append(data)
        else:
            self.text += data


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    """A run whose journal and raw files hold plants wherever text may stand."""
    ends = (plant("from-region"), plant("to-region"))
    test = TEST | {"from_region": ends[0], "to_region": ends[1]}
    plan = PLAN | {"tests": [test, test | {"id": "0002-a-b"}], "note": plant("plan-note")}
    with claimed(tmp_path_factory.mktemp("run"), plan=plan, parameters={"notes": plant("parameter")}) as writer:
        writer.start({"kind": plant("lab"), "emulator": plant("emulator"), "tools": {"iperf3": plant("tool-version")}})
        writer.record({"event": "round-started", "round": 1}, start(ends=ends))
        writer.record(finish(writer, text=plant("raw-file").encode()))
        writer.record(start("0002-a-b", ends=ends))
        failed = {"event": "test-failed", "test_id": "0002-a-b", "attempt": 1, "files": []}
        writer.record(failed | {"experiment": plant("experiment"), "reason": plant("error-message")})
        run = writer.finish()
    first, *rest = lines(run)
    about = json.loads(first) | {"campaign": plant("campaign"), "run_id": plant("run-id")}
    about["origin"] = about["origin"] | {"git_commit": plant("commit")}
    rewrite(run, [json.dumps(about), *rest])
    return Run.open(run.folder)


def figure():
    drawn = go.Figure(go.Scatter(x=[1, 2], y=[1, 2], name=plant("series"), text=[plant("point")] * 2))
    table = pd.DataFrame({plant("csv-column"): [plant("csv-cell")]})
    about = {name: plant(f"figure-{name}") for name in ("title", "subtitle", "alt", "caption")}
    return theme.finish(drawn, name="planted", **about, table=table)


FINDING = Finding(
    "planted", plant("sentence"), 1.0, 0.5, 1.5, plant("unit"), 9, 3, plant("method"), plant("assumption"),
    headline=plant("headline"), counted=plant("counted"), cautions=(plant("caution"),), answer=True,
)  # fmt: skip
JAVASCRIPT = "javascript:wanbench_planted()//"
ARTICLE = ledger.Article(*(plant(f"article-{name}") for name in ("title", "by", "publisher", "date")), JAVASCRIPT)


def audit():
    claim = ledger.Claim(
        "one", plant("claim-section"), plant("claim-says"), "1", plant("claim-unit"), JAVASCRIPT, "re-run"
    )
    made = ledger.Audit("source", {"one": replace(claim, why=plant("claim-why"))}, article=ARTICLE)
    made.rerun("one", ledger.NOT_REPRODUCED, plant("working"))
    return made


def outputs(recording, folder):
    """What the cells of a notebook show: everything in wanbench that shows itself in HTML, and plain text."""
    tables = tabulate(recording, folder / "tables")
    findings = Page("planted", folder / "findings/planted")
    findings.answer(FINDING)
    estimate = Estimate(plant("quantity"), plant("estimate") + " {}", 1, 0, 2, "ms", 4, plant("estimate-method"), "a")
    shown = [recording, account(tables), failures(tables), findings, estimate, audit(), Citations((plant("citation"),))]
    shown += [frame for frame in tables.values() if len(frame)]
    made = [{"text/html": one._repr_html_()} for one in shown]
    made += [{kind: plant(kind.replace("/", "-"))} for kind in ("text/plain", "text/markdown", "text/html")]
    made += [{"application/vnd.plotly.v1+json": json.loads(figure().to_json())}]
    made = [v4.new_output("display_data", data=data) for data in made]
    made.append(v4.new_output("stream", name="stdout", text=plant("printed")))
    made.append(v4.new_output("error", ename="E", evalue="", traceback=[plant("traceback")]))
    return made, v4.new_output("display_data", data=provenance(recording)._repr_mimebundle_())


@pytest.fixture(scope="module")
def monkeypatched():
    with pytest.MonkeyPatch.context() as patch:
        yield patch


@pytest.fixture(scope="module")
def pages(recording, tmp_path_factory, monkeypatched):
    """Every kind of page that wanbench writes, about the recording."""
    folder = tmp_path_factory.mktemp("planted")
    cells = [
        ("text", f"# {plant('title')}"),
        ("text", plant("lead")),
        ("code", f"print({plant('code')!r})"),
        ("code", "p"),
    ]
    made = notebook([*cells, ("text", f"## {plant('heading')}\n\n$\\text{{{plant('formula')}}}$")])
    made.cells[2].outputs, provenance_output = outputs(recording, folder)
    made.cells[3].outputs = [provenance_output]
    top = make_checkout(folder / "checkout", dict.fromkeys(("planted", "second", "failed"), cells))
    site = Site(top, folder / "site", folder / "build", folder / "findings")
    parameters = ((plant("parameter-name"), [plant("parameter-value")], plant("comment")),)
    about = {"replay_reason": plant("replay"), "remark": plant("remark")}
    first, second = (Job(folder / f"{name}.ipynb", **more) for name, more in (("planted", about), ("second", {})))
    monkeypatched.setattr("wanbench.publish.page.articles_on", lambda name: [ARTICLE])
    page = make_page(Executed("planted", made, parameters), site.folder, None, first, (FINDING,))
    site.record_published(page)
    made.cells[1:] = [v4.new_markdown_cell(plant("second-lead"))]
    site.record_published(make_page(Executed("second", made, ()), site.folder, None, second))
    audit().save(folder / "findings/planted")
    site.record_failed("failed", plant("failure"))
    site.write_front_page()
    write_claims_page(audit(), folder / "alone/claims.html")
    write_comparison(folder / "alone/comparison.html")
    job = BatchJob(
        Job(top / "notebooks/failed.ipynb"), folder / "batch", top, varied={"v": plant("varied")}, name="x'><b"
    )
    batch_page.write_batch_page([job], {job.name: State("failed", plant("job-reason"))})
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.html")}


def write_comparison(path):
    values = dict.fromkeys(verdicts.COLUMNS, 1.0) | {name: plant(f"compared-{name}") for name in ("quantity", "key")}
    values |= {"unit": "ms", "verdict": verdicts.CHANGED, "basis": plant("basis"), "reason": plant("undecided")}
    differs = pd.DataFrame([{name: plant(f"differs-{name}") for name in ("what", "a", "b")}])
    sides = (plant("side-a"), plant("side-b"))
    left = pd.DataFrame(columns=["quantity", "key", "side"])
    comparison.write_page(verdicts.Changes(pd.DataFrame([values]), *sides, 0.1, differs, left, (plant("note"),)), path)


def test_nothing_planted_would_run(pages):
    assert len(pages) == 6
    for name, html in pages.items():
        found = Found(html)
        assert not found.wrong, name
        assert "49planted" not in html, name


def test_every_planted_text_is_shown(pages):
    text = " ".join(Found(html).text for html in pages.values())
    assert {field for field in planted if f"({field})" not in text} == NOT_SHOWN

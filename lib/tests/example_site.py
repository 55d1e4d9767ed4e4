"""A small checkout whose notebooks hold what pages must be able to show; the tests of publishing use it."""

import atexit
import functools
import io
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import nbformat

from wanbench.findings import Finding
from wanbench.publish.jobs import Job
from wanbench.publish.site import Site, publish
from wanbench.runs import origin

PARAMETERS = """\
n_points = 12  # points on the line
slope_ms_per_km = 0.01  # of the line
lab = "local"  # where to measure
clouds: list[str] = ["aws", "gcp"]  # shown in the legend"""

TITLE = """\
# How does latency grow with distance?

Every pair of *regions* was looked at, $d$ apart; this is an example. The [index](index.html) has more."""

MODEL = r"""
## The model

Light needs

$$ t = \frac{2 d n}{c} $$

and so $\mathrm{RTT} = a + b\,d$."""

IMPORTS = """\
import sys

import numpy as np
import pandas as pd
import plotly.graph_objects as go"""

TABLE = """\
distance_km = np.linspace(100, 9000, n_points)
rtt_ms = slope_ms_per_km * distance_km
table = pd.DataFrame({"distance_km": distance_km.round(1), "rtt_ms": rtt_ms.round(2)})
print("12 of 12 tests done", file=sys.stderr)
print("points:", len(table))"""

ROWS = """\
### The first rows

| column | unit |
|---|---|
| distance | km |"""

FIGURE = """\
figure = go.Figure()
for number, cloud in enumerate(clouds):
    figure.add_scatter(x=distance_km, y=rtt_ms + number, name=cloud)
figure.update_layout(title="Latency against distance", xaxis_title="Distance (km)")
figure.update_layout(meta={
    "name": "rtt-by-distance",
    "alt": "RTT rises with distance along a straight line for both clouds.",
    "caption": "A made-up line </script><script>alert(1)</script>.",
    "csv": table.to_csv(index=False),
})
figure"""

LEDGER = """\
from IPython.display import HTML

ROW = "<tr><th scope='row'>{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>"
ROWS = [("One paper", "RTT doubles", "reproduced", "measured"), ("Another", "Loss is rare", "undecided", "setting")]
HEAD = "<tr><th></th><th>Article</th><th>The source says</th><th>By the re-run</th><th>Kind</th></tr>"
body = "".join(ROW.format(number, *row) for number, row in enumerate(ROWS))
HTML(f"<table class='estimates ledger'><thead>{HEAD}</thead><tbody>{body}</tbody></table>")"""

BARS = """\
layout = {"title": "Tests <b>per</b> cloud", "height": 380}
go.Figure(go.Bar(x=clouds, y=[3, 4]), layout=layout)"""

CELLS = [
    ("text", TITLE),
    ("parameters", PARAMETERS),
    ("text", MODEL),
    ("code", IMPORTS),
    ("code", TABLE),
    ("text", ROWS),
    ("code", "pd.DataFrame({'<script>alert(2)</script>': [1, 2]})"),
    ("code", LEDGER),
    ("text", "## The figures"),
    ("code", FIGURE),
    ("code", BARS),
    ("code", "from wanbench.publish.provenance import provenance\n\nprovenance()"),
]

FAILING = [
    ("text", "# A page that fails"),
    ("parameters", "n = 1  # a number"),
    ("text", "## Where it fails"),
    ("code", "print('so far')"),
    ("code", "raise ValueError(f'no <data> for {n}')"),
    ("code", "print('not reached')"),
]


def notebook(cells):
    """A notebook without outputs; each cell is (kind, source), kind one of text, code, parameters."""
    made = []
    for number, (kind, source) in enumerate(cells):
        make = nbformat.v4.new_markdown_cell if kind == "text" else nbformat.v4.new_code_cell
        cell = make(source, id=f"cell-{number}")
        if kind == "parameters":
            cell.metadata["tags"] = ["parameters"]
        made.append(cell)
    return nbformat.v4.new_notebook(cells=made)


def make_checkout(folder, notebooks):
    """Write notebooks ({name: cells}) into a new checkout; returns its root."""
    (folder / "notebooks").mkdir(parents=True)
    (folder / "papermill-params").mkdir()
    for name, cells in notebooks.items():
        nbformat.write(notebook(cells), folder / "notebooks" / f"{name}.ipynb")
    return folder


ONE_SIZE = patch("wanbench.publish.pictures.SIZES_PX", {(800, 450): ("svg", "png")})
"""Each figure is drawn in the size that pages show; `test_publish.py` draws one in every size."""
built_from = {}


@functools.cache
def built_site():
    """
    The root of a checkout whose site is built once for all tests: pages 00-example (published) and 01-failing
    (failed), and a notebook 02-later that is not run. `origin()` of that moment stays in `built_from`.
    """
    top = make_checkout(
        Path(tempfile.mkdtemp(prefix="wanbench-example-")),
        {"00-example": CELLS, "01-failing": FAILING, "02-later": CELLS},
    )
    atexit.register(shutil.rmtree, top, ignore_errors=True)
    finding = Finding(
        "slope", "RTT rises by <10> ms per 1,000 km.", 10.2, 9.8, 10.7, "ms per 1,000 km", 66, 12, "m", "a"
    )
    built_from.update(origin())
    with ONE_SIZE:
        publish(jobs(top), Site.of(top), io.StringIO())
    finding.save(top / "data/findings/00-example", "00-example")
    replace(finding, name="other", sentence="Found on a page that failed.").save(top / "data/findings/01-failing")
    Site.of(top).write_front_page()
    return top


def jobs(top):
    """What `built_site` publishes: the failing page first, so that it could spoil the other."""
    return [
        Job(top / "notebooks/01-failing.ipynb"),
        Job(top / "notebooks/00-example.ipynb", {"n_points": 20}, replay_reason="no <rights> here."),
    ]

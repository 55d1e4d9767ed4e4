"""A small checkout with notebooks that show what pages must be able to show; used by the tests of publishing."""

import nbformat

PARAMETERS = '''\
n_points = 12  # points on the line
slope_ms_per_km = 0.01  # of the line
lab = "local"  # where to measure
clouds: list[str] = ["aws", "gcp"]  # shown in the legend'''

FIGURE = '''\
figure = go.Figure()
for number, cloud in enumerate(clouds):
    figure.add_scatter(x=distance_km, y=slope_ms_per_km * distance_km + number, name=cloud, mode="markers+lines")
figure.update_layout(title="Latency against distance", xaxis_title="Distance (km)", yaxis_title="RTT (ms)")
figure.update_layout(meta={
    "name": "rtt-by-distance",
    "alt": "RTT rises with distance along a straight line for both clouds.",
    "caption": "Round-trip time of the pairs; a made-up line, 12 points <each>.",
    "csv": table.to_csv(index=False),
})
figure'''

CELLS = [
    ("text", "# How does latency grow with distance?\n\nEvery pair of *regions* was looked at, $d$ apart; this page is an example. The [index](index.html) has more."),
    ("parameters", PARAMETERS),
    ("text", "## The model\n\nLight needs\n\n$$ t = \\frac{2 d n}{c} $$\n\nand so $\\mathrm{RTT} = a + b\\,d$."),
    ("code", "import sys\n\nimport numpy as np\nimport pandas as pd\nimport plotly.graph_objects as go"),
    ("code", "distance_km = np.linspace(100, 9000, n_points)\ntable = pd.DataFrame({'distance_km': distance_km.round(1), 'rtt_ms': (slope_ms_per_km * distance_km).round(2)})\nprint('12 of 12 tests done', file=sys.stderr)\nprint('points:', len(table))"),
    ("text", "### The first rows\n\n| column | unit |\n|---|---|\n| distance | km |"),
    ("code", "table.head(3)"),
    ("text", "## The figures"),
    ("code", FIGURE),
    ("code", "go.Figure(go.Bar(x=clouds, y=[3, 4]), layout={'title': 'Tests <b>per</b> cloud', 'height': 380})"),
    ("code", "from wanbench.colophon import colophon\n\ncolophon()"),
]  # fmt: skip

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

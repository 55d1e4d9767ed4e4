"""Write the page of a batch: its jobs with their states, and each finding by the parameters that vary."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from pandas.api.types import is_numeric_dtype
from plotly.subplots import make_subplots

from wanbench import findings
from wanbench.figures import theme
from wanbench.figures.primitives import interval_points
from wanbench.files import replace_file
from wanbench.formatting import count

from .execute import INJECTED
from .figures import read_figure
from .page import templates, versions

COLUMNS, PANEL_PX, TITLE_CHARACTERS = 3, 260, 34
PARAMETER = "parameter "


def write_batch_page(jobs: Sequence[Any], states: Mapping[str, Any]) -> None:
    """Write `index.html` (jobs and states) and `results.csv` (findings of all jobs) into the folder of a batch."""
    folder, taken = jobs[0].folder, set()
    results = pd.concat([_results(job, states[job.name]) for job in jobs], ignore_index=True)
    drawn = [_small_multiples(notebook, rows) for notebook, rows in results.groupby("notebook")]
    figures = [read_figure(one.to_plotly_json(), n, taken) for n, one in enumerate(drawn, 1) if one is not None]
    replace_file(folder / "results.csv", theme.numbers(results).encode())
    for figure in figures:
        replace_file(folder / "figures" / "index" / f"{figure.name}.csv", (figure.csv or "").encode())
    shown = {"batch": folder.name, "jobs": [(job, states[job.name]) for job in jobs], "figures": figures}
    version = versions()[0][1]
    page = {"name": "index", "drawn": (), "version": version, "source_line": f"wanbench {version}, batch {folder.name}"}
    replace_file(folder / "index.html", templates().get_template("batch.html").render(shown, page=page).encode())


def tidy(notebook: Path, folder: Path) -> None:
    """
    Make a job's page refer to the batch's assets, and drop times, paths and random ids from its executed notebook, so
    that equal results give equal files.
    """
    os.chmod(folder, 0o755)  # nosec B103  # a published folder is for all to read
    for page in folder.glob("*.html"):
        replace_file(page, page.read_text("utf-8").replace('="assets/', '="../../assets/').encode())
    (folder / "index.html").write_text('<meta http-equiv="refresh" content="0; url=../../index.html">\n')
    if notebook.exists():
        content = json.loads(notebook.read_bytes())
        for part in (content, *content["cells"]):
            if INJECTED in part["metadata"].get("tags", ()):
                part["id"] = INJECTED
            for key in ("papermill", "execution"):
                part["metadata"].pop(key, None)
        replace_file(notebook, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())


def _results(job: Any, state: Any) -> pd.DataFrame:
    """Return a row for each finding of a job, or one row without a finding; parameters other than numbers are text."""
    notebook = job.page.notebook.stem
    varied = {
        f"{PARAMETER}{name}": value if type(value) in (int, float) else str(value) for name, value in job.varied.items()
    }
    is_done = state.state in ("done", "kept")
    about = {"job": job.name, "notebook": notebook} | varied
    about |= {"state": "done" if is_done else state.state, "reason": state.reason}
    found = findings.load(job.site.findings / notebook) if is_done else pd.DataFrame()
    row = pd.DataFrame([about])
    return row.merge(found.drop(columns=["page", "place", "headline", "counted"]), how="cross") if len(found) else row


def _small_multiples(notebook: str, rows: pd.DataFrame) -> go.Figure | None:
    """
    Draw a panel for each finding with a number: its estimates and intervals against the first varied parameter.

    Each combination of the other varied parameters is a series. Return None if no finding has a number.
    """
    rows = rows[rows.estimate.notna()] if "estimate" in rows else rows[:0]
    if rows.empty:
        return None
    axis, *others = [one for one in rows if one.startswith(PARAMETER) and rows[one].notna().any()] or ["job"]
    series = [
        ", ".join(f"{name.removeprefix(PARAMETER)} = {row[name]}" for name in others) for _, row in rows.iterrows()
    ]
    rows = rows.assign(series=series)
    units = rows.groupby("name", sort=False).unit.first()
    across, down = min(COLUMNS, len(units)), -(-len(units) // COLUMNS)
    titles = [theme.shortened(f"{name} ({unit})" if unit else name, TITLE_CHARACTERS) for name, unit in units.items()]
    figure = make_subplots(down, across, subplot_titles=titles, vertical_spacing=0.34 / down, horizontal_spacing=0.08)
    marks = theme.arm_marks(series)
    for (name, of), part in rows.groupby(["series", "name"], sort=False):
        place = units.index.get_loc(of)
        at = {"row": place // COLUMNS + 1, "col": place % COLUMNS + 1}
        text = [theme.plain(f"{job}: {says}") for job, says in zip(part.job, part.sentence, strict=True)]
        is_first = of == rows[rows.series == name].name.iloc[0]
        legend = {"name": name, "legendgroup": name, "showlegend": bool(name) and is_first}
        marker = {"color": marks[name][0], "symbol": marks[name][1], "size": 8}
        ends = (part.estimate, part.low, part.high)
        interval_points(figure, part[axis], *ends, vertical=True, text=text, marker=marker, **legend, **at)
        figure.update_xaxes(title_text=theme.plain(axis.removeprefix(PARAMETER)), **at)
    if not is_numeric_dtype(rows[axis]):
        figure.update_xaxes(type="category")
    figure.update_annotations(font_size=12)
    figure.update_layout(legend=theme.LEGEND_ON_TOP, height=140 + PANEL_PX * down)
    what = f"Findings of {notebook} against {axis.removeprefix(PARAMETER)}"
    about = f"{what}: {count(len(units), 'finding')} of {count(rows.job.nunique(), 'job')}."
    return theme.finish(
        figure,
        name=f"findings-of-{notebook}",
        title=what,
        subtitle="Each point is the estimate of one job, its bar the interval that the job's page gives.",
        alt=about,
        caption=f"{about} What a finding means, and what it assumes, is on the page of its job.",
        table=rows[["job", "name", axis, "series", "estimate", "low", "high", "unit", "n"]],
        headroom_px=theme.PANEL_TITLES_PX,
    )

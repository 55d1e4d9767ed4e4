"""Write the page of a batch: its jobs with their states, and each finding against the parameters that vary."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from numbers import Real

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench import findings
from wanbench.figures import theme
from wanbench.figures.primitives import interval_points
from wanbench.files import replace_file
from wanbench.formatting import count

from .figures import read_figure
from .page import templates, versions

COLUMNS, PANEL_PX = 3, 260
DROPPED = ["page", "place", "headline"]


def write_batch_page(jobs: Sequence, states: Mapping) -> None:
    """Write `index.html`, `jobs.csv` and `findings.csv` into the folder of a batch, whose jobs have these states."""
    folder, tables, figures, taken = jobs[0].folder, [], [], set()
    rows = [
        {"job": job.name, "notebook": job.page.notebook.stem, **_plain(job), "state": states[job.name].state}
        | {"reason": states[job.name].reason}
        for job in jobs
    ]
    for notebook, group in groupby(sorted(jobs, key=_notebook), key=_notebook):
        group = list(group)
        found = [
            (job, findings.load(job.site.findings / notebook))
            for job in group
            if states[job.name].state in ("done", "kept")
        ]
        if found := [(job, table) for job, table in found if len(table)]:
            tables += [
                table.drop(columns=DROPPED).assign(job=job.name, notebook=notebook, **_plain(job))
                for job, table in found
            ]
            figure = _small_multiples(notebook, found)
            if figure is not None:
                figures.append(read_figure(figure.to_plotly_json(), len(figures) + 1, taken))
    files = {"jobs.csv": pd.DataFrame(rows), "findings.csv": pd.concat(tables) if tables else pd.DataFrame({"job": []})}
    for name, table in files.items():
        first = [one for one in table if one in ("job", "notebook") or one.startswith("parameter ")]
        replace_file(
            folder / name, theme.numbers(table[[*first, *table.columns.difference(first, sort=False)]]).encode()
        )
    for figure in figures:
        replace_file(folder / "figures" / "index" / f"{figure.name}.csv", figure.csv.encode())
    shown = {"name": folder.name, "jobs": [(job, states[job.name]) for job in jobs], "figures": figures}
    page = {"name": "index", "drawn": (), "version": versions()[0][1], "n_findings": sum(map(len, tables))}
    html = templates().get_template("batch.html").render(batch=shown, page=page)
    replace_file(folder / "index.html", html.encode())


def _notebook(job) -> str:
    return job.page.notebook.stem


def _plain(job) -> dict:
    """Return the varied parameters of a job as columns of a table; other values than numbers as text."""
    return {f"parameter {name}": value if _is_number(value) else str(value) for name, value in job.varied.items()}


def _is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _small_multiples(notebook: str, found: Sequence) -> go.Figure | None:
    """
    Draw a panel for each finding with a number: its estimates and intervals against the first varied parameter.

    Each combination of the other varied parameters is a series. Return None if no finding has a number.
    """
    rows = pd.concat([table.assign(job=job.name) for job, table in found], ignore_index=True)
    varied = {job.name: dict(job.varied) for job, _ in found}
    axis = next(iter(next(iter(varied.values()))), "job")
    values = {name: given.pop(axis, name) for name, given in varied.items()}
    is_number = all(map(_is_number, values.values()))
    rows["at"] = [values[name] if is_number else str(values[name]) for name in rows.job]
    rows["series"] = [", ".join(f"{key} = {value}" for key, value in varied[name].items()) for name in rows.job]
    rows = rows[rows.estimate.notna()]
    if rows.empty:
        return None
    names = list(dict.fromkeys(rows.name))
    across, down = min(COLUMNS, len(names)), -(-len(names) // COLUMNS)
    units = rows.groupby("name").unit.first()
    titles = [theme.shortened(name + (f" ({units[name]})" if units[name] else ""), 34) for name in names]
    figure = make_subplots(down, across, subplot_titles=titles, vertical_spacing=0.34 / down, horizontal_spacing=0.08)
    marks = theme.arm_marks(rows.series)
    for series, of_series in rows.groupby("series", sort=False):
        colour, symbol = marks[series]
        for place, name in enumerate(names):
            part = of_series[of_series.name == name]
            text = [theme.plain(f"{job}: {says}") for job, says in zip(part.job, part.sentence, strict=True)]
            interval_points(
                figure, part["at"], part.estimate, part.low, part.high, vertical=True, text=text, name=series,
                marker={"color": colour, "symbol": symbol, "size": 8}, legendgroup=series,
                showlegend=bool(series) and place == 0, row=place // COLUMNS + 1, col=place % COLUMNS + 1,
            )  # fmt: skip
    figure.update_annotations(font_size=12)
    figure.update_xaxes(**{} if is_number else {"type": "category"})
    for place in range(max(0, len(names) - across), len(names)):
        figure.update_xaxes(title_text=theme.plain(axis), row=place // COLUMNS + 1, col=place % COLUMNS + 1)
    figure.update_layout(legend=theme.LEGEND_ON_TOP, height=140 + PANEL_PX * down)
    what = f"{count(len(names), 'finding')} of {count(len(found), 'job')} of {notebook}, against {axis}"
    return theme.finish(
        figure,
        name=f"findings-of-{notebook}",
        title=f"Findings of {notebook} against {axis}",
        subtitle="Each point is the estimate of one job, its bar the interval that the job's page gives.",
        alt=f"{what}.",
        caption=f"{what}. What a finding means, and what it assumes, is on the page of its job.",
        table=rows[["job", "name", "at", "series", "estimate", "low", "high", "unit", "n"]],
        headroom_px=theme.PANEL_TITLES_PX,
    )

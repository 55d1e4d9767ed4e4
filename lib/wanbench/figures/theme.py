"""Set the look of figures (template, colours, axes, titles), and attach alt text and numbers to them."""

import re
from collections.abc import Callable, Iterable
from functools import wraps
from math import ceil, floor, log10
from textwrap import shorten, wrap
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
from pandas.api.types import is_numeric_dtype

from wanbench.checks import refusal
from wanbench.formatting import quantity
from wanbench.regions import CLOUDS, cloud_title

Settings = dict[str, Any]
"""Settings of a part of a figure, by Plotly's names."""
NAME = "wanbench"
FONT = "DejaVu Sans, Verdana, sans-serif"
HEIGHT_PX = 520
TEXT = "#1F2933"
MUTED = "#5B6770"
GRID = "#E3E7EB"
LIGHT = "#6B7280"  # Reference lines, such as light in fibre.
FIT = "#1F2933"  # Fitted curves and estimates.
# The three verdicts of a check; blue and orange look different with any kind of colour blindness.
WITHIN = "#0072B2"
OUTSIDE = "#C44E00"
UNKNOWN = "#8A949E"

# One colour per cloud and per pair of clouds; a test checks that they look different with common colour blindness.
COLOURS = {
    **{name: cloud.colour for name, cloud in sorted(CLOUDS.items())},
    **{f"{name}-{name}": cloud.colour for name, cloud in sorted(CLOUDS.items())},
    "aws-azure": "#882288",
    "aws-gcp": "#D9A300",
    "azure-gcp": "#62B9EA",
}
SYMBOLS = {
    "aws-aws": "circle",
    "azure-azure": "square",
    "gcp-gcp": "diamond",
    "ibm-ibm": "star",
    "aws-azure": "x",
    "aws-gcp": "triangle-up",
    "azure-gcp": "cross",
}
# Colours of arms, settings or distributions, in order of appearance.
SERIES_COLOURS = (WITHIN, OUTSIDE, "#009E73", "#6B0F1A", "#882288", "#D9A300")
# Colour and symbol of arms that must look the same in all figures of a page.
ARMS = {"internet": (OUTSIDE, "diamond"), "private": (WITHIN, "circle")}
ARM_SYMBOLS = ("circle", "diamond", "square", "triangle-up", "x", "star")
TITLE_CHARACTERS, ALT_CHARACTERS = 70, 250
SUBTITLE_CHARACTERS = 112  # Characters per line that fit the narrowest figure, 800 pixels wide.
PANEL_TITLES_PX = 24  # `headroom_px` for a figure whose panels have titles.
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.]+$)")
MAX_POINTS = 2_000  # Points to draw of a dense series: more would only slow the page down.
LEGEND_ON_TOP = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yref": "container", "yanchor": "top"}


def _template() -> go.layout.Template:
    axis = {"gridcolor": GRID, "linecolor": MUTED, "zerolinecolor": GRID, "automargin": True}
    axis |= {"title": {"standoff": 10, "font": {"size": 13}}, "ticks": "outside", "tickcolor": MUTED, "ticklen": 4}
    title = {"x": 0, "xref": "container", "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"}
    title |= {"pad": {"t": 14, "l": 14}, "font": {"size": 18}, "subtitle": {"font": {"size": 12, "color": MUTED}}}
    layout: Settings = {"font": {"family": FONT, "size": 13, "color": TEXT}, "height": HEIGHT_PX, "title": title}
    layout |= {"paper_bgcolor": "white", "plot_bgcolor": "white", "geo": {"bgcolor": "white"}, "hovermode": "closest"}
    layout |= {"margin": {"l": 70, "r": 20, "t": 90, "b": 60}, "xaxis": axis, "yaxis": axis}
    layout |= {"hoverlabel": {"font": {"family": FONT}}, "colorway": [*dict.fromkeys(COLOURS.values())]}
    layout["legend"] = {"itemsizing": "constant", "font": {"size": 12}, "tracegroupgap": 4}
    return go.layout.Template(layout=layout)


pio.templates[NAME] = _template()


def arm_marks(names: Iterable[object]) -> dict[str, tuple[str, str]]:
    """Return (colour, symbol) by name of arm (compared deployment) or setting: from `ARMS`, or else the next unused."""
    known = dict.fromkeys(map(str, names))
    fixed = {name: ARMS[name] for name in known if name in ARMS}
    rest = [mark for mark in zip(SERIES_COLOURS, ARM_SYMBOLS, strict=True) if mark not in fixed.values()]
    others = [name for name in known if name not in ARMS]
    return fixed | {name: rest[k % len(rest)] for k, name in enumerate(others)}


def colour(name: str) -> str:
    """Return the colour of a cloud or a pair of clouds; grey if it has none."""
    return COLOURS.get(name, LIGHT)


def cloud_name(name: str) -> str:
    """
    Return the full name of a cloud or a pair of clouds.

    >>> cloud_name("gcp"), cloud_name("aws-gcp"), cloud_name("aws-aws")
    ('Google Cloud', 'AWS – Google Cloud', 'within AWS')
    """
    names = [cloud_title(part) for part in name.split("-")]
    return f"within {names[0]}" if len(names) == 2 and names[0] == names[1] else " – ".join(names)


def plain(text: object) -> str:
    """Escape characters that Plotly would read as HTML."""
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def headline(sentence: str, otherwise: str) -> str:
    """
    Return the first sentence of a text as a title, without its full stop and anything in round brackets.

    Return `otherwise` if that is empty or longer than `TITLE_CHARACTERS`.

    >>> headline("RTT grows by 14.7 ms per 1,000 km (95 % interval 14.6 to 14.8). It is rough.", "RTT by distance")
    'RTT grows by 14.7 ms per 1,000 km'
    """
    stated = re.sub(r"\s*\([^()]*\)", "", sentence)
    stated = re.split(r"\.(?:\s|$)", stated)[0].strip()
    stated = re.sub(r"^[a-z](?=[a-z]* )", lambda first: first[0].upper(), stated)
    return stated if 0 < len(stated) <= TITLE_CHARACTERS else otherwise


def shortened(text: str, limit: int = ALT_CHARACTERS) -> str:
    """
    Return the sentences of a string that fit into `limit` characters; if they fill less than half, add the start of the
    next.

    >>> shortened("RTT grows by 2.5 ms. It is rough.", limit=25)
    'RTT grows by 2.5 ms.'
    """
    kept = ""
    for sentence in re.split(r"(?<=[.!?]) (?=[^a-z])", text):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > limit:
            return kept if len(kept) > limit / 2 else shorten(longer, limit, placeholder=" ...")
        kept = longer
    return kept


def finish(
    figure: go.Figure,
    *,
    name: str,
    title: str,
    subtitle: str,
    alt: str,
    caption: str,
    table: pd.DataFrame,
    note: str = "",
    headroom_px: int = 0,
) -> go.Figure:
    """
    Set the template and title of a figure, store name, alt text, caption and numbers in `layout.meta`, and return it.

    `name` becomes a file name: lower-case letters, digits and hyphens. `subtitle` says what points, lines and bands
    mean, `alt` describes the figure for screen readers (see `shortened`), and `table` holds the numbers drawn. `note`
    is a sentence for the end of both subtitle and caption, such as "The data are a check of the pipeline."
    `headroom_px` is extra space between subtitle and axes, such as `PANEL_TITLES_PX`.
    """
    if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
        raise refusal("name", name, "lower-case letters and digits, joined by single hyphens")
    lines = [plain(line) for line in wrap(f"{subtitle} {note}".strip(), SUBTITLE_CHARACTERS)]
    figure.update_layout(
        template=NAME,
        title={"text": plain(title), "subtitle": {"text": "<br>".join(lines)}},
        margin={"t": 62 + 17 * len(lines) + headroom_px},
        meta={"name": name, "alt": shortened(alt), "caption": f"{caption} {note}".strip(), "csv": numbers(table)},
    )
    return figure


def numbers(table: pd.DataFrame) -> str:
    """
    Write a table as CSV text: floats with six significant digits, missing values as empty fields.

    Put an apostrophe before strings that a spreadsheet would read as a formula, such as "=1+1".
    """
    texts = table.apply(lambda column: column if is_numeric_dtype(column) else column.map(_no_formula))
    return texts.rename(columns=_no_formula).to_csv(index=False, float_format="%.6g", lineterminator="\n")


def _no_formula(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def log_axis(values: np.typing.ArrayLike, unit: str, max_ticks: int = 10) -> Settings:
    """
    Return Plotly's settings of a logarithmic axis for `values`, with ticks at 1, 2 and 5 times powers of ten.

    With more than `max_ticks` of these, only powers of ten have ticks. If the largest value is less than 5 times the
    smallest, ticks are closer together.

    >>> log_axis([90e6, 1.1e9], "bit/s")["ticktext"]
    ['50 Mbit/s', '100 Mbit/s', '200 Mbit/s', '500 Mbit/s', '1 Gbit/s', '2 Gbit/s']
    """
    values = np.asarray(values, dtype=float)
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return {"type": "log"}
    low, high = floor(log10(values.min())), ceil(log10(values.max()))
    close = ((1, 1.5, 2, 3, 4, 5, 7),) if values.max() < 5 * values.min() else ()
    shown = []
    for steps in (*close, (1, 2, 5), (1,)):
        ticks = [step * 10.0**power for power in range(low - 1, high + 2) for step in steps]
        first = max(tick for tick in ticks if tick <= values.min() * (1 + 1e-9))
        last = min(tick for tick in ticks if tick >= values.max() * (1 - 1e-9))
        shown = [tick for tick in ticks if first <= tick <= last]
        if len(shown) <= max_ticks:
            break
    pad = 0.04 * max(log10(values.max() / values.min()), 0.2)
    ends = [log10(values.min()) - pad, log10(values.max()) + pad]
    texts = [tick_text(tick, unit) for tick in shown]
    return {"type": "log", "tickvals": shown, "ticktext": texts, "range": ends}


def tick_text(value: float, unit: str) -> str:
    """
    Format a value with its unit, without trailing zeros.

    >>> tick_text(2e8, "bit/s"), tick_text(50, "ms"), tick_text(0.5, "ms")
    ('200 Mbit/s', '50 ms', '0.5 ms')
    """
    number, _, name = quantity(value, unit).partition(" ")
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number} {name}".strip()


def spread(n: int, width: float = 0.6) -> np.ndarray:
    """Return `n` evenly spread offsets from -`width`/2 to `width`/2, to draw overlapping points side by side."""
    # multiples of the golden ratio modulo 1 fill an interval evenly for any n, without random numbers
    golden = 0.6180339887498949
    return ((np.arange(1, n + 1) * golden) % 1 - 0.5) * width


GROUND = (20, 24, 29)  # The background of dark figures and pages.


def on_dark(colour: str) -> str:
    """
    Return a colour for a dark background: greys are inverted, others lightened to a contrast of 3.

    >>> on_dark("white"), on_dark("#0072B2"), on_dark("rgba(0, 114, 178, 0.12)")
    ('rgb(20, 24, 29)', 'rgb(0, 114, 178)', 'rgba(0, 114, 178, 0.12)')
    """
    text = {"white": "#ffffff", "black": "#000000"}.get(colour.lower(), colour)
    if match := re.fullmatch(r"#([0-9a-fA-F]{6})", text):
        rgb, alpha = tuple(bytes.fromhex(match[1])), None
    elif match := re.fullmatch(r"rgba?\((\d+), *(\d+), *(\d+)(?:, *([\d.]+))?\)", text):
        rgb, alpha = tuple(map(int, match.groups()[:3])), match[4]
    else:
        return colour
    if max(rgb) - min(rgb) < 45:
        rgb = tuple(round(dark + (1 - value / 255) * (232 - dark)) for value, dark in zip(rgb, GROUND, strict=True))
    else:
        while (_luminance(rgb) + 0.05) / (_luminance(GROUND) + 0.05) < 3:
            rgb = tuple(round(value + (255 - value) * 0.15) for value in rgb)
    numbers = ", ".join(map(str, rgb))
    return f"rgb({numbers})" if alpha is None else f"rgba({numbers}, {alpha})"


def _luminance(rgb: tuple[int, ...]) -> float:
    parts = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in (value / 255 for value in rgb)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def recoloured(value: Any, key: str = "") -> Any:
    """
    Return a part of a figure (Plotly's JSON) with its colours adapted to a dark background; colour scales are left
    unchanged.
    """
    if isinstance(value, dict):
        return {name: one if name == "colorscale" else recoloured(one, name) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [recoloured(one, key) for one in value]
    return on_dark(value) if isinstance(value, str) and key.endswith(("color", "colorway")) else value


def styled(draw: Callable[..., go.Figure]) -> Callable[..., go.Figure]:
    """Wrap a function that returns a figure, so that it accepts `title` and `theme` ("light", "dark" or a template)."""

    @wraps(draw)
    def figure(*arguments: object, title: str | None = None, theme: str = "light", **more: object) -> go.Figure:
        drawn = draw(*arguments, **more)
        if title is not None:
            drawn.update_layout(title_text=plain(title))
        if theme == "light":
            return drawn
        if theme != "dark" and theme not in pio.templates:
            raise refusal("theme", theme, f"light, dark, {', '.join(pio.templates)}")
        if theme == "dark" or "dark" in theme:
            drawn = go.Figure(recoloured(drawn.to_plotly_json()))
        return drawn if theme == "dark" else drawn.update_layout(template=theme)

    return figure

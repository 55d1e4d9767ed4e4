"""An animation of leaders, replicas in sync and the group's assignment, with a frame for each change."""

from __future__ import annotations

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme

from .moments import AFTER, BEFORE, DURING, Moment, moments, moments_table
from .timeline import Timeline
from .timeline_figure import stem

FRAME_MS = 1500
"""Long enough to compare three small tables with the previous ones."""
SHADE = "#FBEFE6"
"""Background of the panels during the fault."""
MARKERS = {
    "leader": {"symbol": "square", "color": theme.TEXT, "size": 15},
    "in sync": {"symbol": "square", "color": theme.COLOURS["azure-gcp"], "size": 15},
    "not in sync": {"symbol": "x-thin", "size": 9, "line": {"width": 2, "color": theme.OUTSIDE}},
}
AT_ONCE = {"mode": "immediate", "transition": {"duration": 0}}


def moments_figure(story: Timeline, *, note: str = "") -> go.Figure:
    """Three panels, a frame per moment. On opening and in print it shows the last change before healing."""
    states = moments(story)
    replicas = _replicas(states)
    brokers = sorted(set().union(*replicas.values()))
    chosen = max(k for k, state in enumerate(states) if state.phase == DURING)
    figure = make_subplots(1, 3, column_widths=(0.22, 0.33, 0.45), horizontal_spacing=0.12)
    for trace, column in zip(_traces(states[chosen], replicas, brokers), (1, 2, 2, 2, 3), strict=True):
        figure.add_trace(trace, row=1, col=column)
    layouts = [_announced(state, story) for state in states]
    figure.frames = [
        go.Frame(name=str(k), data=_traces(state, replicas, brokers), layout=layout)
        for k, (state, layout) in enumerate(zip(states, layouts, strict=True))
    ]
    names = [str(each) for each in brokers]
    ends = [-0.6, len(names) - 0.4]
    for column in (1, 2):
        figure.update_xaxes(type="category", categoryarray=names, range=ends, title="broker", col=column)
    for title, column in (("partitions led", 1), ("partitions of the consumers", 3)):
        figure.update_yaxes(title=title, range=[0, 1.08 * len(replicas)], col=column)
    figure.update_yaxes(title="partition", range=[max(replicas) + 0.7, min(replicas) - 0.7], dtick=1, col=2)
    figure.update_layout(
        **layouts[chosen],
        height=620,
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.25, "yanchor": "top"},
        sliders=[_slider(states, chosen)],
        updatemenus=[_buttons()],
    )
    setting = story.episode.setting
    return theme.finish(
        figure,
        name=f"three-tables-{stem(setting)}",
        title=f"The article's three tables during “{setting}”",
        subtitle="Leaders, replicas in sync and the consumers' partitions, whenever a sample showed a change. Shaded: "
        "from the order to begin the fault to the order to heal it.",
        alt=f"Three tables at {len(states)} moments, to be played or stepped through. {_spoken(states)}",
        caption=_spoken(states),
        table=moments_table(states),
        note=note,
        headroom_px=theme.PANEL_TITLES_PX,
    )


def _replicas(states: list[Moment]) -> dict[int, frozenset[int]]:
    """The brokers that were ever in sync, by partition."""
    partitions = sorted({partition for state in states for partition in state.in_sync})
    return {
        partition: frozenset().union(*(state.in_sync.get(partition, ()) for state in states))
        for partition in partitions
    }


def _traces(state: Moment, replicas: dict[int, frozenset[int]], brokers: list[int]) -> list:
    led = list(state.leaders.values())
    regions = [theme.plain(each).replace(":", ":<br>") for each in state.group]
    marks = {name: [] for name in MARKERS}
    for partition, known in replicas.items():
        for broker in sorted(known):
            leads = state.leaders.get(partition) == broker
            followed = "in sync" if broker in state.in_sync.get(partition, ()) else "not in sync"
            marks["leader" if leads else followed].append((str(broker), partition))
    return [
        _bars([str(each) for each in brokers], [led.count(each) for each in brokers], theme.TEXT),
        *(_marks(name, cells) for name, cells in marks.items()),
        _bars(regions, list(state.group.values()), theme.MUTED),
    ]


def _marks(name: str, cells: list[tuple[str, int]]) -> go.Scatter:
    cells = cells or [(None, None)]  # a trace without points leaves the legend
    where = {"x": [broker for broker, _ in cells], "y": [partition for _, partition in cells]}
    told = f"partition %{{y}}, broker %{{x}}: {name}<extra></extra>"
    return go.Scatter(**where, name=name, mode="markers", marker=MARKERS[name], hovertemplate=told)


def _bars(names: list[str], counts: list[int], colour: str) -> go.Bar:
    return go.Bar(
        x=names, y=counts, text=[str(n) for n in counts], textposition="outside", cliponaxis=False,
        marker={"color": colour}, showlegend=False, hovertemplate="%{x}: %{y}<extra></extra>",
    )  # fmt: skip


def _announced(state: Moment, story: Timeline) -> dict:
    """The layout of a moment: its time, and whether the fault is on."""
    about = story.episode.about
    what = theme.plain(f"{about.fault} of {' and '.join(sorted(story.episode.hit))}")
    text = {
        BEFORE: f"{-state.at_s:.1f} s before the fault",
        DURING: f"<b>FAULT: {what}</b>, {state.at_s:.1f} s ago",
        AFTER: f"{state.at_s - story.heal_s:.1f} s after healing was ordered",
    }[state.phase]
    on = state.phase == DURING
    font = {"size": 13, "color": theme.OUTSIDE if on else theme.TEXT}
    place = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom", "yshift": 4, "showarrow": False}
    told = place | {"xref": "paper", "yref": "paper", "text": text, "font": font}
    return {"annotations": [told], "plot_bgcolor": SHADE if on else "white"}


def _slider(states: list[Moment], chosen: int) -> dict:
    at_once = AT_ONCE | {"frame": {"duration": 0}}
    steps = [
        {"label": f"{state.at_s:.1f}", "method": "animate", "args": [[str(k)], at_once]}
        for k, state in enumerate(states)
    ]
    shown = {"prefix": "time since the fault was ordered: ", "suffix": " s", "font": {"size": 13}}
    return {"active": chosen, "steps": steps, "currentvalue": shown, "y": -0.36, "pad": {"t": 0}}


def _buttons() -> dict:
    play = {"label": "Play", "method": "animate", "args": [None, AT_ONCE | {"frame": {"duration": FRAME_MS}}]}
    pause = {"label": "Pause", "method": "animate", "args": [[None], AT_ONCE | {"frame": {"duration": 0}}]}
    place = {"x": 0, "xanchor": "left", "y": -0.36, "yanchor": "top", "pad": {"t": 85}}
    return place | {"type": "buttons", "direction": "left", "showactive": False, "buttons": [play, pause]}


def _spoken(states: list[Moment]) -> str:
    """How many partitions are fully in sync and how many brokers lead, before, during and at the end."""
    replicas = _replicas(states)
    chosen = [states[0], [each for each in states if each.phase == DURING][-1], states[-1]]
    parts = []
    for state in chosen:
        full = sum(state.in_sync.get(partition) == known for partition, known in replicas.items())
        members = ", ".join(f"{region} {n}" for region, n in state.group.items())
        parts.append(
            f"{state.at_s:.1f} s: {full} of {len(replicas)} partitions have all replicas in sync, "
            f"{len(set(state.leaders.values()) - {-1})} brokers lead, assigned are {members or 'none'}"
        )
    return "Seconds since the fault was ordered: " + "; ".join(parts) + "."

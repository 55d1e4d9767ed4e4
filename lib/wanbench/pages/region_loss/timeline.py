"""One episode over time: leaders, replicas in sync, the group's partitions, acknowledgements and receipts."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.checks import check_number
from wanbench.figures import theme
from wanbench.methods.result import Result

from .episodes import Episode, Episodes
from .gaps import WINDOW_S, rates

TITLES = (
    "partitions led by each broker",
    "partitions with all replicas in sync",
    "partitions assigned to the consumers of each region",
    "acknowledgements per second to the producers of each region",
    "receipts per second by the consumers of each region",
)
BEFORE, DURING, AFTER = "before the fault", "during the fault", "after healing was ordered"
FRAME_MS = 1500
"""Long enough to compare three small tables with the previous ones."""
SHADE = "#FBEFE6"
"""Background of the panels during the fault."""
MARKERS = {
    "leader": {"symbol": "square", "color": theme.TEXT, "size": 15},
    "in sync": {"symbol": "square", "color": theme.COLOURS["azure-gcp"], "size": 15},
    "not in sync": {"symbol": "x-thin", "size": 9, "line": {"width": 2, "color": theme.OUTSIDE}},
}
DASHES = ("solid", "dash", "dot")
AT_ONCE = {"mode": "immediate", "transition": {"duration": 0}}


@dataclass(frozen=True, repr=False)
class Timeline(Result):
    """
    Observations around one fault, by one watcher outside the hit regions; times in seconds since the fault was ordered.

    `leaders` has broker and the number of partitions that it leads, `partitions` leader and isr of each, `replicas` the
    number with all replicas in sync (full), `group` region and partitions assigned to its consumers, `rates` kind
    (writes, reads), region and per_s over the second before.
    """

    episode: Episode
    leaders: pd.DataFrame
    partitions: pd.DataFrame
    replicas: pd.DataFrame
    group: pd.DataFrame
    rates: pd.DataFrame

    TITLE = "Before, during and after the fault"

    @property
    def heal_s(self) -> float:
        """When healing was ordered."""
        return self.episode.heal_at_s - self.episode.fault_at_s

    @property
    def sentence(self) -> str:
        about = self.episode.about
        before, during, after = self.led()
        return (
            f"“{about.setting}”, block {about.get('block')}: {about.fault} of {' and '.join(sorted(self.episode.hit))} "
            f"for {self.heal_s:.0f} s. Partitions led per broker before, at the end of the fault, at the end: "
            f"{before}; {during}; {after}."
        )

    def moments_figure(self, *, note: str = "") -> go.Figure:
        """
        Draw an animation of leaders, replicas in sync and assignment, with a frame for each change. On opening and in
        print it shows the last change before healing.
        """
        states = moments(self)
        replicas = _replicas(states)
        brokers = sorted(set().union(*replicas.values()))
        chosen = max(k for k, state in enumerate(states) if state.phase == DURING)
        figure = make_subplots(1, 3, column_widths=(0.22, 0.33, 0.45), horizontal_spacing=0.12)
        for trace, column in zip(_traces(states[chosen], replicas, brokers), (1, 2, 2, 2, 3), strict=True):
            figure.add_trace(trace, row=1, col=column)
        layouts = [_announced(state, self) for state in states]
        figure.frames = [
            go.Frame(name=str(k), data=_traces(state, replicas, brokers), layout=layout)
            for k, (state, layout) in enumerate(zip(states, layouts, strict=True))
        ]
        names = [str(each) for each in brokers]
        axis = {"type": "category", "categoryarray": names, "range": [-0.6, len(names) - 0.4], "title": "broker"}
        for column in (1, 2):
            figure.update_xaxes(col=column, **axis)
        for title, column in (("partitions led", 1), ("partitions of the consumers", 3)):
            figure.update_yaxes(title=title, range=[0, 1.08 * len(replicas)], col=column)
        figure.update_yaxes(title="partition", range=[max(replicas) + 0.7, min(replicas) - 0.7], dtick=1, col=2)
        legend = {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.25, "yanchor": "top"}
        controls = {"sliders": [_slider(states, chosen)], "updatemenus": [_buttons()]}
        figure.update_layout(**layouts[chosen], **controls, height=620, legend=legend)
        spoken = _spoken(states, replicas)
        return theme.finish(
            figure,
            name=f"three-tables-{stem(self.episode.setting)}",
            title=f"The article's three tables during “{self.episode.setting}”",
            subtitle="Leaders, replicas in sync and the consumers' partitions, whenever a sample showed a change. "
            "Shaded: from the order to begin the fault to the order to heal it.",
            alt=f"Three tables at {len(states)} moments, to be played or stepped through. {spoken}",
            caption=spoken,
            table=moments_table(states),
            note=note,
            headroom_px=theme.PANEL_TITLES_PX,
        )

    def led(self) -> tuple[str, str, str]:
        """Partitions led per broker in the last sample before the fault, before healing, and overall."""
        texts = []
        for end in (0.0, self.heal_s, float("inf")):
            rows = last_until(self.leaders, end).itertuples()
            texts.append(", ".join(f"broker {r.broker:.0f}: {r.partitions:.0f}" for r in rows if r.partitions))
        return tuple(texts)

    def formatted_table(self) -> pd.DataFrame:
        rows = []
        for name, end in (("before the fault", 0.0), ("before healing", self.heal_s), ("at the end", float("inf"))):
            leaders, group, replicas = (last_until(one, end) for one in (self.leaders, self.group, self.replicas))
            row = {"": name}
            row |= {f"broker {one.broker:.0f} leader of": f"{one.partitions:.0f}" for one in leaders.itertuples()}
            row |= {f"{one.region} reads": f"{one.partitions:.0f}" for one in group.itertuples()}
            full = f"{replicas.full.iloc[-1]:.0f}" if len(replicas) else ""
            rows.append(row | {"partitions with all replicas in sync": full})
        return pd.DataFrame(rows).fillna("0")

    def table(self) -> pd.DataFrame:
        parts = [
            self.leaders.assign(panel="leaders", of=self.leaders.broker.astype(str), value=self.leaders.partitions),
            self.replicas.assign(panel="in sync", of="all", value=self.replicas.full),
            self.group.assign(panel="assigned", of=self.group.region, value=self.group.partitions),
            self.rates.assign(panel=self.rates.kind, of=self.rates.region, value=self.rates.per_s),
        ]
        return pd.concat([part[["panel", "at_s", "of", "value"]] for part in parts], ignore_index=True)

    def figure(self, *, note: str = "") -> go.Figure:
        """Draw the article's three tables and the clients' rates on one time axis, the fault shaded."""
        figure = make_subplots(5, 1, shared_xaxes=True, vertical_spacing=0.05, subplot_titles=TITLES)
        regions = sorted(set(self.rates.region) | set(self.group.region))
        shades = {name: theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)] for k, name in enumerate(regions)}
        for k, (broker, own) in enumerate(self.leaders.groupby("broker")):
            line = {"color": theme.TEXT if k < 3 else theme.MUTED, "dash": DASHES[k % 3], "shape": "hv"}
            more = {"legendgroup": "brokers", "showlegend": True}
            _line(figure, 1, own.at_s, own.partitions, f"broker {broker:.0f}", line, **more)
        line = {"color": theme.TEXT, "shape": "hv"}
        _line(figure, 2, self.replicas.at_s, self.replicas.full, "all replicas in sync", line)
        for region, own in self.group.groupby("region"):
            name, line = theme.plain(region), {"color": shades[region], "shape": "hv"}
            _line(figure, 3, own.at_s, own.partitions, name, line, legendgroup=name)
        for (kind, region), own in self.rates.groupby(["kind", "region"], sort=False):
            line = {"color": shades[region], "width": 3 if region in self.episode.hit else 1.5}
            name, row = theme.plain(region), 4 if kind == "writes" else 5
            _line(figure, row, own.at_s, own.per_s, name, line, legendgroup=name, showlegend=row == 4)
        figure.add_vrect(x0=0, x1=self.heal_s, fillcolor=theme.OUTSIDE, opacity=0.1, line_width=0)
        figure.update_xaxes(title="time since the fault was ordered (s)", row=5, col=1)
        figure.update_yaxes(rangemode="tozero")
        figure.update_annotations(font_size=13)
        figure.update_layout(height=900, legend={"orientation": "h", "y": -0.08})
        return theme.finish(
            figure,
            name=f"timeline-{stem(self.episode.setting)}",
            title=f"“{self.episode.setting}” over time",
            subtitle="Shaded: from the order to begin the fault to the order to heal it. Thick: the region that is "
            "hit. Rates are those of the second before. Leaders, replicas and group as seen from one region outside.",
            alt=f"Five timelines around a fault. {self}",
            caption=str(self),
            table=self.table(),
            note=note,
            headroom_px=theme.PANEL_TITLES_PX,
        )


def _line(figure, row, x, y, name, line, **more):
    style = {"mode": "lines", "name": name, "line": line, "showlegend": False, "row": row, "col": 1}
    style["hovertemplate"] = "%{x:.1f} s: %{y:.0f}<extra>" + name + "</extra>"
    figure.add_scatter(x=x, y=y, **style | more)


def stem(text: str) -> str:
    """
    Return a file name.

    >>> stem("cut at aws:us-east-1")
    'cut-at-aws-us-east-1'
    """
    return "-".join("".join(each if each.isalnum() and each.isascii() else " " for each in text.lower()).split())


def timeline(episodes: Episodes, setting: str, number: int = 0) -> Timeline:
    """Show one episode of a setting over time: that with this `number` among those with a fault, from 0."""
    own = episodes.of(setting).with_fault().items
    episode = own[check_number("number", number, 0, len(own) - 1, whole=True)]
    zero = episode.fault_at_s
    samples = episode.samples
    # one watcher's view: two would interleave, and one that lags would make leaders flicker
    watcher = samples.groupby("region").size().idxmax()
    seen = samples[samples.region == watcher]
    leaders = _filled(seen[seen.leader >= 0].groupby(["at_s", "leader"]).size(), "broker")
    full = (seen.n_isr >= int(episode.about.replication)).groupby(seen.at_s).sum()
    replicas = full.rename("full").reset_index()
    group = _filled(episode.members.groupby(["at_s", "client_region"]).n_partitions.sum(), "region")
    parts = []
    for kind, events in (("writes", episode.acknowledgements), ("reads", episode.receipts)):
        for region, of_region in events.groupby("region"):
            starts, per_s = rates(of_region.at_s, *episode.due)
            about = {"at_s": starts + WINDOW_S - zero, "kind": kind, "region": region}
            parts.append(pd.DataFrame(about | {"per_s": per_s}))
    partitions = seen[["at_s", "partition", "leader", "isr"]]
    shifted = [frame.assign(at_s=frame.at_s - zero) for frame in (leaders, partitions, replicas, group)]
    return Timeline(episode, *shifted, pd.concat(parts, ignore_index=True))


def _filled(numbers: pd.Series, name: str) -> pd.DataFrame:
    """At every time a number of partitions for each broker or region, 0 where there is none."""
    return numbers.unstack(fill_value=0).stack().reset_index().set_axis(["at_s", name, "partitions"], axis=1)


def last_until(rows: pd.DataFrame, at_s: float) -> pd.DataFrame:
    """Return the rows of the last sample up to a time."""
    own = rows[rows.at_s <= at_s]
    return own[own.at_s == own.at_s.max()]


@dataclass(frozen=True)
class Moment:
    """
    The last known state `at_s` seconds after the fault was ordered: leader of each partition (-1: none), brokers in
    sync by partition, partitions assigned to the consumers of each region.
    """

    at_s: float
    phase: str
    leaders: dict[int, int]
    in_sync: dict[int, frozenset[int]]
    group: dict[str, int]


def moments(story: Timeline) -> list[Moment]:
    """The state just before the fault, when it and healing were ordered, and whenever a sample showed a change."""
    sampled = set(story.partitions.at_s) | set(story.group.at_s)
    start, orders = max((at for at in sampled if at < 0), default=0.0), {0.0, story.heal_s}
    states: list[Moment] = []
    for at in sorted({at for at in sampled if at >= start} | orders):
        phase = BEFORE if at < 0 else DURING if at < story.heal_s else AFTER
        seen, members = last_until(story.partitions, at), last_until(story.group, at)
        leaders = dict(zip(seen.partition, seen.leader.fillna(-1).astype(int), strict=True))
        in_sync = dict(zip(seen.partition, map(_brokers, seen.isr), strict=True))
        group = dict(zip(members.region, map(int, members.partitions), strict=True))
        before = states[-1] if states else None
        if (
            before is None
            or at in orders
            or (leaders, in_sync, group) != (before.leaders, before.in_sync, before.group)
        ):
            states.append(Moment(at, phase, leaders, in_sync, group))
    return states


def moments_table(states: list[Moment]) -> pd.DataFrame:
    """Return the three tables in long form: at_s, phase, table (leader, in sync, assigned), of, value."""
    rows = []
    for each in states:
        in_sync = {partition: ",".join(map(str, sorted(of))) for partition, of in each.in_sync.items()}
        cells = [("leader", f"partition {key}", value) for key, value in each.leaders.items()]
        cells += [("in sync", f"partition {key}", value) for key, value in in_sync.items()]
        cells += [("assigned", key, value) for key, value in each.group.items()]
        rows += [(each.at_s, each.phase, *cell) for cell in cells]
    return pd.DataFrame(rows, columns=["at_s", "phase", "table", "of", "value"])


def _brokers(isr) -> frozenset[int]:
    return frozenset(int(each) for each in str(isr).split(",") if each) if pd.notna(isr) else frozenset()


def _replicas(states: list[Moment]) -> dict[int, frozenset[int]]:
    """Return the brokers that were ever in sync, by partition."""
    partitions = sorted({partition for state in states for partition in state.in_sync})
    return {each: frozenset().union(*(state.in_sync.get(each, ()) for state in states)) for each in partitions}


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
    x, y = zip(*cells or [(None, None)], strict=True)  # a trace without points leaves the legend
    told = f"partition %{{y}}, broker %{{x}}: {name}<extra></extra>"
    return go.Scatter(x=x, y=y, name=name, mode="markers", marker=MARKERS[name], hovertemplate=told)


def _bars(names: list[str], counts: list[int], colour: str) -> go.Bar:
    style = {"textposition": "outside", "cliponaxis": False, "marker": {"color": colour}, "showlegend": False}
    return go.Bar(x=names, y=counts, text=[str(n) for n in counts], hovertemplate="%{x}: %{y}<extra></extra>", **style)


def _announced(state: Moment, story: Timeline) -> dict:
    """Return the layout of a moment: its time, and whether the fault is on."""
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
    place |= {"xref": "paper", "yref": "paper"}
    return {"annotations": [place | {"text": text, "font": font}], "plot_bgcolor": SHADE if on else "white"}


def _slider(states: list[Moment], chosen: int) -> dict:
    args = [[[str(k)], AT_ONCE | {"frame": {"duration": 0}}] for k in range(len(states))]
    steps = [
        {"label": f"{one.at_s:.1f}", "method": "animate", "args": to} for one, to in zip(states, args, strict=True)
    ]
    shown = {"prefix": "time since the fault was ordered: ", "suffix": " s", "font": {"size": 13}}
    return {"active": chosen, "steps": steps, "currentvalue": shown, "y": -0.36, "pad": {"t": 0}}


def _buttons() -> dict:
    play = {"label": "Play", "method": "animate", "args": [None, AT_ONCE | {"frame": {"duration": FRAME_MS}}]}
    pause = {"label": "Pause", "method": "animate", "args": [[None], AT_ONCE | {"frame": {"duration": 0}}]}
    place = {"x": 0, "xanchor": "left", "y": -0.36, "yanchor": "top", "pad": {"t": 85}}
    return place | {"type": "buttons", "direction": "left", "showactive": False, "buttons": [play, pause]}


def _spoken(states: list[Moment], replicas: dict[int, frozenset[int]]) -> str:
    """Show how many partitions are fully in sync and how many brokers lead, before, during and at the end."""
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

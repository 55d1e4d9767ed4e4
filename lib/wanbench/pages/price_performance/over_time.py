"""Metrics of trials over time: load, latency, processors, disk, network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from wanbench.figures import theme
from wanbench.formatting import count
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Result
from wanbench.methods.trials.rates import TrialRates

from .trials import counter_rates

STEP_S = 5.0
"""The source's sampling interval."""
CPU = {"usr": "CPU user", "user": "CPU user", "sys": "CPU system", "system": "CPU system"}
CPU |= {"iowait": "CPU IOWait", "steal": "CPU steal"}
TOTAL = "CPU total"
PANELS = {"messages in": "1/s", "requests": "1/s", "latency, mean": "ms", "latency, largest": "ms"}
PANELS |= dict.fromkeys(("CPU user", "CPU system", "CPU IOWait", "CPU steal", TOTAL), "%")
PANELS |= dict.fromkeys(("disk written", "brokers sent", "brokers received"), "MB/s")
KIB = 1024


COLUMNS = 3
PANEL_PX = 190


@dataclass(frozen=True, repr=False)
class OverTime(Result):
    """
    Metrics over time, one row per trial, quantity and step.

    `at_s` is the middle of the step, in seconds after the warm-up. Values are means over the step, summed over brokers.
    """

    rows: pd.DataFrame
    step_s: float

    @property
    def sentence(self) -> str:
        tests = self.rows[KEY].drop_duplicates()
        names = ", ".join(dict.fromkeys(self.rows.quantity))
        return f"Means over {self.step_s:g} s in {count(len(tests), 'trial')}: {names or 'no metric'}."

    def formatted_table(self) -> None:
        """Return None, because the figure has the values."""

    def figure(self) -> go.Figure:
        """Draw one small chart per measured metric."""
        rows = self.rows
        panels = [name for name in PANELS if (rows.quantity == name).any()]
        lines = -(-len(panels) // COLUMNS)
        titles = [f"{name} ({PANELS[name]})" for name in panels]
        figure = make_subplots(rows=lines, cols=COLUMNS, subplot_titles=titles, vertical_spacing=0.35 / max(lines, 1))
        settings = list(dict.fromkeys(rows.setting))
        shades = {name: theme.SERIES_COLOURS[k % len(theme.SERIES_COLOURS)] for k, name in enumerate(settings)}
        named = set()
        for k, panel in enumerate(panels):
            where = {"row": k // COLUMNS + 1, "col": k % COLUMNS + 1}
            for (setting, *_), part in rows[rows.quantity == panel].groupby(["setting", *KEY], sort=False):
                part = part.sort_values("at_s")
                style = {"mode": "lines+markers", "marker": {"size": 4}}
                style |= {"line": {"color": shades[setting], "width": 1.5}, "showlegend": setting not in named}
                style |= {"name": theme.plain(setting), "legendgroup": setting}
                style |= {"hovertemplate": "%{x:.0f} s: %{y:,.4g}<extra></extra>"}
                figure.add_scatter(x=part.at_s, y=part.value, **style, **where)
                named.add(setting)
        figure.update_yaxes(rangemode="tozero")
        figure.update_layout(height=max(lines, 1) * PANEL_PX + 150)
        return theme.finish(
            figure,
            name="metrics-over-time",
            title="Every metric over time",
            subtitle=f"One line per trial, in steps of {self.step_s:g} s from the end of the warm-up. Use of "
            "processors and disks includes the clients, which run on the same machine. Messages and requests are sums "
            "over brokers. Latency is measured by the producers.",
            alt=f"Small charts of metrics over time. {self}",
            caption=str(self),
            table=rows,
            headroom_px=theme.PANEL_TITLES_PX,
        )


def over_time(rates: TrialRates, tables: Mapping[str, pd.DataFrame], *, step_s: float = STEP_S) -> OverTime:
    """
    Return the metrics of every trial, in steps.

    Latencies are the mean and the maximum that producers print per interval; they print quantiles only at the end.
    """
    metrics = tables["metrics"].merge(rates.rates[KEY], on=KEY)
    parts = [_broker_counters(metrics), _machine(metrics), _producers(tables["producer_windows"])]
    rows = pd.concat([part for part in parts if len(part)], ignore_index=True)
    rows = rows.merge(rates.rates[[*KEY, "setting", "start_s", "end_s"]], on=KEY)
    rows["step"] = ((rows.unix_s - rows.start_s) // step_s).astype(int)
    rows = rows[(rows.unix_s >= rows.start_s - step_s) & (rows.unix_s <= rows.end_s)]
    by, worst = [*KEY, "setting", "quantity", "step"], rows.quantity == "latency, largest"
    means = rows[~worst].groupby([*by, "series"], sort=False, dropna=False).value.mean()
    summed = means.groupby(level=by, sort=False).sum().reset_index()
    summed = pd.concat([summed, rows[worst].groupby(by).value.max().reset_index()], ignore_index=True)
    summed["at_s"], summed["unit"] = (summed.step + 0.5) * step_s, summed.quantity.map(PANELS)
    return OverTime(summed.drop(columns="step"), step_s)


def _unix_s(times: pd.Series) -> pd.Series:
    return (times - pd.Timestamp(0, tz="UTC")).dt.total_seconds()


def _broker_counters(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return incoming messages, and requests of all kinds, per second and broker."""
    names = {"kafka_records_in_total": "messages in", "kafka_requests_total": "requests"}
    each = counter_rates(metrics[metrics.metric.isin(names)])
    if each.empty:
        return each
    sums = each.groupby([*KEY, "node_id", "metric", "at_utc", "interval_s"], sort=False).rate.sum().reset_index()
    middle = _unix_s(sums.at_utc) - sums.interval_s / 2
    about = {"quantity": sums.metric.map(names), "series": sums.node_id.astype(str), "unix_s": middle}
    return sums[KEY].assign(**about, value=sums.rate)


def _machine(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the use of processors and disks of the machine, and of the networks of the brokers' hosts."""
    rows = metrics[metrics.source == "sysstat"]
    middle = _unix_s(rows.at_utc) - rows.interval_s.fillna(0) / 2
    rows = rows.assign(unix_s=middle, series=rows.host.astype(str) + " " + rows.subject)
    cpu = rows[(rows.subject == "cpu all") & rows.metric.isin([*CPU, "idle"])]
    total = cpu[cpu.metric == "idle"].assign(quantity=TOTAL, value=lambda part: 100 - part.value)
    cpu = cpu[cpu.metric.isin(CPU)].assign(quantity=lambda part: part.metric.map(CPU))
    disk = rows[rows.subject.str.fullmatch(r"disk [a-z]+") & rows.metric.isin(["wkB", "wr_sec"])]
    per = disk.metric.map({"wkB": KIB / 1e6, "wr_sec": 512 / 1e6})
    disk = disk.assign(quantity="disk written", value=disk.value * per)
    net = rows[(rows.subject == "net wan0") & rows.metric.isin(["txkB", "rxkB"])]
    net = net[net.host.str.split("/").str[0] != net.from_region]
    ways = {"txkB": "brokers sent", "rxkB": "brokers received"}
    net = net.assign(quantity=net.metric.map(ways), value=net.value * KIB / 1e6)
    return pd.concat([total, cpu, disk, net])[[*KEY, "quantity", "series", "unix_s", "value"]]


def _producers(windows: pd.DataFrame) -> pd.DataFrame:
    """Return the latencies that producers print for each window."""
    rows = windows[windows.printed_at_s.notna()]
    about = {"series": "producers", "unix_s": rows.printed_at_s.astype(float) - rows.length_s.fillna(0) / 2}
    parts = [
        rows[KEY].assign(**about, quantity=name, value=rows[column].astype(float))
        for name, column in (("latency, mean", "mean_latency_ms"), ("latency, largest", "max_latency_ms"))
    ]
    return pd.concat(parts)

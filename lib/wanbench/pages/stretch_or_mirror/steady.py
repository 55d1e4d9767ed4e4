"""Compare a stretched cluster with a mirrored pair by latency, and by traffic between regions, while nothing fails."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from wanbench.checks import check_choice, check_table
from wanbench.errors import MissingDataError
from wanbench.figures import primitives, theme
from wanbench.formatting import count
from wanbench.methods.cost import price
from wanbench.methods.lab.utilisation import KEY
from wanbench.methods.result import Estimate, RowsResult
from wanbench.methods.result.means import geometric_mean
from wanbench.methods.tails.distribution import decoded, summed

MEASURES = {
    "publish_p50_ms": ("median latency to the acknowledgement", "ms"),
    "publish_p99_ms": ("p99 latency to the acknowledgement", "ms"),
    "far_p50_ms": ("median end-to-end latency to a consumer in another region", "ms"),
    "far_p99_ms": ("p99 end-to-end latency to a consumer in another region", "ms"),
    "wan_bytes": ("bytes between regions per byte of payload", "bytes"),
}
KEPT_UP = 0.97  # of records that keep up, one round trip of 8 s is missing at most
METHOD = "geometric mean over trials, as the quantile of each trial; interval from Student's t on the logarithms"
ASSUMPTION = "Trials are independent"


@dataclass(frozen=True, repr=False)
class Steady(RowsResult):
    """Latency and traffic of each setting: `rows` has one row per trial, with the columns of `MEASURES`."""

    TITLE = "Latency and traffic between regions, by design"

    @property
    def settings(self) -> list[str]:
        """The names of the settings, in order."""
        return list(dict.fromkeys(self.rows.setting))

    def of(self, setting: str, measure: str) -> Estimate:
        """Estimate the geometric mean of a column of `MEASURES` over the trials of a setting."""
        label, unit = MEASURES[check_choice("measure", measure, MEASURES)]
        values = self.rows[measure][self.rows.setting == check_choice("setting", setting, self.settings)]
        about = {"quantity": f"{label}, {setting}", "claim": f"With “{setting}”, the {label} is {{}}", "unit": unit}
        return geometric_mean(values, 0.95, method=METHOD, assumption=ASSUMPTION, **about)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return tuple(self.of(name, measure) for measure in MEASURES for name in self.settings)

    @property
    def headline(self) -> str:
        parts = [
            f"“{name}” acknowledges after {self.of(name, 'publish_p50_ms').formatted} and sends "
            f"{self.of(name, 'wan_bytes').formatted} between regions"
            for name in self.settings
        ]
        return f"While nothing fails: {'; '.join(parts)} for each byte of payload."

    @property
    def sentence(self) -> str:
        parts = [
            f"“{name}” acknowledges after {self.of(name, 'publish_p50_ms').with_ends} and delivers to another "
            f"region after {self.of(name, 'far_p50_ms').with_ends} (medians), and sends "
            f"{self.of(name, 'wan_bytes').with_ends} between regions for each byte of payload"
            for name in self.settings
        ]
        paid = price("gcp", "egress between regions", region="North America")
        sent = {name: self.of(name, "wan_bytes").estimate for name in self.settings}
        costs = [f"{each * paid.low:.3f} to {each * paid.high:.2f} USD with “{name}”" for name, each in sent.items()]
        return ";\n".join(parts) + (
            f" (95 % intervals in brackets).\nAt list prices of {paid.low:g} to {paid.high:g} USD per "
            f"GB between regions, a GB of payload costs {', '.join(costs)}."
        )

    @property
    def cautions(self) -> tuple[str, ...]:
        """Warn of trials in which a queue grew, or the load generator fell behind, so that latencies include this."""
        late = {
            "the load generator was late": self.rows.fell_behind.astype(bool),
            f"fewer than {KEPT_UP:.0%} of the records due were acknowledged, so latencies are a queue's": self.rows.kept
            < KEPT_UP,
        }
        notes = [f"in {count(int(which.sum()), 'trial')} {why}" for why, which in late.items() if which.any()]
        return (*notes, *super().cautions)

    def formatted_table(self) -> pd.DataFrame:
        columns = {name: [self.of(name, key).with_ends for key in MEASURES] for name in self.settings}
        return pd.DataFrame({"": [label for label, _ in MEASURES.values()]} | columns)

    def figure(self) -> go.Figure:
        """Draw each design's median latency to the acknowledgement and to another region."""
        figure = go.Figure()
        for k, (measure, symbol) in enumerate((("publish_p50_ms", "circle"), ("far_p50_ms", "diamond"))):
            marker = {"size": 12, "symbol": symbol, "color": theme.SERIES_COLOURS[k]}
            own = [self.of(name, measure) for name in self.settings]
            primitives.estimate_points(figure, self.settings, own, marker=marker, name=MEASURES[measure][0])
        figure.update_yaxes(title="latency (ms)", rangemode="tozero")
        figure.update_layout(legend={"orientation": "h", "y": -0.2})
        return theme.finish(
            figure,
            name="latency-by-design",
            title=theme.headline("", "Latency of a stretched cluster and of a mirrored pair"),
            subtitle="Geometric mean of the trials' medians, with its 95 % interval.",
            alt=f"Median latencies by design. {self.sentence}",
            caption=str(self),
            table=self.rows,
        )


def steady(tables: Mapping[str, pd.DataFrame]) -> Steady:
    """
    Compute the columns of `MEASURES` for every completed trial, without its warm-up.

    The bytes that all links delivered, from the first to the last sample during the load, are divided by the payload
    that was acknowledged in the same time.
    """
    loads, histograms, samples, trials = (
        check_table(name, tables) for name in ("open_loop_loads", "open_loop_histograms", "link_samples", "trials")
    )
    loads = loads[loads.error.isna()].merge(trials[["run_id", "test_id", "setting", "block"]], on=["run_id", "test_id"])
    rows = []
    for _, load in loads.sort_values("setting", kind="stable").iterrows():
        own, sampled = (part[(part[KEY] == load[KEY].to_numpy()).all(axis=1)] for part in (histograms, samples))
        row = {name: load[name] for name in (*KEY, "setting", "block", "fell_behind")}
        row["kept"] = load.acknowledged_records_per_s / load.rate_records_per_s
        for what, name in (("publish", "publish"), ("end to end", "far")):
            values, counts = summed(map(decoded, own.histogram[(own.what == what) & ~own.warm_up]))
            shares = np.cumsum(counts) / counts.sum()
            row |= {f"{name}_p{round(100 * q)}_ms": values[np.searchsorted(shares, q)] / 1000 for q in (0.5, 0.99)}
        start_s = load.start_s + load.warmup_s
        within = sampled[sampled.at_s.between(start_s, start_s + load.duration_s)]
        ends = within.sort_values("at_s").groupby(["link_from", "link_to"])
        carried = (ends.bytes_delivered.last() - ends.bytes_delivered.first()).sum()
        spent_s = (ends.at_s.last() - ends.at_s.first()).mean()
        rows.append(row | {"wan_bytes": carried / (spent_s * load.acknowledged_records_per_s * load.record_bytes)})
    if not rows:
        raise MissingDataError("this run has no completed trial.")
    return Steady(pd.DataFrame(rows))

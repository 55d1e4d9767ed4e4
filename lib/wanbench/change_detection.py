"""
Detect a rise of each broker's latency online, with a one-sided CUSUM (Page 1954).

Each time window gives one value per broker: the median of the logarithms of its latencies. The values are standardised
by a baseline, which is the median and the MAD (median absolute deviation) of the values in the first `learn_s` seconds.
The CUSUM chart sums by how much the values exceed an allowance, is never below 0, and raises an alarm at its limit. One
window raises the chart by no more than a fraction of the limit, so a burst within one window raises no alarm.

The limit follows from the allowed rate of false alarms. A Markov chain (Brook & Evans 1972) gives the average run
length for independent normal values. Autocorrelated values are divided by sqrt((1 + phi) / (1 - phi)), where phi is the
lag-1 autocorrelation of the baseline (long-run variance, Johnson & Bagshaw 1974). The allowance is half of the shift
worth detecting (Moustakides 1986). Because the baseline is an estimate, the limit is computed for an allowance that is
two standard errors of the baseline's median smaller.

In simulations (`make validity`, data/validity/detection.csv), 0.5 false alarms an hour were allowed, so 61 % of hours
should have none. If latencies 0.1 s apart had an autocorrelation of at most 0.9, 95 to 100 % of hours had none. Two
baselines were too short: one of a minute at an autocorrelation of 0.99 (78 % of hours without a false alarm, 9 % with
more than four), and one of 20 windows in 10 s at 0.9 (16 % of hours with more than two). Stalls of several seconds, 20
times an hour, raise alarms because they are shifts: increase `least_windows` or `window_s` to ignore them. A level that
drifts over a day raises alarms too.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import cache
from math import floor, inf, isnan, log, sqrt
from statistics import median

import numpy as np
from scipy.stats import norm

from .checks import check_fields, refusal
from .formatting import number

FEWEST = 20  # minimum number of windows in a baseline: fewer cannot tell autocorrelation from chance
LONG_ENOUGH_S = 60.0  # a shorter baseline raised ten times the allowed false alarms in simulation
MOST_PHI = 0.9  # a larger autocorrelation cannot be learned from a baseline of minutes
# Minimum spread of logarithms, 2 %: a quieter baseline would raise alarms for irrelevant changes.
SMALLEST_SPREAD = 0.02
STATES = 80  # of the Markov chain: run lengths differ by a few per cent from those with 400 states


@dataclass(frozen=True)
class DetectorSettings:
    """
    Settings of a detector.

    Parameters
    ----------
    learn_s : float
        Time from a broker's first latency in which its baseline is learned; no alarm is raised in this time.
    window_s : float
        Length of a window; the latencies of a broker in one window become one value, their median.
    shift : float
        Smallest factor of a rise in latency that is worth an alarm.
    false_alarms_per_h : float
        Allowed rate of false alarms per broker.
    limit_ms : float
        Replaces any longer latency, so the caller need not wait longer than this for an acknowledgement.
    least_windows : int
        Minimum number of windows for an alarm: one window raises the chart by at most 1 / `least_windows` of its limit.

    Examples
    --------
    >>> DetectorSettings().windows_to_false_alarm
    7200.0
    """

    learn_s: float = LONG_ENOUGH_S
    window_s: float = 1.0
    shift: float = 2.0
    false_alarms_per_h: float = 0.5
    limit_ms: float = 1_000.0
    least_windows: int = 3

    def __post_init__(self):
        check_fields(
            self,
            ("window_s", 0.05, 60),
            ("learn_s", FEWEST * self.window_s, 86_400),
            ("shift", 1.05, 1_000),
            ("false_alarms_per_h", 0.001, 60),
            ("limit_ms", 1, 60_000),
        )
        check_fields(self, ("least_windows", 1, 1_000), whole=True)

    @property
    def cautions(self) -> tuple[str, ...]:
        """Return a caution if `learn_s` is too short to trust the alarms; otherwise ()."""
        if self.learn_s >= LONG_ENOUGH_S:
            return ()
        return (
            f"the detector learned its baseline from only {number(self.learn_s)} s of latencies; in simulations with "
            "autocorrelated or stepped latencies, a baseline of 10 s gave 5 to 17 false alarms an hour, and one of "
            f"{LONG_ENOUGH_S:g} s gave 0 to 0.7; the allowed rate was 0.5",
        )

    @property
    def windows_to_false_alarm(self) -> float:
        """Return the allowed average number of windows until a false alarm."""
        return 3600 / self.window_s / self.false_alarms_per_h


@dataclass(frozen=True)
class Baseline:
    """
    A broker's baseline, and the settings of the CUSUM chart that follow from it.

    `centre` and `spread` are the median and the scaled MAD of the values of `n` windows, which are logarithms of
    latency in ms; `phi` is their lag-1 autocorrelation. `allowance` and `limit` of the chart are in units of `spread`.
    """

    centre: float
    spread: float
    phi: float
    n: int
    allowance: float
    limit: float


@dataclass(frozen=True)
class Alarm:
    """
    A rise of one broker's latency.

    Attributes
    ----------
    at_s : float
        Time of the alarm, which is that of the first latency after the window that brought the chart to its limit.
    since_s : float
        Estimated start of the rise: the start of the window in which the chart left 0.
    statistic, limit : float
        Value and limit of the chart, in units of the baseline's spread.
    ratio : float
        Median latency since `since_s`, divided by the median latency of the baseline.
    n_alarmed : int
        Number of brokers in alarm, including this one: if all brokers are in alarm, a single broker is hardly the
        cause.
    """

    at_s: float
    broker: int
    statistic: float
    limit: float
    since_s: float
    ratio: float
    n_alarmed: int


@dataclass
class _Chart:
    first_s: float
    window: int = 0
    values: list[float] = field(default_factory=list)
    learned: list[float] = field(default_factory=list)
    baseline: Baseline | None = None
    statistic: float = 0.0
    since_s: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=1_000))
    alarmed: bool = False


class Detector:
    """
    Detect a rise of each broker's latency. Call `update` with every latency, in the order in which they become known.

    A broker stays in alarm until its chart returns to 0, and cannot raise another alarm before then.

    >>> detector = Detector(DetectorSettings(learn_s=30))
    >>> times = [n / 10 for n in range(600)]
    >>> alarms = [detector.update(at, 1, (10 + n % 7) * (3 if at > 45 else 1)) for n, at in enumerate(times)]
    >>> [alarm.broker for alarm in alarms if alarm], 45 < next(filter(None, alarms)).at_s < 50
    ([1], True)
    """

    def __init__(self, settings: DetectorSettings | None = None):
        self.settings = settings or DetectorSettings()
        self._charts: dict[int, _Chart] = {}

    def update(self, at_s: float, broker: int, value_ms: float) -> Alarm | None:
        """
        Add a broker's latency; return the alarm that it raises, or None.

        `at_s` is when the latency became known, in seconds of any clock that never goes back. `limit_ms` replaces a
        latency that is longer or infinite.
        """
        if isnan(value_ms):
            raise refusal("value_ms", value_ms, "a number, infinite for a latency beyond the limit")
        chart = self._charts.setdefault(broker, _Chart(at_s))
        window = floor((at_s - chart.first_s) / self.settings.window_s)
        alarm = None
        if window > chart.window and chart.values:
            alarm = self._close(broker, chart, at_s)
            chart.values = []
        chart.window = max(window, chart.window)
        chart.values.append(log(min(max(value_ms, 1e-3), self.settings.limit_ms)))
        return alarm

    def baseline(self, broker: int) -> Baseline | None:
        """Return a broker's baseline; None while it is being learned."""
        chart = self._charts.get(broker)
        return chart and chart.baseline

    def alarmed(self) -> list[int]:
        return [broker for broker, chart in self._charts.items() if chart.alarmed]

    def _close(self, broker: int, chart: _Chart, at_s: float) -> Alarm | None:
        value = median(chart.values)
        if chart.baseline is None:
            chart.learned.append(value)
            long_enough = (chart.window + 1) * self.settings.window_s >= self.settings.learn_s
            if long_enough and len(chart.learned) >= FEWEST:
                chart.baseline = learned(chart.learned, self.settings)
            return None
        base, before = chart.baseline, chart.statistic
        step = (value - base.centre) / base.spread - base.allowance
        most = base.limit / self.settings.least_windows
        chart.statistic = max(0.0, before + min(step, most))
        if before == 0:
            chart.since_s = chart.first_s + chart.window * self.settings.window_s
            chart.recent.clear()
        chart.recent.append(value)
        if chart.statistic == 0:
            chart.alarmed = False
        exceeded = chart.statistic >= base.limit * (1 - 1e-9)
        chart.statistic = min(chart.statistic, base.limit)
        if not exceeded or chart.alarmed:
            return None
        chart.alarmed = True
        ratio = float(np.exp(median(chart.recent) - base.centre))
        return Alarm(at_s, broker, chart.statistic, base.limit, chart.since_s, ratio, len(self.alarmed()))


def learned(values: list[float], settings: DetectorSettings) -> Baseline:
    """Compute the baseline from the `values` of windows, each the median of the logarithms of latencies in ms."""
    x = np.asarray(values, dtype=float)
    centre = float(np.median(x))
    spread = max(1.4826 * float(np.median(np.abs(x - centre))), SMALLEST_SPREAD)
    phi = autocorrelation(np.clip(x, centre - 3 * spread, centre + 3 * spread))
    long_run = sqrt((1 + phi) / (1 - phi))
    error = 1.2533 * long_run / sqrt(len(x))  # of a median of normal values, in spreads
    allowance = max(log(settings.shift) / spread / 2, 0.25 * long_run, 2 * error)
    scaled = (allowance - min(2 * error, allowance / 2)) / long_run
    limit = long_run * limit_for(round(scaled, 2), settings.windows_to_false_alarm)
    return Baseline(centre, spread, phi, len(x), allowance, limit)


def autocorrelation(x: np.ndarray) -> float:
    """
    Compute the lag-1 autocorrelation of a series, corrected for bias (Marriott & Pope 1954) and clipped to the range
    from 0 to `MOST_PHI`; 0 for a constant series.
    """
    n, centred = len(x), x - x.mean()
    if centred @ centred <= 1e-24 * max(float(x @ x), 1e-300):
        return 0.0
    r = float(centred[1:] @ centred[:-1] / (centred @ centred))
    return min(max((n * r + 1) / (n - 4), 0.0), MOST_PHI)


@cache
def limit_for(allowance: float, run_length: float) -> float:
    """
    Return the limit with which a chart of independent standard normal values raises a false alarm every `run_length`
    windows on average; at least 1.

    >>> round(limit_for(0.5, 938), 1)  # 5: Brook & Evans 1972
    5.0
    """
    low, high = 0.05, 60.0
    for _ in range(40):
        middle = (low + high) / 2
        if average_run_length(allowance, middle) < run_length:
            low = middle
        else:
            high = middle
    return max(high, 1.0)


def average_run_length(allowance: float, limit: float, shift: float = 0.0) -> float:
    """
    Compute the average number of windows until a chart that starts at 0 exceeds its limit.

    Values are independent and normal, with mean `shift` and variance 1; the chart is approximated by a Markov chain
    with `STATES` states (Brook & Evans 1972). In a `Detector`, runs are longer, because it limits the effect of a
    single window.
    """
    width = 2 * limit / (2 * STATES - 1)
    centres = np.arange(STATES) * width
    upper = norm.cdf(centres[None, :] + width / 2 - (centres + shift - allowance)[:, None])
    moves = np.diff(upper, axis=1, prepend=0.0)
    try:
        runs = np.linalg.solve(np.eye(STATES) - moves, np.ones(STATES))
    except np.linalg.LinAlgError:
        return inf
    return float(runs[0]) if 0 < runs[0] < 1e12 else inf

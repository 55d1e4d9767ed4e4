"""What figures hold and say, not their pixels."""

import io
import itertools
import re

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
import pytest
from simulations import simulated_surveys

from wanbench.errors import ParameterError
from wanbench.figures import theme
from wanbench.methods.distance import inflation, straight_lines
from wanbench.methods.lab import Verdicts, link_verdicts
from wanbench.methods.tcp import window_fit
from wanbench.pages.lab_calibration.cut_figure import cut_timeline

PAIRS = simulated_surveys.survey(12, seed=1, region_ms=4, region_log_sd=0.1)
A, B = "aws:region-000", "azure:region-001"


def links():
    settings = {"delay_ms": 40.0, "jitter_ms": 0.0, "loss": 0.01, "rate_bps": 100e6}
    rows = [{"run_id": "r", "from_region": a, "to_region": b} | settings for a, b in ((A, B), (B, A))]
    return pd.DataFrame(rows)


def echoes():
    """Echoes every 20 ms from 1000 s; nothing comes back from 1004 to 1008 s."""
    sent = 1000 + np.arange(0, 12, 0.02)
    got = (sent < 1004) | (sent >= 1008)
    columns = {
        "run_id": "r",
        "from_region": A,
        "to_region": B,
        "sequence": np.arange(len(sent)),
        "received_at_s": np.where(got, sent + 0.04, np.nan),
        "rtt_ms": np.where(got, 80.5, np.nan),
        "lost": ~got,
        "duplicate": False,
    }
    return pd.DataFrame(columns)


def cuts(healed_at_s=1008.0):
    columns = {"run_id": "r", "from_region": A, "to_region": B, "cut_at_s": 1004.0, "healed_at_s": healed_at_s}
    return pd.DataFrame([columns])


def calibration():
    frame = echoes()
    alive = frame[~frame.lost]
    return Verdicts.join(
        link_verdicts.rtt(alive, links()),
        link_verdicts.loss(frame, links()),
        link_verdicts.jitter(alive, links()),
        link_verdicts.cut(frame, cuts()),
    )


MAKERS = {
    "rtt-against-distance": lambda: straight_lines.fit_rtt(PAIRS).figure(),
    "throughput-against-distance": lambda: straight_lines.fit_throughput(PAIRS).figure(),
    "throughput-against-rtt": lambda: window_fit.fit_window(PAIRS, resamples=40).figure(),
    "path-inflation": lambda: inflation.path_inflation(PAIRS, resamples=40).figure(),
    "requested-against-delivered": lambda: calibration().figure(),
    "cut-timeline": lambda: cut_timeline(echoes(), cuts()),
}


@pytest.fixture(scope="module")
def made():
    return {name: make() for name, make in MAKERS.items()}


@pytest.mark.parametrize("name", MAKERS)
def test_every_figure_carries_name_alt_caption_and_numbers(made, name):
    meta = made[name].layout.meta
    assert set(meta) == {"name", "alt", "caption", "csv"}
    assert meta["name"] == name
    assert 40 < len(meta["alt"]) <= 250 and meta["caption"].endswith(".")
    table = pd.read_csv(io.StringIO(meta["csv"]))
    assert len(table) and "nan" not in meta["csv"] and "inf," not in meta["csv"]
    for message in (meta["alt"], meta["caption"]):
        assert "nan" not in message.lower().split() and "None" not in message.split()


@pytest.mark.parametrize("name", MAKERS)
def test_every_figure_has_the_template_a_title_and_an_honest_subtitle(made, name):
    figure = made[name]
    assert figure.layout.template == pio.templates[theme.NAME]
    assert figure.layout.template.layout.font.family.startswith("DejaVu Sans")
    subtitle = figure.layout.title.subtitle.text
    assert 0 < len(figure.layout.title.text) <= theme.TITLE_CHARACTERS and subtitle
    logarithmic = "log" in {axis.type for axis in figure.select_yaxes()}
    assert not logarithmic or "logarithmic" in subtitle
    assert len(figure.to_json()) < 400_000


@pytest.mark.parametrize("name", MAKERS)
def test_the_same_input_gives_the_same_figure(made, name):
    assert MAKERS[name]().to_json() == made[name].to_json()


def test_titles_say_what_was_found(made):
    assert re.match(r"Throughput halves every [\d,]+ km", made["throughput-against-distance"].layout.title.text)
    assert re.match(r"RTT grows by [\d.]+ ms per 1,000 km", made["rtt-against-distance"].layout.title.text)


def test_a_sentence_that_is_too_long_for_a_title_is_replaced():
    assert theme.headline("p99 is 4.5 ms (95 % interval 4 to 5; n = 3).", "p99") == "p99 is 4.5 ms"
    assert theme.headline("leader reads: 4 ms. More.", "reads") == "Leader reads: 4 ms"
    assert theme.headline("It " + "goes on " * 20, "reads") == "reads"


def test_every_figure_takes_a_title_and_a_theme():
    draw = inflation.path_inflation(PAIRS, resamples=40).figure
    dark = draw(title="My <title>", theme="dark")
    assert dark.layout.title.text == "My &lt;title&gt;"
    assert dark.layout.template.layout.paper_bgcolor == "rgb(20, 24, 29)" and theme.TEXT not in dark.to_json()
    other = draw(theme="plotly_dark")
    assert other.layout.template == pio.templates["plotly_dark"] and theme.TEXT not in other.to_json()
    assert draw(theme="light") == draw()
    with pytest.raises(ParameterError, match="theme is 'pink'; allowed: light, dark, ggplot2"):
        draw(theme="pink")


def test_long_alt_texts_end_with_a_sentence():
    assert theme.shortened("A map. " + "One sentence more. " * 30).endswith("One sentence more.")
    assert len(theme.shortened("word " * 90)) <= theme.ALT_CHARACTERS


def trace_of(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_every_pair_is_drawn_once_over_the_light_floor(made):
    figure = made["rtt-against-distance"]
    points = [trace for trace in figure.data if trace.mode == "markers"]
    assert sum(len(trace.x) for trace in points) == 66
    floor = trace_of(figure, "light in fibre")
    assert floor.y[1] / floor.x[1] == pytest.approx(2 * 1.468 / 299.792458)
    table = pd.read_csv(io.StringIO(figure.layout.meta["csv"]))
    assert len(table) == 66 and {"distance_km", "rtt_ms", "cloud_pair"} <= set(table)
    line, fit = trace_of(figure, "least squares"), straight_lines.fit_rtt(PAIRS)
    assert line.y[-1] == pytest.approx(fit.intercept.estimate + fit.slope.estimate * line.x[-1] / 1000)
    assert "95 % interval, with places as independent units" in figure.layout.title.subtitle.text.replace("<br>", " ")


def test_a_note_is_added_to_subtitle_and_caption():
    layout = straight_lines.fit_rtt(PAIRS).figure(note="A check & more.").layout
    assert "A check &amp; more." in layout.title.subtitle.text.replace("<br>", " ")
    assert layout.meta["caption"].endswith("A check & more.")


def test_rows_left_out_are_said_in_the_caption():
    caption = straight_lines.fit_rtt(PAIRS.assign(rtt_ms=PAIRS.rtt_ms.where(PAIRS.index > 4))).figure().layout.meta
    assert "5 rows of the table of pairs left out (5 without rtt_ms)" in caption["caption"]


def test_a_fit_without_interval_draws_no_band():
    few = simulated_surveys.survey(4, seed=1)
    figure = straight_lines.fit_rtt(few).figure()
    assert not [trace for trace in figure.data if trace.fill]


def test_an_unidentified_limit_is_said_and_not_drawn():
    pairs = simulated_surveys.survey(10, seed=2, capacity_bps=1e12)
    figure = window_fit.fit_window(pairs, resamples=40).figure()
    assert "C is not identified" in figure.layout.title.subtitle.text.replace("<br>", " ")
    assert "C" not in [trace.name for trace in figure.data]


def test_too_few_regions_for_an_interval_are_named():
    pairs = simulated_surveys.survey(8, seed=3)
    figure = inflation.path_inflation(pairs, resamples=40).figure()
    assert "Too few regions for an interval: " in figure.layout.meta["caption"]
    assert "within Google Cloud" in figure.layout.meta["caption"]


def test_calibration_has_a_row_per_quantity_and_the_limits(made):
    figure = made["requested-against-delivered"]
    labels = " ".join(figure.layout.yaxis.ticktext).replace("<br>", " ").replace("\xa0", " ")
    assert len(figure.layout.yaxis.ticktext) == 4 and "round-trip time (1 ms + 1 %)" in labels
    assert figure.data[0].fill == "toself" and sum(len(trace.x) for trace in figure.data[1:]) == 4
    with pytest.raises(ParameterError, match="no verdicts to draw"):
        Verdicts.of([]).figure()


def test_the_timeline_places_lost_echoes_by_their_number(made):
    lost = trace_of(made["cut-timeline"], "lost")
    assert len(lost.x) == 200
    assert min(lost.x) == pytest.approx(0.04, abs=0.03) and max(lost.x) == pytest.approx(4.02, abs=0.03)
    assert "20 ms" in made["cut-timeline"].layout.meta["caption"]
    endless = cut_timeline(echoes(), cuts(np.nan))
    assert len(trace_of(endless, "lost").x) == 200
    with pytest.raises(ParameterError, match="no cut"):
        cut_timeline(echoes(), cuts().head(0))


def test_a_name_that_is_not_a_file_name_is_refused():
    with pytest.raises(ParameterError, match="name is 'A b'; allowed: lower-case letters"):
        theme.finish(go.Figure(), name="A b", title="", subtitle="", alt="", caption="", table=PAIRS)


@pytest.mark.parametrize("values", [[], [np.nan], [0.0, -1.0], [5.0], [1e6, 1e6], [1e-3, 1e9]])
def test_log_axes_of_odd_values(values):
    axis = theme.log_axis(values, "bit/s")
    assert axis["type"] == "log"
    assert len(axis.get("tickvals", [])) == len(axis.get("ticktext", [])) <= 14


def linear(colour):
    value = np.array([int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def in_lab(rgb):
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ rgb
    f = np.cbrt(np.maximum(xyz / [0.9505, 1.0, 1.089], 0.008856))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


SEEN = {
    "all colours": np.eye(3),
    "no green cones": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "no red cones": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no blue cones": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("eye", SEEN)
def test_colours_differ_to_every_eye(eye):
    """Machado, Oliveira & Fernandes 2009 for the eye; CIE76 difference of at least 15."""
    colours = sorted(set(theme.COLOURS.values()))
    seen = {colour: in_lab(np.clip(np.array(SEEN[eye]) @ linear(colour), 0, 1)) for colour in colours}
    for one, other in itertools.combinations(colours, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= 15, (one, other)


def test_text_of_the_numbers_that_a_spreadsheet_would_compute_is_quoted():
    rows = {"who": ["=1+1", "+a", "-b", "@c", "", "-5", "a=b", None], "ms": [-1.5, 2, 3, 4, 5, 6, 7, 8]}
    lines = theme.numbers(pd.DataFrame(rows).rename(columns={"who": "=who"})).splitlines()
    assert lines == ["'=who,ms", "'=1+1,-1.5", "'+a,2", "'-b,3", "'@c,4", ",5", "-5,6", "a=b,7", ",8"]
    as_categories = pd.DataFrame(rows).astype({"who": "category"})
    assert theme.numbers(as_categories).splitlines()[1:] == lines[1:]


def test_each_of_six_settings_has_its_own_mark_and_arms_keep_theirs():
    names = [f"setting {n}" for n in range(6)]
    assert len(set(theme.arm_marks(names).values())) == 6
    marks = theme.arm_marks(["a", "private", "b", "internet"])
    assert marks["internet"] == theme.ARMS["internet"] and len(set(marks.values())) == len(marks) == 4

"""The project's own pages, made from the committed recordings, and what is true of those recordings."""

import json

import numpy as np
import pytest
from bs4 import BeautifulSoup

import wanbench
from wanbench.folders import root, samples_folder
from wanbench.methods import fit_rtt, fit_window
from wanbench.methods.trials.limits import limits
from wanbench.methods.trials.rates import trial_rates
from wanbench.pages.private_vs_internet import compare_links, rtt_table
from wanbench.publish.jobs import Job
from wanbench.publish.notebooks import notebook_paths, read_notebook
from wanbench.publish.parameters import declared_parameters
from wanbench.publish.pictures import browser
from wanbench.publish.site import Site, publish
from wanbench.read.ingest.run import tables_folder
from wanbench.runs import Run

pytestmark = pytest.mark.browser

RECORDINGS = sorted(samples_folder().glob("raw/*/*/"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    jobs = []
    for notebook in notebook_paths(root()):
        given = {} if notebook.stem.startswith("00") else preset(notebook.stem)
        declared = declared_parameters(read_notebook(notebook), notebook.name)
        measures = "lab" in declared
        given |= {"lab": "samples"} if measures else {}
        given |= {"resamples": 200} if "resamples" in declared else {}  # pages are looked at here, not numbers
        replayed = measures or notebook.stem.startswith("00")
        jobs.append(Job(notebook, given, replay_reason="a test" if replayed else None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wanbench.publish.pictures.SIZES_PX", {(800, 450): ("svg",)})  # what pages show
        patch.setenv("WANBENCH_DATA", str(folder / "data"))
        made = Site(root(), folder / "site", folder / "build", folder / "data/findings")
        records = publish(jobs, made)
    return folder, made, records


def preset(name):
    from wanbench.publish.parameters import find_preset, read_parameters

    path = find_preset(name, "quick", root())
    return read_parameters(path) if path else {}


def test_every_page_is_published(site):
    _, _, records = site
    assert {record.name: record.reason for record in records if record.outcome != "published"} == {}
    assert len(records) >= 3


def test_no_page_is_larger_than_a_megabyte(site):
    _, made, _ = site
    paths = [*made.folder.glob("*.html"), made.folder / "assets/search-index.js"]
    assert {path.name: path.stat().st_size for path in paths if path.stat().st_size > 1_000_000} == {}


def test_a_page_shows_at_most_3000_words_and_8_tables_outside_folds(site):
    found = {}
    for record in site[2]:
        page = BeautifulSoup((site[1].folder / f"{record.name}.html").read_text(), "html.parser")
        for hidden in page.select("script, style, [hidden], .unseen, details:not([open]) > :not(summary)"):
            hidden.decompose()
        found[record.name] = len(page.body.get_text(" ").split()), len(page.select("table"))
    ledger = found.pop("11-published-claims")  # lists every claim
    assert ledger[1] and {name: counts for name, counts in found.items() if counts[0] > 3000 or counts[1] > 8} == {}


def test_pages_say_that_they_are_replayed(site):
    _, made, records = site
    replayed = {
        record.name
        for record in records
        if "Replayed from the committed recording" in (made.folder / f"{record.name}.html").read_text()
    }
    assert replayed == {
        "00-tour",
        "01-lab-calibration",
        "02-intercloud-throughput",
        "05-private-vs-internet",
        "06-geo-kafka",
        "07-region-loss",
        "08-tail-latency",
        "09-rolling-and-degraded",
        "10-price-performance",
        "13-compression-levels",
        "15-congestion-control",
        "16-stretch-or-mirror",
    }


def test_findings_stand_on_the_front_page(site):
    folder, made, _ = site
    found = [json.loads(path.read_text()) for path in (folder / "data" / "findings").glob("*/*.json")]
    front = (made.folder / "index.html").read_text()
    assert {each["page"] for each in found} == {record.name for record in site[2]}
    assert all(each["name"] and each["sentence"] for each in found)
    assert front.count("<tr>") >= len(found)


def test_the_answer_from_emulated_links_names_their_settings(site):
    found = [json.loads(path.read_text()) for path in (site[0] / "data" / "findings").glob("02-*/*.json")]
    (answer,) = [each["sentence"] for each in found if each["answer"]]
    assert answer.startswith("On an emulated network") and "not on real clouds" in answer
    assert "50 Mbit/s links, 256 KiB buffers, delays 1.5 times those of light in fibre" in answer


def test_the_cheapest_of_emulated_sizes_is_said_with_how_they_are_priced(site):
    found = json.loads((site[0] / "data/findings/10-price-performance/price-cost.json").read_text())
    assert "if only processors have a price and more network rate costs nothing" in found["sentence"]


def test_rtt_is_called_a_check_of_the_pipeline(site):
    text = (site[1].folder / "02-intercloud-throughput.html").read_text()
    assert "the RTTs only check the pipeline" in text


@pytest.mark.skipif(browser() is None, reason="no Chromium on this machine")
def test_pages_have_no_fault_in_a_browser_without_a_network(site):
    pytest.importorskip("playwright.sync_api")
    from test_site_browser import NARROW, faults_of_site, offline_browser

    with offline_browser(NARROW) as context:
        assert faults_of_site(context, *site[1].folder.glob("*.html")) == []


@pytest.fixture(scope="module")
def table(site):
    """A table of a recording, by its run folder and its name: as the pages wrote it, if they did."""

    def read(folder, name):
        run = Run.open(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("WANBENCH_DATA", str(site[0] / "data"))
            written = tables_folder(run.campaign, run.run_id)
        if not (written / "ingested.json").is_file():  # which is written last
            wanbench.read.ingest.tabulate(folder, written)
        return wanbench.tables.read(name, written)

    return read


def test_the_price_at_the_tuned_rate_has_the_bytes_of_the_tuned_trials(site, table):
    (folder,) = (each for each in RECORDINGS if each.parent.name == "geo-kafka")
    samples = table(folder, "link_samples")
    tuned = table(folder, "trials").query("setting == 'tuned'").test_id
    own = samples[samples.test_id.isin(tuned)]
    counted = own.groupby(["test_id", "link_from", "link_to"]).bytes_delivered.agg(np.ptp).groupby("test_id").sum()
    batches = table(folder, "batches")
    records = batches[batches.test_id.isin(tuned)].groupby("test_id").records.sum()
    usd_per_million = (counted / records).mean() * 1e6 / 1e9 * 0.01
    cost = json.loads((site[0] / "data/findings/06-geo-kafka/geo-cost.json").read_text())
    assert usd_per_million < cost["estimate"] == pytest.approx(usd_per_million, rel=0.1)


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.parent.name)
def test_recordings_are_whole_and_plausible(folder, table):
    run = Run.open(folder)
    assert run.finished
    run.verify()
    assert wanbench.runs.overlaps(run).empty
    assert table(folder, "unread").empty
    flags = table(folder, "flags")
    assert flags.empty, flags.found.iloc[0]


def test_the_recorded_survey_gives_back_what_the_links_were_given():
    run = wanbench.runs.find(samples_folder(), "survey-quick")[-1]
    pairs = wanbench.read.ingest.summarise_pairs(wanbench.read.ingest.read_run(run.folder))
    slope = fit_rtt(pairs, resamples=200).slope.estimate
    given = run.parameters["path_inflation"] * wanbench.regions.light_rtt_ms(1000.0)
    assert slope == pytest.approx(given, rel=0.01)
    window = fit_window(pairs, resamples=200)
    payload_share = 1448 / 1500
    assert window.capacity.estimate == pytest.approx(run.parameters["rate_bps"] * payload_share, rel=0.05)


def test_the_recorded_trials_give_back_what_the_paths_were_given(site, table):
    run = wanbench.runs.find(samples_folder(), "private-vs-internet")[-1]
    table(run.folder, "flags")
    [written] = (site[0] / "data" / "tables").glob(f"campaign={run.campaign}/*/run={run.run_id}")
    tables = {path.stem: wanbench.tables.read(path.stem, written) for path in written.glob("*.parquet")}
    rtts = rtt_table(tables)
    assert rtts.numbers["internet", "mean"].estimate == pytest.approx(132.9, rel=0.1)
    assert rtts.numbers["private", "mean"].estimate == pytest.approx(62.5, rel=0.1)
    rates = trial_rates(tables)
    assert rates.left_out.empty and len(rates.rates) == 29
    ratio = compare_links(rates.of("internet", "private").at(rate_bps=5e7)).ratio
    assert 1 < ratio.low < ratio.estimate < 132.9 / 62.5 * 1.2
    found = limits(rates.of("internet", "private"), brokers=3)
    assert (found.trials.reached < 1).all() and "more than the window allows" not in str(found)

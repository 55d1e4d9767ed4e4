"""
The command line of wanbench.

Apart from the notebooks, only this module and `doctor` may import both the code that measures and the code that
analyses. They import it inside the functions that need it, so that other commands start fast.
"""

import argparse
import hashlib
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from . import __version__
from .checks import SECRETS, refusal
from .errors import ParameterError, WanbenchError
from .folders import data_folder, root, scratch_folder

if TYPE_CHECKING:
    from .publish.jobs import Job
    from .publish.site import Site

DEFAULT_PRESET = "quick"
SHOWN_COMPARISONS = 30  # Comparisons that `compare` prints; its files have all.


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command and return its exit status.

    0: success. 1: a page failed, a requirement is missing, or `compare` found a change. 2: the command could not run.
    3: `compare --strict` left something undecided. 129, 130, 143: ended by SIGHUP (the terminal was closed), by Ctrl-C,
    by SIGTERM.
    """
    # jsonschema would build its unused grammar for seconds
    sys.modules.setdefault("rfc3987_syntax", None)  # pyright: ignore[reportArgumentType]  # None forbids the import
    arguments = parser().parse_args(argv)
    terminated = []

    def on_signal(number: int, frame: object) -> None:
        terminated.append(number)
        signal.raise_signal(signal.SIGINT)

    # Signals that are ignored already, for example under nohup, stay ignored.
    handled = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, on_signal) for number in handled}
    try:
        return arguments.command(arguments)
    except (WanbenchError, OSError) as error:
        print("wanbench:", SECRETS.sub(r"\1…", str(error)), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        with suppress(OSError):  # the terminal may be gone
            print(
                "\nwanbench: interrupted. The measurements are kept; repeat the command to continue.", file=sys.stderr
            )
        return 128 + terminated[0] if terminated else 130
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands and their options."""
    top = argparse.ArgumentParser(
        prog="wanbench", description="Repeats, audits and extends published claims about the network between clouds."
    )
    top.add_argument("--version", action="version", version=f"wanbench {__version__}")
    top.set_defaults(command=lambda arguments: top.print_help() or 2)

    commands = top.add_subparsers(title="commands", metavar="command")

    def command(name: str, run: Callable[..., int], text: str, **settings: bool) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        made.set_defaults(command=run, **settings)
        return made

    def flag(command: argparse._ActionsContainer, name: str, text: str) -> None:  # pyright: ignore[reportPrivateUsage]
        command.add_argument(f"--{name}", action="store_true", help=text)

    report = command("report", report_command, "run notebooks with a preset and publish the site")
    report.add_argument("notebook", nargs="*", help="name, any unambiguous part of a name, or path (default: all)")
    report.add_argument("--preset", default=DEFAULT_PRESET, help="in papermill-params/<notebook>/ (default: quick)")
    flag(report, "measure", "measure every page, even those that a report of all pages normally replays")
    flag(report, "again", "rebuild all pages, even if their data, parameters and code have not changed")

    run = command("run", run_command, "run one notebook with your own parameters; its page goes to data/scratch")
    run.add_argument("notebook", help="name, any unambiguous part of a name, or path")
    flag(run, "publish", "put its page and findings on the site, replacing the usual ones")
    flag(run, "dry", "show the plan and what rented hosts would cost, and measure nothing")

    resumes = "run notebooks with many sets of parameters; the same command resumes"
    batch = command("batch", batch_command, resumes, fresh=False, retry_failed=False)
    many = {"action": "append", "default": []}
    batch.add_argument("what", nargs="+", metavar="NOTEBOOK|FILE.yml", help="notebooks, or one batch file")
    batch.add_argument("--sweep", **many, metavar="NAME=VALUES", help="such as seed=1..5 or loss=0,0.01")
    batch.add_argument("-j", "--processes", type=int, metavar="N", help="how many analysing jobs at a time")
    batch.add_argument("--name", help="of the batch's folder (default: of the file, or of notebooks and parameters)")
    batch.add_argument("--cluster", metavar="ADDRESS", help="run on this Dask scheduler, such as tcp://10.0.0.1:8786")
    batch.add_argument("--to", metavar="ADDRESS", help="keep the batch in a bucket, such as s3://bucket/prefix")
    flag(batch, "retry", "also run jobs again that have failed three times")
    flag(batch, "replay", "use the committed recordings instead of measuring")
    flag(batch, "yes", "accept the cost of rented hosts without being asked")

    for one in (run, batch):
        one.add_argument("-f", "--file", type=Path, **many, metavar="PRESET.yml", help="YAML file with parameters")
        one.add_argument("-p", "--parameter", **many, metavar="NAME=VALUE", help="set one parameter")

    once = "measure one repetition of a campaign, or print its schedule"
    repeated = command("campaign", campaign_command, once, fresh=True, retry_failed=False)
    repeated.add_argument("file", type=Path, metavar="FILE.yml", help="campaign, notebook, every, parameters")
    schedules = ("systemd", "cron")
    repeated.add_argument("--schedule", choices=schedules, help="measure nothing; print what repeats the campaign")
    flag(repeated, "now", "measure even if the last repetition began less than half a period ago")
    flag(repeated, "yes", "accept the cost of rented hosts without being asked")

    for measuring in (report, run):
        flag(measuring, "yes", "accept the cost of rented hosts without being asked; the plan still shows it first")
        again = measuring.add_mutually_exclusive_group()
        flag(again, "replay", "use the committed recording instead of measuring")
        flag(again, "fresh", "start new runs, even if finished or interrupted runs with these parameters exist")
        flag(again, "retry-failed", "reopen finished runs and repeat their failed tests")

    sweep = command("sweep", sweep_command, "find and delete resources that killed runs left on clouds")
    sweep.add_argument("cloud", nargs="*", help="such as aws, in all its regions (default: all with credentials)")
    flag(sweep, "yes", "delete without asking")
    flag(sweep, "all", "also delete unexpired resources, which another machine may still be using")

    bucket = command("bucket", bucket_command, "upload a finished run or the site to an S3 bucket, or download it")
    bucket.add_argument("verb", choices=("put", "get"))
    bucket.add_argument("source", help="the folder to put, or the s3://bucket/prefix to get")
    bucket.add_argument("target", help="an s3://bucket/prefix to put to, or a new folder to get into")

    deposit = command("deposit", deposit_command, "copy a finished run for an archive, described by an RO-Crate")
    deposit.add_argument("run", type=Path, metavar="RUN_FOLDER", help="the folder of a finished run")
    deposit.add_argument("target", type=Path, metavar="TARGET", help="a new folder")
    deposit.add_argument("--licence", metavar="ADDRESS", help="of the data (default: Apache-2.0)")

    thin = command("thin", thin_command, "replace old raw files of ping by counts, which keep every quantile")
    thin.add_argument("run", metavar="RUN_FOLDER|CAMPAIGN", help="a run, or all runs of a campaign in the data folder")
    thin.add_argument("--older-than", default="30d", metavar="AGE", help="age of runs, such as 12h (default: 30d)")
    flag(thin, "yes", "replace without asking")

    claims = command("claims", claims_command, "audit an article of your own: check its claims against its numbers")
    claims.add_argument("verb", choices=("check",))
    claims.add_argument("file", type=Path, metavar="FILE.yml", help="claims and formulas; see docs/own-claims.md")

    compare = command("compare", compare_command, "tell what changed beyond noise between two runs")
    compare.description = (
        "Compare B with A. Each is a run folder, a folder of findings, a run id, a campaign, or CAMPAIGN@DATE. The "
        "exit status is 0 if nothing changed, 1 if something changed beyond noise and margin, 2 if nothing could be "
        "compared, and with --strict 3 if nothing changed but something is undecided. See docs/compare.md."
    )
    compare.add_argument("a", metavar="A")
    compare.add_argument("b", metavar="B")
    compare.add_argument("--margin", type=float, default=0.05, help="share of change that does not matter (0.05)")
    flag(compare, "strict", "exit with 3 if nothing changed but something is undecided")
    for name, what in (("json", "all numbers"), ("junit", "a test per comparison"), ("page", "a page with a figure")):
        compare.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"write {what}")

    figure = command("figure", figure_command, "draw a figure of a page for a blog, an article or a talk")
    figure.description = (
        "Draw a figure from the page's executed notebook, with a line that says where its numbers come from. HTML is a "
        "snippet to put into a page of your own; it loads plotly.min.js, which is written beside it."
    )
    figure.add_argument("figure", metavar="PAGE/NAME", help="such as 02/throughput-against-distance")
    sizes = "blog: 1200x675 (default), wide: 1600x600, square: 1080x1080, slide: 1920x1080"
    figure.add_argument("--size", default="blog", choices=("blog", "wide", "square", "slide"), help=sizes)
    figure.add_argument("--format", default="svg", choices=("svg", "png", "pdf", "html"), help="default: svg")
    figure.add_argument("--title", help="instead of the figure's own title")
    figure.add_argument("--theme", default="light", choices=("light", "dark"), help="default: light")
    figure.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: NAME-SIZE.FORMAT in this folder")

    command("list", list_command, "list notebooks with their presets, and runs that were measured")

    doctor = command("doctor", doctor_command, "list what is missing on this machine, and how to install it")
    doctor.add_argument("--inventory", type=Path, metavar="FILE", help="check hosts of an inventory (docs/hosts.md)")
    return top


def report_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench report`: publish the chosen notebooks with one preset; return 1 if a page failed."""
    from .publish.jobs import Job, located, recorded
    from .publish.notebooks import find_notebook, notebook_paths
    from .publish.parameters import find_preset, read_parameters

    if arguments.replay and arguments.measure:
        raise ParameterError("--replay and --measure exclude each other; give one of them.")
    _set_environment(arguments)
    top, jobs = root(), []
    for notebook in [find_notebook(name, top) for name in arguments.notebook] or notebook_paths(top):
        preset = find_preset(notebook.stem, arguments.preset, top)
        source = str(preset.relative_to(top)) if preset else ""
        given = located(notebook, read_parameters(preset), source) if preset else {}
        jobs.append(Job(notebook, given, source))
    if not (arguments.notebook or arguments.measure):
        jobs = [recorded(job) for job in jobs]
    return _publish(jobs, arguments.replay, arguments.again or arguments.fresh or arguments.retry_failed)


def run_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench run`: publish one notebook; parameters given on the command line override those of files."""
    from .publish.jobs import Job, dry_run, located, own_parameters
    from .publish.notebooks import find_notebook
    from .publish.parameters import check_notebook
    from .publish.site import Site

    _set_environment(arguments)
    notebook = find_notebook(arguments.notebook, root())
    given = _given(arguments, notebook)
    source, remark = ", ".join(map(str, arguments.file)), own_parameters(notebook, given, DEFAULT_PRESET)
    given = located(notebook, given, source)
    if arguments.dry:
        dry_run(notebook, check_notebook(notebook, given, source))
    site = Site.of(root()) if arguments.publish else Site.scratch(root(), notebook, given)
    return _publish([Job(notebook, given, source, remark=remark)], arguments.replay, site=site)


def _given(arguments: argparse.Namespace, notebook: Path, swept: Iterable[str] = ()) -> dict[str, object]:
    from .publish.jobs import declared
    from .publish.parameters import parse_assignment, read_parameters

    given = {name: value for file in arguments.file for name, value in read_parameters(file).items()}
    typed = [parse_assignment(text, declared(notebook)) for text in arguments.parameter]
    names = [*(name for name, _ in typed), *swept]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ParameterError(f"parameter {twice[0]!r} is given twice on the command line.")
    return given | dict(typed)


def batch_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench batch`: run the jobs of a batch that are not done; return 1 if a job failed."""
    from .doctor import why_not_here
    from .publish.batch import BatchJob, batch_folder, run_batch
    from .publish.batch_file import parse_sweep, read_batch
    from .publish.jobs import SAMPLES, Job, declared, located, measured_or_replayed, own_parameters
    from .publish.notebooks import find_notebook
    from .publish.parameters import check_notebook

    _set_environment(arguments)
    first = Path(arguments.what[0])
    if is_file := first.suffix in (".yml", ".yaml"):
        if len(arguments.what) > 1 or arguments.sweep or arguments.file or arguments.parameter:
            raise ParameterError(f"a batch file, such as {first}, names notebooks and parameters itself.")
        entries = [(find_notebook(name, root()), given, sweep) for name, given, sweep in read_batch(first)]
    else:
        entries = []
        for notebook in [find_notebook(name, root()) for name in arguments.what]:
            sweeps = [parse_sweep(text, declared(notebook)) for text in arguments.sweep]
            entries.append((notebook, _given(arguments, notebook, [name for name, _ in sweeps]), dict(sweeps)))
    source = str(first) if is_file else ", ".join(map(str, arguments.file))
    jobs, folder = [], batch_folder(arguments.name or (first.stem if is_file else _batch_name(entries)))
    to = f"{arguments.to.rstrip('/')}/{folder.name}" if arguments.to else ""
    for notebook, fixed, sweep in entries:
        for values in product(*sweep.values()):
            swept = dict(zip(sweep, values, strict=True))
            given = located(notebook, fixed | swept, source)
            check_notebook(notebook, given, source)
            job = Job(notebook, given, source, remark=own_parameters(notebook, given, DEFAULT_PRESET))
            if arguments.replay or not arguments.cluster or job.lab == SAMPLES:
                job = measured_or_replayed(job, arguments.replay, why_not_here)
            jobs.append(BatchJob(job, folder, root(), measures=job.lab not in (None, SAMPLES), varied=swept, to=to))
    if to:
        from .publish.batch_bucket import run_in_bucket as run_batch
    states = run_batch(jobs, arguments.processes, arguments.cluster, arguments.retry)
    failed = sum(state.state == "failed" for state in states)
    print(f"\n{len(states) - failed} of {len(states)} jobs done, {failed} failed. Open {to or folder}/index.html")
    return 1 if failed else 0


def _batch_name(entries: Sequence[tuple[Path, Mapping[str, object], Mapping[str, object]]]) -> str:
    """Name a batch after its notebooks, its swept parameters and a hash of its fixed parameters."""
    fixed = repr([(notebook.stem, sorted(given.items())) for notebook, given, _ in entries])
    numbers = [notebook.stem.partition("-")[0] for notebook, *_ in entries]
    return "-".join([*numbers, *entries[0][2], hashlib.sha256(fixed.encode()).hexdigest()[:8]])


def campaign_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench campaign`: repeat a campaign, unless its last run began less than half a period ago."""
    from .measure.campaign.schedule import read_schedule
    from .publish.jobs import Job, declared, located
    from .publish.notebooks import find_notebook
    from .publish.site import Site

    schedule = read_schedule(arguments.file)
    notebook = find_notebook(schedule.notebook, root())
    if lacking := {"lab", "campaign"} - set(declared(notebook)):
        raise ParameterError(f"{notebook.name} has no parameter {min(lacking)}; allowed: a notebook that measures.")
    given = located(notebook, schedule.parameters | {"campaign": schedule.campaign}, str(arguments.file))
    if arguments.schedule:
        print(schedule.text(arguments.schedule, root()), end="")
        return 0
    if not arguments.now and not schedule.is_due(data_folder() / "raw"):
        print(f"Nothing is due: {schedule.campaign} is measured every {schedule.every}. --now measures anyway.")
        return 0
    _set_environment(arguments)
    return _publish([Job(notebook, given, str(arguments.file))], False, site=Site.scratch(root(), notebook, given))


def sweep_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench sweep`: delete leftover cloud resources after confirmation; return 1 if any remain."""
    from .measure.labs import CLOUDS
    from .measure.labs.rented.sweep import sweep_clouds

    if strange := sorted(set(arguments.cloud) - set(CLOUDS)):
        raise ParameterError(f"cloud is {strange[0]!r}; allowed: {', '.join(CLOUDS)}.")
    return sweep_clouds(arguments.cloud, yes=arguments.yes, everything=arguments.all)


def bucket_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench bucket`: copy a folder to a bucket or back, and check the hashes."""
    from .measure.labs.aws.s3 import get_folder, put_folder

    move = put_folder if arguments.verb == "put" else get_folder
    print(f"{move(arguments.source, arguments.target)} files, checked by SHA-256: {arguments.target}")
    return 0


def deposit_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench deposit`: copy a run with its metadata for an archive, and check the hashes."""
    from .runs.deposit import LICENCE, deposit

    print(f"Deposit, checked by SHA-256: {deposit(arguments.run, arguments.target, arguments.licence or LICENCE)}")
    return 0


def thin_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench thin`: replace raw files of ping in old runs by counts, after confirmation."""
    import pandas as pd

    from .read.ingest.thinning import thin
    from .runs import Run, find

    try:
        before = pd.Timestamp.now("UTC") - pd.Timedelta(arguments.older_than.replace("d", "D"))
    except ValueError:
        raise refusal("--older-than", arguments.older_than, "an age such as 30d or 12h") from None
    given = Path(arguments.run)
    runs = [Run.open(given)] if (given / "journal.jsonl").is_file() else find(data_folder(), arguments.run)
    runs = [run for run in runs if run.finished and pd.Timestamp(run.manifest["ended_at_utc"]) < before]
    n, size, left = (sum(column) for column in zip((0, 0, 0), *(thin(run, dry=True) for run in runs), strict=True))
    print(f"{n} raw files of ping in {len(runs)} runs: {size:,} bytes, as counts {left:,}. Their order is lost.")
    if n and not arguments.yes and input("Replace them? [y/N] ").strip().lower() != "y":
        return 1
    for run in runs:  # also those without new files, where an earlier command was interrupted
        thin(run)
    return 0


def claims_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench claims check`: print the verdict on each claim of a file, and write a page of verdicts."""
    from .methods.claims.own import check_claims
    from .publish.page import write_claims_page

    audit = check_claims(arguments.file)
    page = write_claims_page(audit, scratch_folder() / "claims" / f"{arguments.file.stem}.html")
    for row in audit.formatted_table().to_dict("records"):
        claimed = f" [{row['Claimed']}]" if row["Claimed"] else ""
        print(f"{row['By its own numbers']:24}{row['The source says']}{claimed}\n{'':24}{row['Working']}")
    print(f"\n{audit.sentence} {page}")
    return 0


def compare_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench compare`: print how the set-ups differ and what changed, and write the requested files."""
    from .methods.comparison.sides import side
    from .methods.comparison.verdicts import UNDECIDED, compare, text
    from .pages.region_loss.comparison import values_of
    from .publish.comparison import WRITERS

    found = compare(side(arguments.a), side(arguments.b), arguments.margin, values_of)
    for row in found.differs.itertuples():
        print(f"differs     {row.what}: {row.a} | {row.b}")
    for row in found.rows.head(SHOWN_COMPARISONS).itertuples():
        why = f"; {row.reason}" if row.verdict == UNDECIDED else ""
        print(f"{row.verdict:12}{row.quantity}, {row.key}: {text(row)}; {row.basis}{why}")
    if (more := len(found.rows) - SHOWN_COMPARISONS) > 0:
        print(f"{'':12}and {more} more")
    print(f"\n{found}")
    for name, write in WRITERS.items():
        if path := getattr(arguments, name):
            write(found, path)
            print(f"Wrote {path}")
    return found.exit_code(arguments.strict)


def figure_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench figure`: write one figure of a page as a picture or as a snippet of HTML."""
    from .publish.pictures import export, find_figure

    figure, source = find_figure(arguments.figure, root(), arguments.title, dark=arguments.theme == "dark")
    path = arguments.output or Path(f"{figure.name}-{arguments.size}.{arguments.format}")
    for written in export(figure, source, arguments.size, arguments.format, path):
        print(f"Wrote {written}")
    return 0


def list_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench list`: print every notebook with its question and presets, then every run by campaign."""
    from .publish.notebooks import notebook_paths, read_notebook, title
    from .publish.parameters import preset_paths
    from .runs import find

    for path in notebook_paths(root()):
        presets = ", ".join(preset_paths(path.stem, root())) or "none"
        print(f"{path.stem:28}{title(read_notebook(path))}\n{'':28}presets: {presets}")
    for run in find(data_folder()):
        print(f"{run.campaign:28}{run.run_id}  {'finished' if run.finished else 'interrupted'}")
    return 0


def _set_environment(arguments: argparse.Namespace) -> None:
    """Pass --yes, --dry, --fresh and --retry-failed to the notebooks' kernels, by environment variables."""
    from .measure.campaign.start import AGAIN_VARIABLE

    if arguments.yes:
        from .measure.labs.rented.costs import YES_VARIABLE

        os.environ[YES_VARIABLE] = "1"
    again = (name for name in ("dry", "fresh", "retry-failed") if getattr(arguments, name.replace("-", "_"), False))
    if chosen := next(again, None):
        os.environ[AGAIN_VARIABLE] = chosen


def doctor_command(arguments: argparse.Namespace) -> int:
    """Run `wanbench doctor`: print what is installed and what is missing, here or on the hosts of an inventory."""
    from .doctor import checks, checks_of_hosts

    results = checks_of_hosts(arguments.inventory) if arguments.inventory else checks()
    for check in results:
        print(check)
    return 0 if all(check.present or check.is_optional for check in results) else 1


def _publish(jobs: Iterable["Job"], replay: bool, again: bool = True, site: "Site | None" = None) -> int:
    from .doctor import unusable_clouds, why_not_here
    from .publish.jobs import measured_or_replayed
    from .publish.site import Site, publish

    site = site or Site.of(root())
    jobs = [measured_or_replayed(job, replay, why_not_here) for job in jobs]
    for cloud, reason in unusable_clouds(job.lab for job in jobs).items():
        print(f"{cloud}: {reason}. Only a finished run on {cloud} can be shown without that.", file=sys.stderr)
    records = publish(jobs, site, again=again)
    failed = [record for record in records if record.outcome != "published"]
    front = site.folder / (f"{jobs[0].notebook.stem}.html" if site.is_scratch else "index.html")
    print(f"\n{len(records) - len(failed)} of {len(records)} pages published.{' Open' if not failed else ''} {front}")
    print(f"  {front.as_uri()}")
    return 1 if failed else 0

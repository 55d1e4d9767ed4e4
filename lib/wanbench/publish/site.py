"""Make the site: run each notebook, write its page or record its failure, and write the front page."""

import hashlib
import json
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import distributions
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

import pandas as pd
import plotly
from markupsafe import Markup

from wanbench import findings
from wanbench.errors import RawDataError, WanbenchError
from wanbench.files import replace_file, replaced_folder
from wanbench.folders import data_folder, published_folder, root, samples_folder, scratch_folder
from wanbench.methods.claims.ledger import NOT_REPRODUCED, articles_on, read_articles
from wanbench.runs import origin

from .execute import execute
from .jobs import Job, declared
from .notebooks import CHECK, INTRODUCTION, LEDGER, kind, notebook_paths, read_notebook
from .page import make_page, templates, versions
from .parameters import check_notebook, file_hashes
from .pictures import Renderer, browser
from .search import write_search_index

LIBRARY = Path(__file__).parents[2]


def sources_hash(
    notebook: Path, given: Mapping[str, Any], remarks: list[str | None], top: Path, *, strict: bool = True
) -> str:
    """
    Return a hash of everything that a page is made from; `remarks` are the texts at the top of the page.

    The hash covers the notebook, its parameters and the files they name, the library, the installed packages, and all
    data that the page may read, including runs of its campaign. It also covers the page's findings, so that deleted
    findings are computed again. Of data files, only path, size and modification time are hashed: reading them would
    take as long as making the page. Unless `strict`, it leaves out the commit, the browser that draws pictures, and
    what pages and measurements add to the data folder.
    """
    campaign = _campaign(notebook, given)
    own = "" if kind(read_notebook(notebook)) == LEDGER else notebook.stem
    content = [
        hashlib.sha256(notebook.read_bytes()).hexdigest(),
        json.dumps([given, remarks], sort_keys=True, default=repr),
        *file_hashes(given, notebook),
        library_hash(strict),
        *_data(*_results(top, own, campaign) if strict else ()),
    ]
    return hashlib.sha256("\n".join(content).encode()).hexdigest()


def library_hash_now(strict: bool) -> str:
    """Hash wanbench, what notebooks import besides, and the installed packages, now; `strict` as for `sources_hash`."""
    hashed = hashlib.sha256()
    for path in sorted(path for name in ("wanbench", "simulations", "torture") for path in (LIBRARY / name).rglob("*")):
        if "__pycache__" not in path.parts and path.is_file():
            hashed.update(f"{path.relative_to(LIBRARY)} {path.stat().st_size}\n".encode())
            hashed.update(path.read_bytes())
    installed = sorted(f"{one.name} {one.version}" for one in distributions())
    hashed.update(json.dumps([installed, origin() if strict else "", browser() if strict else ""]).encode())
    return hashed.hexdigest()


library_hash = cache(library_hash_now)
"""The result of `library_hash_now` at the first call of this process."""


def _campaign(notebook: Path, given: Mapping[str, Any]) -> str | None:
    parameter = declared(notebook).get("campaign")
    return given.get("campaign", parameter.default) if parameter else None


def _results(top: Path, page: str, campaign: str | None) -> list[Path]:
    runs = (data_folder(top) / "raw").glob(f"{campaign}*") if campaign else ()
    return [*sorted(runs), data_folder(top) / "findings" / page]


def _data(*results: Path) -> Iterator[str]:
    computed = (root() / "data" / name for name in ("validity", "robustness"))
    for folder in (samples_folder(), published_folder(), *computed, *results):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                found = path.stat()
                yield f"{path} {found.st_size} {found.st_mtime_ns}"


TITLE = "wanbench: published claims about the network between clouds, measured again"
QUESTION = (
    "Do the published claims about the network between clouds, and about Kafka across it, hold when they are measured "
    "again?"
)
ABOUT = (
    "wanbench takes articles apart into single claims, recomputes each from the article's own numbers, and measures "
    "again what one machine can, with real tools (ping, iperf3, a Kafka cluster) over an emulated wide-area network. "
    "Each page asks one question and answers it at the top. Every sentence and number of an answer is computed."
)


@dataclass(frozen=True)
class Record:
    """
    The state of a page: whether it is published, and what the front page says about it.

    `outcome` is "published", "failed" (with `reason`) or "not made". `kind` is the value of `notebooks.kind`. `lead` is
    the page's first paragraph as HTML, and `thumbnail` a path in the site. `basis` is a sentence about the origin of
    the data; `where` and `days` are the place and the days of the measurement. `made_from` is the page's
    `sources_hash`.
    """

    name: str
    outcome: str
    kind: str = "study"
    title: str = ""
    lead: str = ""
    thumbnail: str = ""
    reason: str = ""
    basis: str = ""
    where: str = ""
    days: Sequence[str] = ()
    remark: str = ""
    made_from: str = ""


@dataclass(frozen=True)
class Site:
    """
    The folders of a site.

    `root` is the checkout with notebooks and findings, `folder` receives the pages, and `build` the executed notebooks,
    drawings and records of pages.
    """

    root: Path
    folder: Path
    build: Path
    findings: Path
    is_scratch: bool = False

    @classmethod
    def of(cls, root: Path):
        """Return the site of a checkout: pages in `site/`, intermediate files in `build/`, and published findings."""
        return cls(root, root / "site", root / "build", data_folder(root) / "findings")

    @classmethod
    def scratch(cls, root: Path, notebook: Path, given: Mapping[str, object]):
        """Return a separate site, without a front page, for one notebook with one set of parameters."""
        digest = hashlib.sha256(json.dumps(dict(given), sort_keys=True, default=repr).encode()).hexdigest()[:8]
        folder = scratch_folder() / f"{notebook.stem}-{digest}"
        return cls(root, folder, folder / "build", folder / "findings", is_scratch=True)

    def executed_path(self, name: str) -> Path:
        """Return the path of a page's executed notebook."""
        return self.build / "notebooks" / f"{name}.ipynb"

    def record_published(self, page: SimpleNamespace, made_from: str = "") -> None:
        """Record that a page, as `make_page` returns it, was published; `made_from` is its `sources_hash`."""
        thumbnail = f"figures/{page.name}/{page.cover}-800x450.svg" if page.cover else ""
        about = {name: getattr(page, name) for name in ("kind", "title", "basis", "where", "days")}
        about |= {"lead": str(page.lead), "remark": page.remark or "", "thumbnail": thumbnail, "made_from": made_from}
        self._write(Record(page.name, "published", **about))

    def record_failed(self, name: str, reason: str) -> None:
        """Record why a page failed; an earlier page stays, and the front page says that it is older."""
        earlier = self.record(name)
        kept = earlier if (self.folder / f"{name}.html").exists() else Record(name, "failed")
        self._write(replace(kept, outcome="failed", reason=reason, made_from=""))

    def write_front_page(self) -> Path:
        """Write `index.html` from the records of all pages and the findings of published ones, and return its path."""
        self.write_assets()
        records = [self.record(path.stem) for path in notebook_paths(self.root)]
        made_from = origin()
        shown = [one for one in records if one.title]
        found = self._findings([one.name for one in shown])
        kinds = {one.name: one.kind for one in records}
        checks = found[found.page.map(kinds) == CHECK]
        content = {
            "title": TITLE,
            "question": QUESTION,
            "about": ABOUT,
            "introductions": [one for one in shown if one.kind == INTRODUCTION],
            "ledger": next((one for one in shown if one.kind == LEDGER), None),
            "studies": [one for one in records if one.kind == "study" or not one.title],
            "where": ", and ".join(dict.fromkeys(one.where for one in shown if one.where)),
            "days": sorted({day for one in shown for day in one.days}),
            "sources": {one.name: articles_on(one.name) for one in shown},
            "contradicted": contradicted(self.findings),
            "checks": [one for one in shown if one.kind == CHECK],
            "answers": {one.name: _answers(self.findings / one.name) for one in shown},
            "findings": Markup(findings.html_table(found.drop(checks.index))),  # nosec B704  # escaped there
            "n_findings": len(found) - len(checks),
            "check_findings": Markup(findings.html_table(checks)),  # nosec B704  # escaped there
            "documentation": (self.folder / "docs" / "index.html").exists(),
            "versions": versions()[:2],
            "commit": made_from["git_commit"],
            "local_changes": bool(made_from["git_dirty"]),
        }
        html = templates().get_template("index.html").render(site=content)
        path = self.folder / "index.html"
        replace_file(path, html.encode())
        self.link_pages(shown)
        write_search_index(self.folder, [one.name for one in shown])
        return path

    def _findings(self, pages: list[str]) -> pd.DataFrame:
        tables = [findings.load(self.findings / page).assign(page=page) for page in ("", *pages) if page or not pages]
        return pd.concat(tables, ignore_index=True)

    def link_pages(self, shown: list[Record]) -> None:
        """Write links to the previous and the next page into each page."""
        for before, one, after in zip([None, *shown], shown, [*shown[1:], None], strict=False):
            links = [(before, "prev", "← {}"), (after, "next", "{} →")]
            template = Markup('<a rel="{}" href="{}.html">{}</a>')
            html = [template.format(rel, page.name, text.format(page.title)) for page, rel, text in links if page]
            path, mark = self.folder / f"{one.name}.html", '<nav class="neighbours" aria-label="Other pages">'
            before_it, nav, rest = path.read_text("utf-8").partition(mark)
            linked = before_it + nav + "\n".join(html) + rest[rest.index("</nav>") :] if nav else before_it
            replace_file(path, linked.encode())

    def write_assets(self) -> None:
        """Write what every page loads: style, script, and the library that draws figures."""
        own = (one for one in (files("wanbench.publish") / "assets").iterdir() if one.is_file())
        wanted = {one.name: one.read_bytes() for one in own}
        wanted["plotly.min.js"] = (Path(str(plotly.__file__)).parent / "package_data/plotly.min.js").read_bytes()
        for name, content in wanted.items():
            path = self.folder / "assets" / name
            if not path.is_file() or path.read_bytes() != content:
                replace_file(path, content)

    def _write(self, record: Record) -> None:
        text = json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n"
        replace_file(self._record_path(record.name), text.encode())

    def record(self, name: str) -> Record:
        """Return the state of one notebook's page."""
        path = self._record_path(name)
        try:
            record = Record(**json.loads(path.read_bytes()))
        except (FileNotFoundError, TypeError):
            # TypeError: the record of another version, which has other fields
            return Record(name, "not made")
        except (OSError, ValueError) as error:
            expected = "the record of a page; `make clean` removes it"
            raise RawDataError(path, None, str(error), expected) from None
        files = (self.folder / f"{name}.html", self.folder / "figures" / name)
        return Record(name, "not made") if record.title and not all(path.exists() for path in files) else record

    def _record_path(self, name: str) -> Path:
        return self.build / "pages" / f"{name}.json"


def contradicted(folder: Path) -> list[dict[str, str]]:
    """
    Return the published claims that a re-run did not reproduce, from the tables of claims of all pages.

    Each has `page`, `says` (the source's sentence), `claimed` (its number), and `measured` (the rule of the verdict and
    what the re-run measured), and its `article`. `folder` has a folder of findings for each page.
    """
    found = sorted(folder.glob("[!.]*/claims.csv"))
    tables = [pd.read_csv(path, dtype="str", keep_default_na=False).assign(page=path.parent.name) for path in found]
    rows = pd.concat(tables).to_dict("records") if tables else []
    articles = read_articles()
    return [
        {"page": row["page"], "says": row["The source says"], "claimed": row["Claimed"]}
        | {"measured": row["Working"].partition("Re-run: ")[2], "article": articles.get(row["source"])}
        for row in rows
        if row["By the re-run"] == NOT_REPRODUCED
    ]


def _answers(folder: Path) -> list[findings.Finding]:
    return [finding for finding in findings.read_all(folder) if finding.answer]


def publish(jobs: Sequence[Job], site: Site, stream: TextIO | None = None, *, again: bool = True) -> list[Record]:
    """
    Run notebooks, publish their pages and the front page, and return the state of each job's page.

    A failed page does not stop the others. Progress is written to `stream`, by default sys.stderr. Unless `again` is
    true, a page is kept if none of its sources has changed. Raise ParameterError, before anything runs, if a parameter
    of any job is unknown or its value has the wrong type.
    """
    said = stream or sys.stderr
    for job in jobs:
        check_notebook(job.notebook, job.given, job.source)
    with ExitStack() as stack:
        renderer = stack.enter_context(Renderer(site.build / "drawings")) if browser() else None
        for job in sorted(jobs, key=lambda job: kind(read_notebook(job.notebook)) == LEDGER):  # after those it collects
            record = site.record(job.notebook.stem)
            if not again and record.outcome == "published" and record.made_from == _made_from(job, site):
                print(f"{job.notebook.stem}: the page is up to date", file=said, flush=True)
                continue
            reason = publish_page(job, site, renderer, said)
            if reason:
                reason += f" Nothing was measured. {job.replay_reason}" if job.replay_reason else ""
                site.record_failed(job.notebook.stem, reason)
                print(f"{job.notebook.stem} is not published: {reason}", file=said, flush=True)
        if site.is_scratch:
            site.write_assets()
        else:
            site.write_front_page()
    return [site.record(job.notebook.stem) for job in jobs]


def publish_page(job: Job, site: Site, renderer: Renderer | None, stream: TextIO) -> str | None:
    """Run a notebook and write its page, findings and record; return None, or the reason of a failure."""
    try:
        name = job.notebook.stem
        before = findings.read_all(site.findings / name)
        with replaced_folder(site.findings / name) as folder:
            executed = execute(job.notebook, job.given, site.executed_path(name), stream, folder)
            page = make_page(executed, site.folder, renderer, job, _answers(folder))
    except (WanbenchError, OSError) as error:
        return str(error)
    except Exception as error:  # a bug in one notebook must not stop the other pages
        traceback.print_exc(file=stream)
        return f"{type(error).__name__}: {error}"
    for line in _changes(before, findings.read_all(site.findings / name)):
        print(f"{name}: {line}", file=stream, flush=True)
    site.record_published(page, job.made_from or _made_from(job, site))
    return None


def _changes(before: list[findings.Finding], after: list[findings.Finding]) -> Iterator[str]:
    """Name the findings of an earlier page that changed, and say what replaces them."""
    now = {finding.name: finding.sentence for finding in after}
    for finding in before:
        if finding.name not in now:
            yield f"finding {finding.name} is gone; it was: {finding.sentence}"
        elif now[finding.name] != finding.sentence:
            yield f"finding {finding.name} changed from: {finding.sentence} To: {now[finding.name]}"


def _made_from(job: Job, site: Site) -> str:
    return sources_hash(job.notebook, dict(job.given), [job.replay_reason, job.remark], site.root)

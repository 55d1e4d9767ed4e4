"""The site: front page with all findings, shared assets, state of each page."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd
import plotly
from markupsafe import Markup

from wanbench import findings
from wanbench.errors import RawDataError
from wanbench.files import replace_file
from wanbench.folders import data_folder
from wanbench.runs.origin import origin

from .notebooks import notebook_paths
from .page import Page, templates, versions
from .tags import CHECK, INTRODUCTION

TITLE = "wanbench: claims about the network between clouds, measured again"
QUESTION = "Do the published claims about the network between clouds hold when they are measured again?"
ABOUT = (
    "wanbench repeats, audits and extends such claims. Each page below asks one question and ends in findings whose "
    "sentences and numbers are computed. Most pages measure with real tools over an emulated wide-area network, the "
    "others analyse published data."
)


@dataclass(frozen=True)
class Record:
    """
    The state of a page.

    `outcome` is "published", "failed" (with `reason`) or "not made"; `kind` is that of `tags.kind`; `thumbnail` is a
    path in the site, `basis` says where its data come from, `lead` is HTML, `made_from` a hash of the page's sources.
    """

    name: str
    outcome: str
    kind: str = "study"
    title: str = ""
    lead: str = ""
    thumbnail: str = ""
    reason: str = ""
    basis: str = ""
    remark: str = ""
    made_from: str = ""


@dataclass(frozen=True)
class Site:
    """
    The folders of a site.

    Parameters
    ----------
    root : Path
        The checkout: notebooks and findings are read from it.
    folder : Path
        Where pages go.
    build : Path
        Where executed notebooks and the records of pages are kept.
    """

    root: Path
    folder: Path
    build: Path

    @classmethod
    def of(cls, root: Path) -> Site:
        """The site of a checkout: `site/`, built from `build/`."""
        return cls(root, root / "site", root / "build")

    def executed_path(self, name: str) -> Path:
        """The path of a page's executed notebook."""
        return self.build / "notebooks" / f"{name}.ipynb"

    def record_published(self, page: Page, made_from: str = "") -> None:
        """Record that a page was published, and its sources."""
        self._write(
            Record(
                page.name,
                "published",
                kind=page.kind,
                title=page.title,
                lead=str(page.lead),
                thumbnail=f"figures/{page.name}/{page.cover}-800x450.svg" if page.cover else "",
                basis=_basis(page),
                remark=page.remark or "",
                made_from=made_from,
            )
        )

    def record_failed(self, name: str, reason: str) -> None:
        """Record that a page failed, and remove files of an earlier build."""
        (self.folder / f"{name}.html").unlink(missing_ok=True)
        shutil.rmtree(self.folder / "figures" / name, ignore_errors=True)
        self._write(Record(name, "failed", reason=reason))

    def records(self) -> list[Record]:
        """The state of each notebook's page, in reading order."""
        return [self.record(path.stem) for path in notebook_paths(self.root)]

    def write_front_page(self) -> Path:
        """Write assets, and `index.html` from records and findings of published pages; returns its path."""
        self._write_assets()
        records = self.records()
        made_from = origin()
        found = self._findings([one.name for one in records if one.outcome == "published"])
        kinds = {one.name: one.kind for one in records}
        checks = found[found.page.map(kinds) == CHECK]
        content = {
            "title": TITLE,
            "question": QUESTION,
            "about": ABOUT,
            "introductions": [one for one in records if one.kind == INTRODUCTION and one.outcome == "published"],
            "studies": [one for one in records if one.kind == "study" or one.outcome != "published"],
            "checks": [one for one in records if one.kind == CHECK and one.outcome == "published"],
            "answers": _answers(found),
            "findings": Markup(findings.html_table(found.drop(checks.index))),
            "n_findings": len(found) - len(checks),
            "check_findings": Markup(findings.html_table(checks)),
            "versions": versions()[:2],
            "commit": made_from["git_commit"],
            "local_changes": bool(made_from["git_dirty"]),
        }
        html = templates().get_template("index.html").render(site=content)
        path = self.folder / "index.html"
        replace_file(path, html.encode())
        return path

    def _findings(self, pages: list[str]) -> pd.DataFrame:
        folders = data_folder(self.root) / "findings"
        tables = [findings.load(folders / page).assign(page=page) for page in ("", *pages) if page or not pages]
        return pd.concat(tables, ignore_index=True)

    def _write_assets(self) -> None:
        own = (one for one in (files(__package__) / "assets").iterdir() if one.is_file())
        wanted = {one.name: one.read_bytes() for one in own}
        wanted["plotly.min.js"] = (Path(plotly.__file__).parent / "package_data/plotly.min.js").read_bytes()
        for name, content in wanted.items():
            path = self.folder / "assets" / name
            if not path.is_file() or path.read_bytes() != content:
                replace_file(path, content)

    def _write(self, record: Record) -> None:
        text = json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n"
        replace_file(self._record_path(record.name), text.encode())

    def record(self, name: str) -> Record:
        """The state of one notebook's page."""
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
        if record.outcome == "published" and not all(path.exists() for path in files):
            return Record(name, "not made")
        return record

    def _record_path(self, name: str) -> Path:
        return self.build / "pages" / f"{name}.json"


def _basis(page: Page) -> str:
    """The origin of a page's data, as a sentence."""
    if page.replay_reason:
        return f"Replayed from the committed recording: {page.replay_reason}"
    return "Measured on this machine." if page.runs else "Published or simulated data; nothing is measured."


def _answers(found: pd.DataFrame) -> dict[str, list[str]]:
    """The sentences that answer each page's question."""
    answers: dict[str, list[str]] = {}
    for row in found[found.answer].itertuples():
        answers.setdefault(row.page, []).append(row.sentence)
    return answers

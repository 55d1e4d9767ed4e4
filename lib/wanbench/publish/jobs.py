"""Describe a notebook to publish, with its parameters, and decide whether it measures or replays its recording."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wanbench.errors import ParameterError
from wanbench.folders import root

from .notebooks import RECORDED, read_notebook, tags, title_tags
from .parameters import TAG, Parameter, declared_parameters, preset_paths, read_parameters, resolve_paths

LOCAL, SAMPLES = "local", "samples"  # values of a notebook's parameter `lab`


def declared(notebook: Path) -> dict[str, Parameter]:
    """Return the parameters that a notebook declares, by name."""
    return declared_parameters(read_notebook(notebook), notebook.name)


@dataclass(frozen=True)
class Job:
    """
    A notebook to publish with parameters.

    `given` holds values by parameter name; error messages call their origin `source`. `replay_reason` is the reason why
    the page shows the committed recording; None if it does not. `remark` is a sentence for the top of the page.
    `made_from` is the hash of the page's sources; "" if `publish` is to compute it once the page is made.
    """

    notebook: Path
    given: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    replay_reason: str | None = None
    remark: str | None = None
    made_from: str = ""

    @property
    def lab(self) -> str | None:
        """Return the lab that the notebook will use, as given or by default; None if the notebook measures nothing."""
        parameter = declared(self.notebook).get("lab")
        return self.given.get("lab", parameter.default if parameter else None)

    def replayed(self, reason: str) -> "Job":
        """Return the job with the committed recording in place of its lab; the page shows the reason."""
        return replace(self, given={**self.given, "lab": SAMPLES}, replay_reason=reason)


def dry_run(notebook: Path, given: Mapping[str, object]) -> None:
    """Run the cells of a notebook in this process until `campaign.run` shows the plan and ends the process."""
    os.chdir(notebook.parent)
    names: dict[str, object] = {}
    for cell in read_notebook(notebook).cells:
        if cell.cell_type == "code":
            exec(cell.source, names)  # nosec B102  # a notebook is a program of the user's
            names |= given if TAG in tags(cell) else {}
    raise ParameterError(f"{notebook.name} measures nothing; allowed: a notebook that measures.")


def located(notebook: Path, given: Mapping[str, object], source: str) -> dict[str, object]:
    """
    Return the parameters with file paths that are valid in the notebook's folder (see `resolve_paths`).

    Relative paths are looked up in the current directory, then in the checkout's root.
    """
    return resolve_paths(given, declared(notebook), notebook, [Path.cwd(), root()], root(), source)


def own_parameters(notebook: Path, given: Mapping[str, object], preset: str) -> str | None:
    """Return a sentence that lists the parameters that differ from those of a preset; None if none differs."""
    path = preset_paths(notebook.stem, root()).get(preset)
    usual = {parameter.name: parameter.default for parameter in declared(notebook).values()}
    usual |= read_parameters(path) if path else {}
    own = [f"{key} = {value!r}" for key, value in given.items() if usual.get(key) != value]
    return f"This page was made with non-default parameters: {', '.join(own)}." if own else None


def recorded(job: Job) -> Job:
    """Return the job; if its notebook has the tag `recorded`, the recording replaces the local lab."""
    if job.lab != LOCAL or RECORDED not in title_tags(read_notebook(job.notebook)):
        return job
    return job.replayed(_measure_afresh(job))


def measured_or_replayed(job: Job, replay: bool, why_not_here: Callable[[bool], str | None]) -> Job:
    """
    Return the job; the recording replaces its lab if `replay` is true, or if the local lab cannot run here.

    `why_not_here` says why this machine cannot measure, given whether the notebook needs Kafka; None if it can.
    """
    parameters, lab = declared(job.notebook), job.lab
    if "lab" not in parameters:
        return job
    if lab == SAMPLES:
        return replace(job, replay_reason=job.replay_reason or "The parameter lab asks for it.")
    reason = _measure_afresh(job) if replay else None
    if lab == LOCAL and not replay:
        reason = why_not_here(any(name.startswith("brokers") for name in parameters))
    return job.replayed(reason) if reason else job


def _measure_afresh(job: Job) -> str:
    number = job.notebook.stem.partition("-")[0]
    return f"To measure afresh, which takes some minutes longer, run 'wanbench report {number}'."

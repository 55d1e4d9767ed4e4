"""Publish notebooks: run each, write its page, report failures, and write the front page."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from wanbench.errors import WanbenchError

from .execute import execute
from .figure_files import Renderer, browser
from .page import make_page
from .parameters import check_notebook
from .site import Record, Site
from .unchanged import made_from


@dataclass(frozen=True)
class Job:
    """
    A notebook to publish.

    Parameters
    ----------
    notebook : Path
    given : mapping
        Parameters by name.
    source : str
        Where the parameters come from; named in error messages.
    replay_reason : str or None
        Why it shows the committed samples; None if it does not.
    remark : str or None
        What a reader of the page must know before anything else.
    """

    notebook: Path
    given: Mapping[str, object] = field(default_factory=dict)
    source: str = ""
    replay_reason: str | None = None
    remark: str | None = None


def publish(jobs: Sequence[Job], site: Site, stream: TextIO | None = None, *, again: bool = True) -> list[Record]:
    """
    Run notebooks and publish their pages; a failed page does not stop the others.

    Parameters
    ----------
    jobs : sequence of Job
    site : Site
    stream : text file
        Gets the progress; default sys.stderr.
    again : bool
        Whether to remake pages even if nothing that they are made from has changed.

    Returns
    -------
    list of Record
        What became of each job, in their order.

    Raises
    ------
    ParameterError
        The parameters of any job do not fit; nothing has run then.
    """
    stream = stream or sys.stderr
    for job in jobs:
        check_notebook(job.notebook, job.given, job.source)
    with ExitStack() as stack:
        renderer = stack.enter_context(Renderer(site.build / "drawings")) if browser() else None
        for job in jobs:
            if not again and _is_current(job, site):
                print(f"{job.notebook.stem}: nothing has changed; the page is kept", file=stream, flush=True)
                continue
            reason = _publish(job, site, renderer, stream)
            if reason:
                reason += f" Nothing was measured: {job.replay_reason}" if job.replay_reason else ""
                site.record_failed(job.notebook.stem, reason)
                print(f"{job.notebook.stem} is not published: {reason}", file=stream, flush=True)
        site.write_front_page()
    return [site.record(job.notebook.stem) for job in jobs]


def _publish(job: Job, site: Site, renderer: Renderer | None, stream: TextIO) -> str | None:
    """Publish one page; returns the reason if it failed, else None."""
    try:
        executed = execute(job.notebook, job.given, site.executed_path(job.notebook.stem), stream)
        page = make_page(executed, site.folder, renderer, replay_reason=job.replay_reason, remark=job.remark)
    except (WanbenchError, OSError) as error:
        return str(error)
    except Exception as error:  # a fault of code must not keep the other pages from being made
        traceback.print_exc(file=stream)
        return f"{type(error).__name__}: {error}"
    site.record_published(page, _made_from(job, site))
    return None


def _is_current(job: Job, site: Site) -> bool:
    record = site.record(job.notebook.stem)
    return record.outcome == "published" and record.made_from == _made_from(job, site)


def _made_from(job: Job, site: Site) -> str:
    return made_from(job.notebook, dict(job.given), [job.replay_reason, job.remark], site.root)

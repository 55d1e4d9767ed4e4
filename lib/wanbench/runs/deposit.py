"""Copy a finished run to a folder for an archive, with its metadata as an RO-Crate."""

import mimetypes
import shutil
from pathlib import Path

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from wanbench.checks import refusal
from wanbench.errors import ParameterError, RawDataError
from wanbench.files import replaced_folder

from . import journal
from .raw import sha256
from .read import MANIFEST, Run

LICENCE = "https://spdx.org/licenses/Apache-2.0"


def deposit(folder: Path | str, target: Path | str, licence: str = LICENCE) -> Path:
    """
    Copy a finished run to a new folder, with `ro-crate-metadata.json`, and return the new folder.

    The metadata give each file's size and SHA-256; each copy is compared with the run's manifest.

    `licence` is the address of the licence under which the data may be used. Raise ParameterError if the run is not
    finished, `target` exists, or `licence` is not an address; raise RawDataError if a file differs from the manifest.
    """
    run, target = Run.open(folder), Path(target)
    if not run.finished:
        raise ParameterError(f"{run.folder} is an unfinished run; allowed: finished runs.")
    if target.exists():
        raise ParameterError(f"{target} exists; allowed: a new folder.")
    if not licence.startswith(("https://", "http://")):
        raise refusal("licence", licence, "an address such as " + LICENCE)
    run.verify()
    with replaced_folder(target) as made:
        for name, recorded in run.files().items():
            _copy(run.folder / name, made / name, recorded)
        _copy(run.folder / MANIFEST, made / MANIFEST, sha256(run.folder / MANIFEST))
        _crate(run, made, licence).metadata.write(made)
    return target


def _copy(source: Path, copy: Path, recorded: str) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, copy)
    if (found := sha256(copy)) != recorded:
        raise RawDataError(copy, None, f"SHA-256 {found}", f"SHA-256 {recorded}")


def _crate(run: Run, made: Path, licence: str) -> ROCrate:
    """Describe the run: what was measured, when, by which software, and every file."""
    facts, crate = run.facts(), ROCrate()
    kind = "emulated links on one machine" if run.lab.get("kind") == "local" else f"lab {run.lab.get('kind')}"
    crate.name = f"{run.campaign}: measurements of {facts['started_at_utc'][:10]} by wanbench"
    crate.description = (
        f"Raw output of {', '.join(facts['tools']) or 'the tools'} for {len(run.plan.get('tests', ()))} tests between "
        f"regions, over {kind}; journal.jsonl lists every attempt, {MANIFEST} the settings, versions and hashes."
    )
    crate.datePublished = facts["ended_at_utc"]
    name = licence.rstrip("/").rpartition("/")[2]
    about = {"@type": "CreativeWork", "name": name, "description": "Licence under which the data may be used"}
    crate.license = crate.add(ContextEntity(crate, licence, properties=about))
    commands = {file["path"]: " ".join(file["command"]) for file in run.raw_files()}
    for name, recorded in (*sorted(run.files().items()), (MANIFEST, sha256(made / MANIFEST))):
        crate.add_file(made / name, name, properties=_about(made / name, name, recorded, commands.get(name)))
    code = f"git commit {facts['git_commit']}" if facts.get("git_commit") else "not from a git checkout"
    # RO-Crate demands an address of a SoftwareApplication; wanbench has none yet.
    software = {"@type": "CreativeWork", "name": "wanbench", "version": facts["wanbench_version"]}
    tool = crate.add(ContextEntity(crate, "#wanbench", properties=software | {"description": code}))
    took = {"@type": "CreateAction", "name": f"Run {run.run_id}", "startTime": facts["started_at_utc"]}
    action = crate.add(ContextEntity(crate, "#measuring", properties=took | {"endTime": facts["ended_at_utc"]}))
    action["instrument"], action["result"] = tool, crate.root_dataset
    crate.root_dataset["mentions"] = action
    return crate


def _about(file: Path, name: str, recorded: str, command: str | None) -> dict[str, str]:
    of_the_run = {
        MANIFEST: "Settings, versions and hashes of the run",
        journal.NAME: "Every event of the run, in order",
    }
    described = f"Output of: {command}" if command else of_the_run.get(name, "Written by the lab or the experiment")
    kind = mimetypes.guess_type(name)[0] or "text/plain"
    size = {"contentSize": str(file.stat().st_size), "sha256": recorded}
    return {"name": name, "description": described, "encodingFormat": kind, **size}

"""Read the file of a repeated campaign, and write the configuration with which systemd or cron repeats it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from wanbench.checks import check_choice, check_name, refusal
from wanbench.errors import ParameterError
from wanbench.folders import DATA_VARIABLE
from wanbench.plain_yaml import read_yaml

KEYS = ("campaign", "notebook", "every", "parameters")
# Systemd and cron name times of the day, so only periods that divide an hour or a day repeat evenly.
PERIODS = [f"{n}m" for n in (5, 10, 15, 20, 30)] + [f"{n}h" for n in (1, 2, 3, 4, 6, 8, 12)] + ["1d"]
UNITS = {"m": "minutes", "h": "hours", "d": "days"}
EARLY = 0.5  # Share of a period after which a repetition is due: timers may come early, but not by half a period.
STAMP = re.compile(r"\d{8}T\d{6}Z")  # Start of a run's id.
SYSTEMD = """\
# ~/.config/systemd/user/{name}.service
[Unit]
Description={name}: one repetition of a campaign

[Service]
Type=oneshot
WorkingDirectory={folder}
ExecStart={command}

# ~/.config/systemd/user/{name}.timer; start it: systemctl --user enable --now {name}.timer; loginctl enable-linger
[Unit]
Description={name}: every {every}

[Timer]
OnCalendar={calendar}
Persistent=true

[Install]
WantedBy=timers.target
"""


@dataclass(frozen=True)
class Schedule:
    """A repeated campaign: its notebook, its parameters, its period (one of `PERIODS`), and the `path` of its file."""

    path: Path
    campaign: str
    notebook: str
    every: str
    parameters: dict[str, object] = field(default_factory=dict)

    @property
    def period(self) -> timedelta:
        """Return the time from the start of one repetition to the start of the next."""
        return timedelta(**{UNITS[self.every[-1]]: int(self.every[:-1])})

    def is_due(self, raw: Path, now: datetime | None = None) -> bool:
        """Return whether the campaign has no run under `raw` that began less than half a period ago."""
        stamps = [path.parent.name[:16] for path in (raw / self.campaign).glob("*/journal.jsonl")]
        began = max((datetime.strptime(one, "%Y%m%dT%H%M%SZ") for one in stamps if STAMP.match(one)), default=None)
        now = now or datetime.now(UTC)
        return began is None or now - began.replace(tzinfo=UTC) >= EARLY * self.period

    def text(self, kind: str, folder: Path) -> str:
        """
        Return systemd units or a line of a crontab, as `kind` says, that repeat the campaign in the checkout `folder`.
        """
        data = [f"{DATA_VARIABLE}={os.environ[DATA_VARIABLE]}"] if DATA_VARIABLE in os.environ else []
        program = str(Path(sys.executable).with_name("wanbench"))
        command = [*(["/usr/bin/env", *data] if data else []), program, "campaign", str(self.path.resolve())]
        number, unit = int(self.every[:-1]), self.every[-1]
        if check_choice("schedule", kind, ("systemd", "cron")) == "cron":
            times = {"m": f"*/{number} * * * *", "h": f"0 */{number} * * *", "d": "0 0 * * *"}[unit]
            line = f"{times} cd {shlex.quote(str(folder))} && {shlex.join(command)}"
            return line.replace("%", r"\%") + "\n"
        calendar = {"m": f"*:0/{number}", "h": f"0/{number}:00", "d": "daily"}[unit]
        quoted = " ".join(f'"{word}"' if " " in word else word for word in command)
        about = {"name": f"wanbench-{self.campaign}", "folder": str(folder), "command": quoted}
        about = {name: value.replace("%", "%%") for name, value in about.items()}
        return SYSTEMD.format(**about, every=self.every, calendar=calendar)


def read_schedule(path: Path) -> Schedule:
    """
    Read the file of a campaign, in YAML.

    Raise ParameterError if a key is unknown or missing, or a value is not allowed.
    """
    given = read_yaml(path, "file of a campaign")
    if not isinstance(given, dict):
        raise ParameterError(f"{path}: found {type(given).__name__}; allowed: a mapping with {', '.join(KEYS)}.")
    for key in given:
        check_choice(f"{path}: a key", key, KEYS)
    if missing := [key for key in KEYS[:3] if key not in given]:
        raise ParameterError(f"{path}: {missing[0]} is missing; a campaign needs {', '.join(KEYS[:3])}.")
    given["notebook"] = str(given["notebook"]).zfill(2)  # YAML reads 02 as a number
    check_choice(f"{path}: every", given["every"], PERIODS)
    check_name(f"{path}: campaign", given["campaign"])
    given["parameters"] = given.get("parameters") or {}
    if not isinstance(given["parameters"], dict):
        raise refusal(f"{path}: parameters", given["parameters"], "a mapping of names to values")
    if "campaign" in given["parameters"]:
        raise ParameterError(f"{path}: parameters name campaign; allowed: only the key campaign beside them.")
    return Schedule(Path(path), **given)

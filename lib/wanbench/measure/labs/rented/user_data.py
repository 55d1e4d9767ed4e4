"""What a host does at its first start: it gets a known host key, a time to live, programs, and perhaps a volume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version

import yaml

VOLUME_FOLDER = "/wanbench"
PYTHON_FOLDER = "/opt/wanbench"
HOST_PYTHON = f"{PYTHON_FOLDER}/bin/python"
"""A Python besides the distribution's own, with the modules that Kafka's experiments import on a host."""
MODULES = ("kafka-python", "confluent-kafka")

_SERVICE = """[Unit]
Description=End this host at the time that its lab was given
[Service]
Type=oneshot
ExecStart=/usr/sbin/shutdown -P now
"""
_TIMER = """[Unit]
Description=End this host at the time that its lab was given
[Timer]
OnCalendar={}
Persistent=true
AccuracySec=1s
[Install]
WantedBy=timers.target
"""


def user_data(
    *,
    expires_at: datetime,
    host_key: str,
    host_key_public: str,
    packages: Sequence[str] = (),
    python: str = "python3",
    volume_device: str | None = None,
    files: Mapping[str, str] | None = None,
) -> str:
    """
    A cloud-config document for a distribution with cloud-init and systemd.

    The host powers off at `expires_at` even if nobody reaches it any more and even after a reboot. A relative shutdown
    runs alongside the timer from the first seconds on, in case a later step of the start hangs.

    Parameters
    ----------
    host_key, host_key_public : str
        An ed25519 key in OpenSSH's formats, which becomes the host's only one.
    packages : sequence of str
        Packages of the distribution.
    python : str
        The command of the distribution's Python, 3.11 or newer. It makes `HOST_PYTHON`, which gets `MODULES`
        from PyPI in the versions that are installed here. Where that fails, only Kafka cannot be run.
    volume_device : str, optional
        An empty volume, to be formatted and mounted on `VOLUME_FOLDER`.
    files : {path: content}, optional
        Further files, written before other services start.
    """
    left_min = max(1, round((expires_at - datetime.now(UTC)).total_seconds() / 60))
    when = expires_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    unit = "/etc/systemd/system/wanbench-expiry"
    config = {
        "bootcmd": [["cloud-init-per", "once", "wanbench-expiry", "shutdown", "-P", f"+{left_min}"]],
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": host_key, "ed25519_public": host_key_public},
        "ssh_pwauth": False,
        "write_files": [
            {"path": f"{unit}.service", "content": _SERVICE},
            {"path": f"{unit}.timer", "content": _TIMER.format(when)},
            *({"path": path, "content": content} for path, content in (files or {}).items()),
        ],
        "runcmd": [
            [python, "-m", "venv", PYTHON_FOLDER],
            [HOST_PYTHON, "-m", "pip", "install", "--no-input", *(f"{name}=={version(name)}" for name in MODULES)],
            # The last command's status is that of the whole first start.
            ["systemctl", "enable", "--now", "wanbench-expiry.timer"],
        ],
    }
    if packages:
        config["packages"] = list(packages)
    if volume_device:
        config["fs_setup"] = [{"device": volume_device, "filesystem": "xfs", "label": "wanbench"}]
        config["mounts"] = [[volume_device, VOLUME_FOLDER, "xfs", "defaults,nofail", "0", "2"]]
    return "#cloud-config\n" + yaml.safe_dump(config, sort_keys=False, width=1000)

"""The effective settings of a broker, which it logs when it starts."""

from __future__ import annotations

import re

_BLOCK = "KafkaConfig values:"
_LINE = re.compile(r"\t([A-Za-z0-9._-]+) = ?(.*)")
_OPEN = ("listener.name.", "rsm.config.", "rlmm.config.")
"""Prefixes of settings that brokers accept but do not log."""


def effective_settings(log: bytes) -> dict[str, str]:
    r"""
    The settings that a broker last logged; Kafka hides passwords there.

    >>> effective_settings(b"INFO KafkaConfig values: \n\tbroker.rack = eu\n\tlog.dir = /x\nINFO next")
    {'broker.rack': 'eu', 'log.dir': '/x'}
    """
    text = log.decode("utf-8", "replace")
    settings = {}
    for line in text[text.rfind(_BLOCK) :].splitlines()[1:] if _BLOCK in text else ():
        setting = _LINE.fullmatch(line)
        if setting is None:
            break
        settings[setting[1]] = setting[2]
    return settings


def unknown(wanted, effective) -> list[str]:
    """Settings that a broker does not know and has ignored."""
    return sorted(name for name in wanted if name not in effective and not name.startswith(_OPEN))

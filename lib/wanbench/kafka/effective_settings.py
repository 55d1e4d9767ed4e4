"""The settings that a broker really has, by its own word: it logs them all when it starts."""

from __future__ import annotations

import re

_BLOCK = "KafkaConfig values:"
_LINE = re.compile(r"\t([A-Za-z0-9._-]+) = ?(.*)")
_OPEN = ("listener.name.", "rsm.config.", "rlmm.config.")
"""Names that begin so are settings though brokers do not list them."""


def effective_settings(log: bytes) -> dict[str, str]:
    r"""
    The settings in a broker's log, as it logged them last; passwords are hidden there by Kafka.

    >>> effective_settings(b"INFO KafkaConfig values: \n\tbroker.rack = eu\n\tlog.dir = /x\nINFO next")
    {'broker.rack': 'eu', 'log.dir': '/x'}
    """
    text = log.decode("utf-8", "replace")
    found = {}
    for line in text[text.rfind(_BLOCK) :].splitlines()[1:] if _BLOCK in text else ():
        setting = _LINE.fullmatch(line)
        if setting is None:
            break
        found[setting[1]] = setting[2]
    return found


def unknown(wanted, effective) -> list[str]:
    """Names of settings that a broker does not have, so that it passed them over."""
    return sorted(name for name in wanted if name not in effective and not name.startswith(_OPEN))

"""Whether Kafka can start here: a suitable Java, and the jars."""

from __future__ import annotations

import re
import subprocess

from wanbench.folders import kafka_jars

OLDEST_JAVA = 17
"""What brokers of Kafka 4 need; its clients and tools would run on 11."""

_GET_JAVA = "apt-get install openjdk-17-jre-headless (Fedora: dnf install java-17-openjdk-headless)"


def unavailable() -> str | None:
    """Why Kafka cannot start on this machine, and the remedy, in a sentence; None if it can."""
    try:
        done = subprocess.run(["java", "-version"], capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return f"there is no Java on this machine: {_GET_JAVA}."
    if reason := java_fault(done.returncode, done.stderr.decode(errors="replace"), "this machine"):
        return reason
    jars = kafka_jars()
    missing = [name for name in ("kafka_2.13", "kafka-tools") if not any(jars.glob(f"{name}-*.jar"))]
    if missing:
        return f"Kafka's jars are not in {jars} ({' and '.join(missing)} missing): `make setup` fetches them by Maven."
    return None


def java_fault(returncode: int, printed: str, where: str) -> str | None:
    """
    Why Java with this `java -version` output is unsuitable, as a sentence; None if suitable.

    >>> java_fault(0, 'openjdk version "17.0.15" 2025-04-15', "eu/0")
    >>> java_fault(0, 'java version "1.8.0_292"', "eu/0")
    'Java on eu/0 is 8, and brokers of Kafka 4 need 17: apt-get install openjdk-17-jre-headless (Fedora: dnf \
install java-17-openjdk-headless).'
    """
    version = re.search(r'version "(?:1\.)?(\d+)', printed)
    if returncode or not version:
        lines = printed.strip().splitlines()
        detail = f", which says {lines[-1][:200]!r}" if lines else ""
        return f"there is no Java that works on {where}{detail}: {_GET_JAVA}."
    if int(version[1]) < OLDEST_JAVA:
        return f"Java on {where} is {version[1]}, and brokers of Kafka 4 need {OLDEST_JAVA}: {_GET_JAVA}."
    return None

"""Checks of parameters that Kafka's experiments share: replica placement, racks, client and topic settings."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wanbench.checks import refusal
from wanbench.errors import ParameterError
from wanbench.measure.kafka.access import names_secret

ACKS = ("0", "1", "all")
REGION = "region"
"""Value of client_rack for the client's own region: clusters of a lab name racks after regions."""
APART = "apart"
"""Name of a placement: on brokers that lead no partition of another topic."""
_SETTING_NAME = re.compile(r"[a-z][a-z0-9.-]*")


def check_placement(experiment: object, apart: bool = False) -> None:
    """
    Check that a placement names a node id per replica of each partition; store it as tuples.

    With `apart`, "apart" is allowed too.
    """
    placement, partitions, replication = experiment.placement, experiment.partitions, experiment.replication
    if placement is None or (apart and placement == APART):
        return
    if (
        not isinstance(placement, list | tuple)
        or len(placement) != partitions
        or not all(isinstance(nodes, list | tuple) and len(nodes) == replication for nodes in placement)
        or not all(type(node) is int for nodes in placement for node in nodes)
    ):
        allowed = f"{replication} node ids for each of {partitions} partitions{f', or {APART!r}' if apart else ''}"
        raise refusal(f"{type(experiment).__name__} placement", placement, allowed)
    object.__setattr__(experiment, "placement", tuple(map(tuple, placement)))


def check_rack(experiment: object) -> None:
    """Check that client_rack is None or one line of text."""
    rack = experiment.client_rack
    if rack is not None and (not isinstance(rack, str) or not rack or not rack.isprintable()):
        raise refusal(f"{type(experiment).__name__} client_rack", rack, f"None, {REGION!r} or the name of a rack")


def rack_of(client_rack: str | None, region: str) -> str | None:
    """The client.rack of a client in a region."""
    return region if client_rack == REGION else client_rack


def setting_pairs(experiment: object, parameter: str) -> tuple[tuple[str, str], ...]:
    """Kafka's settings as sorted pairs of text: comparable, hashable and serialisable."""
    settings = getattr(experiment, parameter)
    try:
        items = dict(settings).items()
    except (TypeError, ValueError):  # the value is not shown: it may be a secret
        raise ParameterError(
            f"{type(experiment).__name__} {parameter} is a {type(settings).__name__}; allowed: a mapping of names to "
            "values."
        ) from None
    texts = ((str(name), str(value).lower() if isinstance(value, bool) else str(value)) for name, value in items)
    return tuple(sorted(texts))


def check_settings(experiment: object, parameter: str, owned: Mapping[str, str | None]) -> None:
    """Reject Kafka settings that are secret, malformed, or `owned` by the experiment, with the reason given there."""
    label = f"{type(experiment).__name__} {parameter}"
    for key, value in getattr(experiment, parameter):
        if names_secret(key):  # before an error that shows the value
            raise ParameterError(
                f"{label} has {key!r}, a secret; the cluster has the clients' security, not the experiment."
            )
        if not _SETTING_NAME.fullmatch(key) or not value or "=" in value or not value.isprintable():
            raise ParameterError(
                f"{label} has {key!r}: {value!r}; names are such as 'fetch.min.bytes', values one line of text "
                "without '='."
            )
        if key in owned:
            raise ParameterError(f"{label} has {key!r}; {owned[key] or 'the load sets it itself'}.")

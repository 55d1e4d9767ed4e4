"""Whether the parameters of an experiment are as they must be: numbers, placements of replicas, racks, settings."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..errors import ParameterError
from ..kafka.security.secret import names_secret

_NAME = re.compile(r"[a-z][a-z0-9.-]*")
REGION = "region"
"""As a client.rack: that of the region in which the client runs, which is how a cluster of a lab names its racks."""
APART = "apart"
"""As the placement of a probe: led by brokers that lead no partition of another topic."""


def check_numbers(
    experiment: object,
    *bounds: tuple[str, float, float],
    whole: bool = False,
    optional: Collection[str] = (),
) -> None:
    """
    Refuse what is not a number from its least to its most.

    Parameters
    ----------
    bounds : tuples of (str, float, float)
        A parameter's name, the least and the most that it may be.
    whole : bool
        They must be whole numbers, of type int.
    optional : collection of str
        Names of those that may be None as well.

    Raises
    ------
    ParameterError
        Names the kind of experiment, the parameter, what was given and what is allowed.

    Examples
    --------
    >>> from wanbench.experiments import Ping
    >>> check_numbers(Ping(count=3), ("count", 1, 2), whole=True)
    Traceback (most recent call last):
        ...
    wanbench.errors.ParameterError: Ping count is 3; it must be a whole number from 1 to 2.
    """
    kinds, wanted = (int, "whole number") if whole else (int | float, "number")
    for name, least, most in bounds:
        value = getattr(experiment, name)
        if value is None and name in optional:
            continue
        if not isinstance(value, kinds) or isinstance(value, bool) or not least <= value <= most:
            most = f"{most:.15g}" if isinstance(most, float) else most
            raise ParameterError(
                f"{type(experiment).__name__} {name} is {value!r}; it must be a {wanted} from {least} to {most}."
            )


def check_placement(experiment: object, apart: bool = False) -> None:
    """
    Refuse a placement that does not name as many node ids for each partition as there are replicas; keep it as tuples.

    With `apart`, "apart" is allowed too.
    """
    placement, partitions, replication = experiment.placement, experiment.partitions, experiment.replication
    if apart and placement == APART:
        return
    if placement is not None and (
        not isinstance(placement, list | tuple)
        or len(placement) != partitions
        or not all(isinstance(each, list | tuple) and len(each) == replication for each in placement)
        or not all(type(node) is int for each in placement for node in each)
    ):
        raise ParameterError(
            f"{type(experiment).__name__} placement is {placement!r}; it must name {replication} node ids for each of "
            f"{partitions} partitions{f', or be {APART!r}' if apart else ''}."
        )
    if placement is not None:
        object.__setattr__(experiment, "placement", tuple(map(tuple, placement)))


def check_rack(experiment: object) -> None:
    """Refuse a client.rack that is neither None nor one line of text."""
    rack = experiment.client_rack
    if rack is not None and (not isinstance(rack, str) or not rack or not rack.isprintable()):
        raise ParameterError(
            f"{type(experiment).__name__} client_rack is {rack!r}; it must be None, {REGION!r} or the name of a rack."
        )


def rack_of(client_rack: str | None, region: str) -> str | None:
    """The client.rack of a client in a region."""
    return region if client_rack == REGION else client_rack


def setting_pairs(experiment: object, parameter: str) -> tuple[tuple[str, str], ...]:
    """A parameter's settings as sorted pairs of text: an experiment can be compared, hashed and written down."""
    settings = getattr(experiment, parameter)
    try:
        items = dict(settings).items()
    except (TypeError, ValueError):
        raise ParameterError(
            f"{type(experiment).__name__} {parameter} must map names of settings to values."
        ) from None
    spell = {True: "true", False: "false"}
    return tuple(
        sorted((str(name), spell[value] if isinstance(value, bool) else str(value)) for name, value in items)
    )


def check_settings(experiment: object, parameter: str, owned: Mapping[str, str | None]) -> None:
    """Refuse settings of Kafka that are secrets, malformed, or `owned` by the experiment, with the reason there."""
    of = type(experiment).__name__
    for key, value in getattr(experiment, parameter):
        if names_secret(key):  # before an error that shows the value
            raise ParameterError(
                f"{of} {parameter} has {key!r}, a secret; the cluster has the clients' security, not the experiment."
            )
        if not _NAME.fullmatch(key) or not value or "=" in value or not value.isprintable():
            raise ParameterError(
                f"{of} {parameter} has {key!r}: {value!r}; names are such as 'fetch.min.bytes', values one line of "
                "text without '='."
            )
        if key in owned:
            raise ParameterError(f"{of} {parameter} has {key!r}; {owned[key] or 'the load sets it itself'}.")

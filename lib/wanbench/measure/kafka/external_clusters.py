"""Several external clusters by name, from plain parameters such as those of a preset."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping

from wanbench.errors import ParameterError
from wanbench.measure.labs.base import Lab

from .external import ExternalCluster

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names of external clusters are parts of file names."""


def external_clusters(lab: Lab, given: Mapping[str, Mapping[str, object]]) -> dict[str, ExternalCluster]:
    """
    External clusters by name, not yet entered.

    Parameters
    ----------
    given : mapping of str to mappings
        Parameters of `ExternalCluster` by the cluster's name. No error shows a value, for it may be a secret.

    Raises
    ------
    ParameterError
        If a name or a parameter is not as described, or an environment variable is not set.
    """
    allowed = [name for name in inspect.signature(ExternalCluster).parameters if name not in ("lab", "name")]
    if not isinstance(given, Mapping):
        raise ParameterError(
            f"external is a {type(given).__name__}; allowed: names of clusters, each with a mapping of "
            f"{', '.join(allowed)}."
        )
    clusters = {}
    for name, parameters in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ParameterError(
                f"external has a cluster {name!r}; allowed: names of letters, digits, '.', '_' and '-', the first "
                "a letter or digit."
            )
        where = f"external cluster {name!r}"
        if not isinstance(parameters, Mapping):
            raise ParameterError(
                f"{where} is a {type(parameters).__name__}; allowed: a mapping of {', '.join(allowed)}."
            )
        if unknown := [str(key) for key in parameters if key not in allowed]:
            raise ParameterError(f"{where} has {', '.join(unknown)}; allowed: {', '.join(allowed)}.")
        try:
            clusters[name] = ExternalCluster(lab, name=name, **parameters)
        except ParameterError as error:
            raise ParameterError(f"{where}: {error}") from None
    return clusters

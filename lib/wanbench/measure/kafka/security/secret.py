"""Values that must never be shown, and settings whose names suggest such a value."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from wanbench.errors import ParameterError

HIDDEN = "(hidden)"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARN = re.compile(r"\barn:aws")
_SECRET_NAME = re.compile(
    r"passw|passphrase|secret|jaas|credential|token|private|user\.info|api[._-]?key|key\.pem$|\.key$", re.I
)


class Secret:
    """
    A secret value that shows only its source.

    >>> Secret("hunter2", "KAFKA_PASSWORD")
    <secret from KAFKA_PASSWORD>
    >>> f"{Secret('hunter2', 'KAFKA_PASSWORD')}"
    '<secret from KAFKA_PASSWORD>'
    """

    __slots__ = ("_value", "source")

    def __init__(self, value: str, source: str):
        self._value, self.source = value, source

    def reveal(self) -> str:
        """The value itself, for files of mode 0600 only."""
        return self._value

    def __repr__(self):
        return f"<secret from {self.source}>"

    def __reduce__(self):
        raise TypeError("a secret is not pickled")


def from_environment(parameter: str, variable: str) -> Secret:
    """
    The secret in an environment variable.

    Errors never repeat the argument, as it may be the secret itself.

    Parameters
    ----------
    parameter : str
        Name of the parameter that names the variable, for errors.
    variable : str
        Name of the variable.

    Raises
    ------
    ParameterError
        If the name is malformed, or the variable is not set, empty, or has more than one line.
    """
    if not isinstance(variable, str) or not _VARIABLE.fullmatch(variable):
        raise ParameterError(
            f"{parameter} is not the name of an environment variable; allowed: letters, digits and '_'."
        )
    value = os.environ.get(variable, "")
    if not value or "\n" in value or "\r" in value:
        raise ParameterError(
            f"{parameter} names an environment variable that is not set, or empty, or has several lines; "
            f"set it before starting, and give {parameter} its name, not its content."
        )
    return Secret(value, variable)


def names_secret(name: str) -> bool:
    """
    Whether a Kafka setting of that name may hold a secret.

    >>> [names_secret(name) for name in ("sasl.jaas.config", "ssl.keystore.password", "linger.ms", "ssl.keystore.key")]
    [True, True, False, True]
    """
    return bool(_SECRET_NAME.search(name))


def without_secrets(settings: Mapping[str, object]) -> dict[str, object]:
    """
    Settings with possibly secret values hidden, to show or keep; so are ARNs of AWS, which hold an account.

    >>> without_secrets({"linger.ms": 5, "ssl.key.password": "hunter2", "role": "arn:aws:iam::123456789012:role/x"})
    {'linger.ms': 5, 'ssl.key.password': '(hidden)', 'role': '(hidden)'}
    """
    return {
        name: HIDDEN if names_secret(name) or _ARN.search(str(value)) else value for name, value in settings.items()
    }


def refuse_secrets(settings: Mapping[str, object], instead: str) -> dict[str, object]:
    """The settings, if none may hold a secret; otherwise ParameterError, naming `instead` but no value."""
    if not isinstance(settings, Mapping) or not all(isinstance(name, str) for name in settings):
        raise ParameterError("settings must be a mapping of names to values.")
    if secrets := sorted(name for name in settings if names_secret(name)):
        raise ParameterError(f"settings may not hold secrets, so not {', '.join(secrets)}; use {instead} instead.")
    return dict(settings)

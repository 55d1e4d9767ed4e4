"""Whether the parameters of an experiment are numbers within their bounds."""

from __future__ import annotations

from collections.abc import Collection

from ..errors import ParameterError


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

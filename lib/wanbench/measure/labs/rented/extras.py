"""Packages that only hosts of one cloud need, and that are not installed with the rest."""

from __future__ import annotations

from importlib.util import find_spec


def installed(module: str) -> bool:
    """Whether a module can be imported; it is not, as that may take seconds."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def how_to_install(title: str, package: str, extra: str) -> str:
    """What to say if it is not."""
    return (
        f"Hosts on {title} need the package {package}: install the extra {extra}, in the checkout by "
        f"pip install './lib[{extra}]'."
    )

"""Other grids, and predictions of pairs that nobody measured, checked against them."""

from .other_surveys import check_elsewhere

__all__ = ["check_elsewhere"]

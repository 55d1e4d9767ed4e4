"""Analyses and figures that one page alone uses. A study imports methods; no method imports a study."""

"""Inflict faults on small studies, and check that nothing is lost, left or let through: `python -m torture`."""

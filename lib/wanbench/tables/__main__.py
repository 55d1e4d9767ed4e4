"""Prints the text of `data/README.md`."""

import sys

from .dictionary import data_readme

sys.stdout.write(data_readme())

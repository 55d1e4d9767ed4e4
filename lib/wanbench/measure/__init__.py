"""Measure: labs and their links, Kafka clusters, experiments, plans, and campaigns, which run plans on labs."""

from wanbench import submodules

__getattr__, __dir__ = submodules(__name__, "campaign experiments kafka labs links plan")

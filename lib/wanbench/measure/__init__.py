"""Open labs of hosts, with emulated links and Kafka clusters, and run plans of experiments on them."""

from wanbench import submodules

__getattr__, __dir__ = submodules(__name__, "campaign experiments kafka labs links plan")

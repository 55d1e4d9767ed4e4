"""
Kafka on the hosts of a lab: a cluster of our own, or one that runs elsewhere.

`experiments`, `measure` and notebooks may import it; it imports `errors`, `labs.base`, `runs` and `places`. A name is
loaded when it is first used, so that the programs of this package that run on hosts start soon.
"""

from importlib import import_module

_PLACES = {
    "Broker": "placement",
    "Cluster": "cluster",
    "ClusterError": "errors",
    "ExternalCluster": "external",
    "KafkaLab": "lab",
    "unavailable": "available",
}
__all__ = list(_PLACES)


def __getattr__(name):
    if name in _PLACES:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_PLACES)}")


def __dir__():
    return __all__

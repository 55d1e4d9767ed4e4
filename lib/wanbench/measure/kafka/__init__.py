"""
Run Kafka on the hosts of a lab, or use a cluster that runs elsewhere.

Submodules are imported on first use, because programs on hosts import this package and must start quickly.
"""

from importlib import import_module

_MODULES = {
    "Broker": "placement",
    "BrokerSize": "placement",
    "Cluster": "cluster",
    "ExternalCluster": "external",
    "KafkaLab": "lab",
    "Mirrored": "mirror",
    "unavailable": "java_commands",
}
__all__ = list(_MODULES)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(_MODULES)}")


def __dir__():
    return __all__

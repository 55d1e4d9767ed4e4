"""Everything that one page alone needs: what it measures (`design`), its analyses, figures and claims."""

from wanbench import submodules

__getattr__, __dir__ = submodules(
    __name__,
    "geo_kafka grids_and_predictions intercloud_2022 intercloud_throughput lab_calibration price_performance private_vs_internet region_loss rolling_and_degraded tail_latency",
)

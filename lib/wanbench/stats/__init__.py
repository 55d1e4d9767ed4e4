"""
Estimates with intervals from tidy tables. Imports `tables`, `findings`, `wording`, `errors`; never a lab.

`distance` (RTT and throughput on distance), `inflation` (path inflation, the physics check), `tcp` (the
window-limited model), `link` (requested against delivered), `simulate` (surveys with a known answer).
Pairs that share a region are never taken as independent: `dyadic` says how.
"""

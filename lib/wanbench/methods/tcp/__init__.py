"""
Models of TCP throughput: formulas, fits, and the window-limited model.

None of the loss models describes BBR, which sends at the rate it measures, and has no window that losses shrink.
"""

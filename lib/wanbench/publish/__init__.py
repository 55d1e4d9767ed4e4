"""
From notebooks to pages: check parameters, run notebooks, write HTML with offline figures.

The command line calls it. A notebook uses only `provenance`, which lists the runs behind its page.
"""

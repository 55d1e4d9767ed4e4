"""
From notebooks to pages: parameters checked, notebooks run, HTML with offline figures written.

Analysing bank: imports `errors`, `places`, `colophon`, `findings` and `runs`, never labs or experiments.
The command line calls it; notebooks need nothing of it, as `wanbench.publish.colophon` is all they say about their
page.
"""

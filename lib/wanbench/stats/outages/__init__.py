"""Outages from streams of acknowledgements and receipts: gaps, recovery, records lost, doubled or out of order."""

"""Drops and lateness where nothing was counted."""

from wanbench.pages.lab_calibration.drops import device_drops, lateness


def test_without_a_session_there_is_nothing_to_report():
    drops, late = device_drops([]), lateness([])
    assert drops.rows.empty and "at 0 of 0 devices in 0 runs" in str(drops)
    assert late.rows.empty and "does not report" in str(late)

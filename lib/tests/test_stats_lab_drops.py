"""Lateness where nothing was counted."""

from wanbench.pages.lab_calibration.drops import lateness


def test_without_a_session_there_is_nothing_to_report():
    late = lateness({})
    assert late.rows.empty and "does not report" in str(late)

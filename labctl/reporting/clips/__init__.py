"""Clips of a report: which moments are shown, and cutting them out of the videos."""

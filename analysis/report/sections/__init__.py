"""Sections of a report, each from the facts it is about."""

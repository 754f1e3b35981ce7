"""Telling two people apart: personal codes, and who spoke from which console."""

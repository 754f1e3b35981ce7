"""Sensors of a cell: a scale on a serial line, the wrench that a robot measures itself."""

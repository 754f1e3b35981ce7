"""Cells, emulated robots, and hands at a device."""

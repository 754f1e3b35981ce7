"""Simulated sensors, and an emulated one."""

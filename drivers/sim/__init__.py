"""Simulated robots, cameras, policies and people; replay, injected faults, and what every emulator shares. None
of it is hardware.
"""

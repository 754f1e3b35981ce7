"""Drivers: devices, simulated cells, controllers. They may use labctl.devices, clock and errors, and nothing above."""

"""Reasons that a protocol lists and a journal states, for whoever reads a journal without the schemas.

May not: import a schema.
"""

from __future__ import annotations

MACHINE_VOID_REASONS = ("arm_lost", "camera_lost", "controller_lost", "recorder_lost", "process_lost")
SENSOR_LOST, SENSOR_LIMIT = "sensor_lost", "sensor_limit"  # listed where a cell has such a sensor

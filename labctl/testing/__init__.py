"""The conformance suite that every driver passes, to run on a driver of your own with pytest (docs/howto/).

May not: be imported by anything of labctl that is not in this folder. Needs pytest.
"""

from __future__ import annotations

try:
    import pytest
except ModuleNotFoundError as error:
    from labctl.errors import MissingExtra

    raise MissingExtra("test", "labctl.testing") from error

SUITES = ("camera", "camera_rig", "controller", "driving", "gripper", "hand", "options", "robot", "robot_rig", "sensor")
pytest.register_assert_rewrite(*(f"{__name__}.{suite}" for suite in SUITES))  # a failure shows what was compared

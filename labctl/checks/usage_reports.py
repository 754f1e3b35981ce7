"""Which installed dependency would tell its makers how it is used, and whether it does where labctl has it.

May not: change a setting, or load the dependency.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

LIBREALSENSE = "RS2_RUM_CLOUD_ENABLED"  # read by librealsense from 2.59 on; `labctl.drivers.realsense` sets it to 0
ON = frozenset({"1", "true", "yes", "on"})


def reporting(installed: Callable[[str], bool], environment: Mapping[str, str], home: Path) -> tuple[list[str], str]:
    """What reports although labctl has it ([] unless the lab turned that on), and a sentence on all that would.

    installed: whether a module can be imported.
    """
    on, words = [], []
    if installed("pyrealsense2"):
        if environment.get(LIBREALSENSE, "").lower() in ON:
            on.append(f"librealsense ({LIBREALSENSE}={environment[LIBREALSENSE]})")
        words.append(f"librealsense may in other programs, unless {LIBREALSENSE}=0 is set; it counts in ~/.rum")
    if installed("rerun") and _rerun(environment, home):
        words.append("the command `rerun` would, until: rerun analytics disable")
    return on, f"off in what labctl starts{'; ' if words else ''}{'; '.join(words)}"


def _rerun(environment: Mapping[str, str], home: Path) -> bool:
    """Whether Rerun's own command reports: it does where nobody said otherwise."""
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / "rerun" / "analytics.json"
    try:
        return json.loads(settings.read_text("utf-8")).get("analytics_enabled") is not False
    except (OSError, ValueError, AttributeError, RecursionError):
        return True

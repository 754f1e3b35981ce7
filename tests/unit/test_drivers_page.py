"""docs/drivers.md lists every driver's options: run this file to write the page, run the test to hold it current."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from labctl.config.options import Options, allowed, schema_of
from labctl.devices import options_type
from labctl.drivers import BY_NAME

PAGE = Path(__file__).resolve().parents[2] / "docs" / "drivers.md"
HEAD = (
    "# Options of the drivers\n\n"
    "By the name that a cell or protocol file gives a driver. Robots: `[robot.options]`; a gripper: the robot's table "
    "`gripper`, with its `driver`; cameras: `[camera.options]`; devices in a hand: `[teleop.options]`, where "
    '`device = "gello"` is the driver `teleop_gello`; policies and people: `[arm.options]`. A unit is the end of a '
    "name: `_s` seconds, `_m` metres, `_rad` radians, `_hz` per second, `_kg`, `_n` newtons, `_nm` newton metres, "
    "`_k` kelvin.\n\n"
    "`labctl open` and `labctl doctor` check them, and name the line of a wrong one. Written by `make docs` from what "
    "the drivers declare. What drives a real robot, gripper, camera, sensor or hand's device is **unverified on "
    "hardware**: [what it was tried on](hardware.md).\n"
)
ROW = "| option | may be | default | |\n|---|---|---|---|\n"


def page() -> str:
    """The page as the drivers declare it now."""
    return HEAD + "".join(f"\n{section(name)}" for name in sorted(BY_NAME))


def section(driver: str) -> str:
    table = options_type(driver)
    assert table is not None and issubclass(table, Options)
    about = " ".join((table.__doc__ or "").split())
    fields = schema_of(table)
    if not fields:
        return f"## {driver}\nNo options.\n"
    required = {name for name, field in table.model_fields.items() if field.is_required()}
    rows = [
        f"| `{name}` | {_cell(allowed(s))} | {_default(name, s, required)} | {_cell(s.get('description', ''))} |"
        for name, s in fields.items()
    ]
    return f"## {driver}\n{about}\n\n{ROW}" + "\n".join(rows) + "\n"


def _default(name: str, schema: Any, required: set[str]) -> str:
    if name in required:
        return "must be there"
    value = schema.get("default")
    if value is None or value == "":
        return ""
    written = str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
    return f"`{written}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_page_lists_the_options_as_they_are_declared():
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_driver_has_a_section():
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in BY_NAME if f"\n## {name}\n" not in text] == []


if __name__ == "__main__":
    sys.stdout.write(page())

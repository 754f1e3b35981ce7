"""Which room of the house may import from which, from text and values to what a person types.

For each room, which rooms and modules of labctl it may import from, itself apart. A room is a folder by itself, without
those inside it; "" is the root. A folder without an entry fails (tests/unit/test_layering.py).
"""

from __future__ import annotations

BASE = (
    "axes",
    "plain",
    "bus",
    "messages",
    "clock",
    "devices",
    "doors",
    "errors",
    "logs",
    "loopback",
    "extras",
    "realtime",
    "requesting",
    "rotations",
    "streams",
    "times",
    "user_cache",
    "version",
)
# A driver gets the parsed cell and card, and declares its options as a strict table of the same kind: config is pure.
PARSED = ("config.axes", "config.cell_schema", "config.options", "config.policy_card", "config.values")
DRIVER = ("axes", "plain", "clock", "devices", "errors", "realtime", "rotations", "streams", *PARSED, "drivers.common")
ROBOT = (*DRIVER, "drivers.common.servo")
STATISTICS = ("errors", "analysis", "analysis.survival")
MEASURES = (
    "analysis",
    "analysis.blocks",
    "analysis.episodes",
    "analysis.episodes_report",
    "analysis.episodes_table",
    "analysis.operations_table",
    "analysis.planning",
    "analysis.report",
    "analysis.report.sections",
    "analysis.survival",
)
CORE = ("core", "core.recorded")
SCREEN = (*BASE, "ui", "core", "store.video")
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "": ("axes", "errors", "extras", "version", "messages.body_parts"),  # the shape of what `software` collects
    "config": ("axes", "plain", "errors", "streams", "times", "config.meanings"),
    "config.meanings": (),
    "messages": ("bus", "plain", "errors"),
    "core": ("bus", "plain", "messages", "clock", "errors", "rotations", "config", "core.recorded"),
    "core.recorded": ("plain", "messages", "clock", "errors", "rotations"),
    "store": (*BASE, "config", *CORE),
    "store.server": (*BASE, "config", *CORE, "store"),
    "store.media": (*BASE, "config", *CORE, "store", "store.server.beside", "store.server.host_record"),
    "store.verifying": (*BASE, "config", *CORE, "store", "store.media"),
    "joint": (*BASE, "config", *CORE, "store", "store.verifying"),
    "backup": (*BASE, *CORE, "store", "store.verifying"),
    "scene": (*BASE, "config", "core", "store", "store.verifying"),
    "nodes": (
        *BASE,
        "processes",
        "config.cell_schema",
        "config.policy_card",
        "config.sensors",
        "core",
        "scene",
        "store",
    ),
    "alerts": (*BASE, "config", "core", "store"),
    "people": (*BASE, "core", "store"),
    "runtime.hosting": (*BASE, "config.cell_schema", "config.sensors", "nodes", "store", "store.verifying"),
    "runtime": (
        *BASE,
        "software",
        "alerts",
        "config",
        "core",
        "joint",
        "nodes",
        "people",
        "runtime.hosting",
        "store",
        "store.verifying",
    ),
    "ui": SCREEN,
    "ui.console": SCREEN,
    "ui.rerun": SCREEN,
    "ui.review": (*SCREEN, "ui.console"),
    "viewing": (*BASE, *CORE, "store", "store.media", "store.verifying", "runtime.attach", "ui.rerun"),
    "pages": (*BASE, *CORE, "store", "store.media", "store.verifying", "viewing.status"),
    "reporting": (
        *(*BASE, "processes", "software", *MEASURES, "config", *CORE, "pages", "people.practised"),
        *("reporting.clips", "reporting.times", "store", "store.media", "store.verifying"),
    ),
    "reporting.clips": (*BASE, *MEASURES, *CORE, "store", "store.media", "store.verifying"),
    "reporting.cells": (
        *(*BASE, *MEASURES, "config", *CORE, "people", "reporting", "reporting.clips", "reporting.times", "store"),
        "store.verifying",
    ),
    "reporting.times": (*BASE, "analysis.report", *CORE, "store", "store.verifying"),
    "exports": (
        *(*BASE, "pieces", "processes", "config", *CORE, "reporting", "store", "store.media", "store.verifying"),
        "viewing",
    ),
    "publishing": (
        *(*BASE, "software", *MEASURES, "config", *CORE, "pages", "reporting", "reporting.cells"),
        *("publishing.cells", "store", "store.media", "store.verifying", "ui.rerun", "viewing"),
    ),
    "publishing.cells": (*(*BASE, *CORE, "joint", "publishing", "reporting.cells", "store", "store.verifying"),),
    "checks": (
        *BASE,
        "processes",
        "software",
        "people",
        *("analysis", "analysis.blocks", "analysis.episodes", "analysis.operations_table"),
        "analysis.survival",
        "config",
        *CORE,
        "exports",
        "nodes",
        "runtime",
        "runtime.hosting",
        "store",
        "store.server",
        "store.verifying",
    ),
    "checks.site": (
        *(*BASE, "analysis", "analysis.blocks", "analysis.episodes", "analysis.operations_table"),
        *("analysis.survival", "checks", "config", "store"),
    ),
    "queue": (
        *(*BASE, "processes", "alerts", "checks", "config", *CORE, "exports", "nodes", "publishing"),
        *("reporting.times", "store", "store.verifying"),
    ),
    "analysis": ("errors",),
    "analysis.survival": (*STATISTICS, "user_cache"),
    "analysis.binary": STATISTICS,
    "analysis.blocks": (*STATISTICS, "analysis.binary"),
    "analysis.operations_table": STATISTICS,
    "analysis.episodes": (*STATISTICS, "analysis.binary", "analysis.operations_table"),
    "analysis.episodes_table": (*STATISTICS, "analysis.binary", "analysis.blocks"),
    "analysis.episodes_report": (
        *STATISTICS,
        "analysis.binary",
        "analysis.blocks",
        "analysis.episodes_table",
        "analysis.report",
        "analysis.report.sections",
    ),
    "analysis.planning": (*STATISTICS, "analysis.binary", "analysis.operations_table"),
    "analysis.report": (*STATISTICS, "analysis.binary", "analysis.report.sections"),
    "analysis.report.sections": (*STATISTICS, "analysis.binary", "analysis.report"),
    "drivers": ("errors",),
    "drivers.bridges": (),
    "drivers.common": DRIVER,
    "drivers.common.servo": DRIVER,
    "drivers.franka": ROBOT,
    "drivers.opencv": DRIVER,
    "drivers.pair": DRIVER,
    "drivers.policy": DRIVER,
    "drivers.realsense": DRIVER,
    "drivers.robotiq": DRIVER,
    "drivers.sensors": DRIVER,
    "drivers.sim.axes": (*DRIVER, "drivers.sim"),
    "drivers.sim": (
        *DRIVER,
        "core.published_state",
    ),  # its operator reads what a console does, by the same types
    "drivers.teleop": DRIVER,
    "drivers.ros2": ROBOT,
    "drivers.ur": ROBOT,
    "drivers.franka.emulator": (*DRIVER, "drivers.franka", "drivers.sim"),
    "drivers.robotiq.emulator": ("clock", "drivers.sim"),
    "drivers.ros2.emulator": (*DRIVER, "drivers.ros2", "drivers.sim"),
    "drivers.ur.emulator": (*DRIVER, "drivers.robotiq.emulator", "drivers.sim", "drivers.ur"),
    "testing": ("axes", "plain", "clock", "devices", "errors", "streams", "config.cell_schema", "config.options"),
    "fixtures": (),
    "hw_configs": (),
    "protocols": (),
}
MAY_IMPORT["api"] = (
    *(*BASE, "software", "analysis", *MEASURES, "config", *CORE, "exports", "reporting", "store", "store.verifying"),
)
NOT_IMPORTED = ("api", "drivers", "testing")  # what is found by name, and what only tests need
MAY_IMPORT["cli"] = (
    *BASE,
    *(room for room in MAY_IMPORT if room and not room.startswith(NOT_IMPORTED)),
    "processes",
    "cli.contract",
    "cli.publishing",
    "cli.queueing",
    "software",
    "pieces",
)
MAY_IMPORT["cli.contract"] = (*MAY_IMPORT["cli"], "cli")
MAY_IMPORT["cli.keeping"] = (*MAY_IMPORT["cli"], "cli")
MAY_IMPORT["cli.planning"] = (*MAY_IMPORT["cli"], "cli")
MAY_IMPORT["cli.queueing"] = (*MAY_IMPORT["cli"], "cli")
MAY_IMPORT["cli.publishing"] = (*MAY_IMPORT["cli"], "cli")

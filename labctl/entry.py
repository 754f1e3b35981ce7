"""The one module that loads the statistics, the report and the Rerun views, by name, for the command line.

May not: be imported by anything but `labctl.cli`, `labctl.reporting`, `labctl.showing` and
`labctl.static_screen`; hold any logic of its own.
"""

from __future__ import annotations

import importlib
from types import ModuleType


def analysis(name: str) -> ModuleType:
    """The module `labctl.analysis.<name>`."""
    return importlib.import_module(f"labctl.analysis.{name}")


def ui(name: str) -> ModuleType:
    """The module `labctl.ui.<name>`; a vendor viewer it needs may be missing (ModuleNotFoundError)."""
    return importlib.import_module(f"labctl.ui.{name}")

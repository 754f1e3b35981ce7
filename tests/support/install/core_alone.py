"""labctl as `pip install labctl` leaves it: a process in which no extra's modules can be imported. Run it with the
extras that may be (or "-"), and what is typed after labctl.

May not: import anything of labctl's before that.
"""

from __future__ import annotations

import sys

from labctl.extras import BROUGHT_BY

WITH = {"report": ("PIL",)}  # matplotlib brings it


def main(extras: str, *typed: str) -> None:
    """Runs one command and leaves the process with its exit code."""
    for module, extra in BROUGHT_BY.items():
        if extra not in extras.split(",") and module not in WITH.get(extras, ()):
            sys.modules[module] = None  # type: ignore[assignment]  # Python's own way to say that there is none
    from labctl.cli import main as labctl

    labctl(typed)


if __name__ == "__main__":
    main(*sys.argv[1:])

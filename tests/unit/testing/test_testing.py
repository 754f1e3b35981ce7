"""The shipped conformance suite: what it needs is reported in one line."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["pytest"] = None
from labctl.errors import MissingExtra
try:
    import labctl.testing.robot
except MissingExtra as error:
    print(error)
"""


def test_without_pytest_the_suite_names_the_extra_that_brings_it() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout == "labctl.testing needs an optional dependency: pip install 'labctl[test]'\n"

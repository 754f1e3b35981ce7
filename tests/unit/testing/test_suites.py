"""The conformance suite says what it compared, whichever of its modules a check stands in."""

from __future__ import annotations

import ast
from pathlib import Path

from labctl import testing


def test_every_module_of_the_suite_that_asserts_is_rewritten_so_that_a_failure_shows_what_was_compared():
    """`hand` was missing: its failures said "assert False" and nothing more."""
    modules = {path.stem: ast.parse(path.read_text("utf-8")) for path in Path(testing.__file__).parent.glob("*.py")}
    asserting = {name for name, tree in modules.items() if any(isinstance(one, ast.Assert) for one in ast.walk(tree))}
    assert asserting <= set(testing.SUITES)

"""What `make test` installs and runs has no JavaScript in it: pyright and its node belong to `make lint` alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NODE = ("pyright", "nodejs", "node")


def installed(*extras: str) -> set[str]:
    """What pip is asked for by labctl with some extras, and by those that they name in turn."""
    found = set()
    for line in [*DECLARED["dependencies"], *(line for e in extras for line in DECLARED["optional-dependencies"][e])]:
        name, _, more = re.split("[<>=;~! ]", line)[0].partition("[")
        given = tuple(part.strip() for part in more.rstrip("]").split(",") if part.strip())
        found |= installed(*given) if name == "labctl" else {name, *given}
    return found


def steps(target: str) -> str:
    """The commands of a target of the Makefile."""
    text = (ROOT / "Makefile").read_text("utf-8")
    found = re.search(rf"^{target}:[^\n]*\n((?:\t[^\n]*\n)+)", text, re.MULTILINE)
    assert found is not None, target
    given = dict(re.findall(r"^(\w+) \??= (.*)$", text, re.MULTILINE))
    return re.sub(r"\$\((\w+)\)", lambda name: given.get(name[1], name[0]), found[1])


def test_the_environment_of_the_tests_has_no_node() -> None:
    assert not installed("test") & set(NODE) and "pytest" in installed("test")
    assert {"pyright", "nodejs"} <= installed("lint"), "the type checker brings its own node"


def test_make_test_calls_no_type_checker_and_make_lint_does() -> None:
    assert "pyright" not in steps("test") and "[lint]" not in steps("test") and "pytest" in steps("test")
    assert "pyright" in steps("lint") and "[lint]" in steps("lint")

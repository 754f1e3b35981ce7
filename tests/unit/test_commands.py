"""What each command of the Makefile runs: nothing is in none of them, and CONTRIBUTING.md tells all."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from harness.left_out import WHOLE

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
MARKERS = {line.partition(":")[0] for line in PYPROJECT["tool"]["pytest"]["ini_options"]["markers"]}
APART = {"privileged", "interop", "hardware", "benchmark"}  # those that have a command or a section of their own


def recipe(target: str) -> str:
    """The lines of a target, with variables put in."""
    lines = MAKEFILE.partition(f"\n{target}:")[2].partition("\n\n")[0]
    for name, value in re.findall(r"^(\w+) \??= (.*)$", MAKEFILE, re.MULTILINE):
        lines = lines.replace(f"$({name})", value)
    return lines


def test_what_make_test_leaves_out_make_test_all_runs() -> None:
    usual = " and ".join(f"not {marker}" for marker in ("privileged", "interop", "hardware", "benchmark"))
    assert f'-m "not thorough and {usual}"' in recipe("test")
    assert f'-m "thorough and not alone and {usual}"' in recipe("test-rest")
    assert f'--tx popen --dist loadscope -m "alone and {usual}"' in recipe("test-rest")
    assert recipe("test-all").split() == ["test", "test-rest", "test-lowest", "lint"]
    assert "-m privileged" in recipe("test-root")
    assert MARKERS - {"thorough", "real_time", "busy", "alone"} == APART, (
        "a new marker needs a command, and a line in CONTRIBUTING.md"
    )


@pytest.mark.parametrize(("folder", "marker"), sorted(WHOLE.items()))
def test_a_folder_that_is_left_out_whole_has_only_tests_of_its_marker(folder: str, marker: str) -> None:
    files = [path for path in (ROOT / "tests" / folder).rglob("*.py") if path.name.startswith(("test_", "bench_"))]
    assert len(files) > 10
    for path in files:
        tree = ast.parse(path.read_text())
        if any(isinstance(node, ast.Assign) and f"mark.{marker}" in ast.unparse(node) for node in tree.body):
            continue
        tests = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test")]
        unmarked = [
            test.name for test in tests if f"mark.{marker}" not in " ".join(map(ast.unparse, test.decorator_list))
        ]
        assert unmarked == [], path


def test_what_runs_alone_is_thorough_or_it_would_run_twice() -> None:
    """`make test` does not leave out what has no marker but `alone`."""
    for path in (ROOT / "tests").rglob("test_*.py"):
        text = path.read_text()
        assert "mark.alone" not in text or "mark.thorough" in text or path == Path(__file__).resolve(), path


def test_continuous_integration_runs_all_of_it() -> None:
    script = (ROOT / ".ci/run").read_text()
    assert script.count("make test PYTHON=") == script.count("make test\n") == 1
    assert script.count("make test-rest test-lowest lint") == 2 and "make test-root" in script


def test_each_marker_and_each_peer_has_its_line_in_the_guide() -> None:
    for marker in MARKERS:
        assert f"`{marker}`" in GUIDE, marker
    for peer in re.findall(r"^(peer-[\w-]+):", (ROOT / "tests/interop/peers.mk").read_text(), re.MULTILINE):
        assert f"make {peer}" in GUIDE, peer
    for folder in ("unit", "conformance", "system", "interop", "benchmarks", "emulators", "support", "harness"):
        assert f"tests/{folder}/" in GUIDE, folder


def test_no_test_is_repeated_until_it_passes() -> None:
    told = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("*.py") if path != Path(__file__).resolve())
    named = [*PYPROJECT["project"]["optional-dependencies"]["test"], *(ROOT / "constraints.txt").read_text().split()]
    assert not re.search(r"mark\.flaky|reruns=", told)
    assert not [name for name in named if re.match("pytest-(rerunfailures|retry|flaky|timeout)|flaky", name)]


def test_bytecode_is_kept_and_ci_keeps_it() -> None:
    assert "\nunexport PYTHONDONTWRITEBYTECODE\n" in MAKEFILE
    assert "env -u PYTHONDONTWRITEBYTECODE" in (ROOT / ".ci/run").read_text()


def test_an_old_python_is_named_with_what_to_type(tmp_path: Path) -> None:
    """It ended in pip's ResolutionImpossible."""
    old = tmp_path / "python3.10"
    old.write_text('#!/bin/sh\n[ "$1" = -c ] && exit 1\necho Python 3.10.13\n')
    old.chmod(0o755)
    words = ["make", "-s", f"VENV={tmp_path / 'venv'}", f"PYTHON={old}", "demo"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and not (tmp_path / "venv").exists()
    said = done.stderr.splitlines()[0]
    assert said.startswith("labctl needs Python 3.11 or newer, and") and "is Python 3.10.13" in said
    assert said.endswith("make PYTHON=python3.12 demo")

"""Everything that numba compiles stands in one file: numba's cache on disk notices no change of another."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
COMPILED = "analysis/survival/kernel_compiled.py"


def compiles(source: str) -> bool:
    """Does a module name numba anywhere but in its texts?"""
    tree = ast.parse(source)
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return any(name.split(".")[0] == "numba" for name in imported)


def test_numba_is_imported_by_one_file_alone() -> None:
    modules = [path for folder in ("labctl", "analysis", "drivers", "ui") for path in (ROOT / folder).rglob("*.py")]
    found = [str(path.relative_to(ROOT)) for path in modules if compiles(path.read_text(encoding="utf-8"))]
    assert found == [COMPILED]


def test_an_import_of_numba_is_seen_wherever_it_stands() -> None:
    assert compiles("def f():\n    import numba as nb\n") and compiles("from numba import njit\n")
    assert not compiles("'import numba'\nimport numbers\n")

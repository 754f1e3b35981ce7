"""Counts what the type checker cannot look behind: `Any` and `object` in annotations, casts, ignored lines.

    python tests/loose_types.py          a table by folder
    python tests/loose_types.py FOLDER   the places in one folder

May not: count what stands in a docstring, a comment or an import.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WINGS = ("labctl", "drivers", "analysis", "ui")
KINDS = ("Any", "object", "cast", "ignore")
IGNORED = re.compile(r"#\s*(type|pyright):\s*ignore")


def loose(text: str) -> Iterator[tuple[str, int]]:
    """(kind, line) of each place of a module's text."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for annotation in _annotations(node):
            for part in ast.walk(annotation):
                if isinstance(part, ast.Name) and part.id in ("Any", "object"):
                    yield part.id, part.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast":
            yield "cast", node.lineno
    for number, line in enumerate(text.splitlines(), 1):
        if IGNORED.search(line):
            yield "ignore", number


def _annotations(node: ast.AST) -> list[ast.expr]:
    """Of arguments, results and variables, and the right side of an alias of types: `Row = dict[str, Any]`."""
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        return [node.annotation]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
        return [node.returns]
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
        return [node.value]
    return []


def counted(folder: str) -> Counter[str]:
    """How many of each kind the modules of a folder of the repository have."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    return Counter(kind for path in paths for kind, _ in loose(path.read_text()))


def main() -> None:
    """See the module."""
    if len(sys.argv) > 1:
        for path in sorted((ROOT / sys.argv[1]).rglob("*.py")):
            for kind, number in sorted(loose(path.read_text()), key=lambda place: place[1]):
                print(f"{path.relative_to(ROOT)}:{number}: {kind}")
        return
    folders = [wing for wing in WINGS if wing != "labctl"]
    folders += sorted(str(path.parent.relative_to(ROOT)) for path in ROOT.glob("labctl/*/__init__.py"))
    print(f"{'':20}" + "".join(f"{kind:>8}" for kind in KINDS))
    for folder in [*folders, "labctl"]:
        found = counted(folder)
        print(f"{folder:20}" + "".join(f"{found[kind]:8}" for kind in KINDS))


if __name__ == "__main__":
    main()

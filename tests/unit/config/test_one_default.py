"""The default of an option stands in its schema alone: nothing else gives a value of that name one of its own.

Found are parameters, fields of classes and `.get("name", value)`, by the name and the value of a default in
`labctl/config`. What is false, empty or zero is no choice that somebody could make anew.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("labctl", "drivers", "analysis", "ui")
SCHEMAS = ("labctl/config/",)
# Where a name means something else, or the value is history: path (or its first folder) and name -> why.
OTHERWISE: Mapping[tuple[str, str], str] = {
    ("analysis/", "alpha"): "a leaf: it knows no schema, and its callers may say no level",
    ("labctl/cli/planning/power_times.py", "alpha"): "the same: of an option of the command line",
    ("labctl/core/record.py", "help"): "what campaigns did before it could be declared, whatever is the default now",
    ("labctl/core/record.py", "voids"): "the same",
    ("labctl/core/record.py", "early_ends"): "the same",
    ("labctl/store/linking.py", "camera_lost"): "the same",
    ("labctl/store/linking.py", "early_end"): "the same",
    ("labctl/store/linking.py", "takeover"): "the same",
    ("labctl/devices.py", "starts"): "of an answer by a controller that has no card",
    ("labctl/pages/playable.py", "preset"): "of what a browser cannot play, coded again",
}


def literal(node: ast.AST | None) -> object:
    """The number or text of a default; None for what is none, or is false or empty."""
    try:
        value = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) and value else None


def defaults(source: str) -> Iterator[tuple[str, object, int]]:
    """(name, value, line) of every default that a module gives to a parameter, to a field of a class or to a key."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(args=args):
                last = [*args.posonlyargs, *args.args][len(args.posonlyargs) + len(args.args) - len(args.defaults) :]
                for arg, given in (
                    *zip(last, args.defaults, strict=True),
                    *zip(args.kwonlyargs, args.kw_defaults, strict=True),
                ):
                    yield arg.arg, literal(given), node.lineno
            case ast.ClassDef(body=body):
                for line in body:
                    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                        yield line.target.id, literal(line.value), line.lineno
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), given]):
                yield name, literal(given), node.lineno
            case ast.Dict(keys=keys, values=values):
                for key, given in zip(keys, values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, literal(given), node.lineno


def seconds(sources: Mapping[str, str], excepted: Collection[tuple[str, str]] = ()) -> list[str]:
    """Where a default of a schema is given once more, a line for each; sources: a module's text by its path."""
    found = {path: list(defaults(source)) for path, source in sources.items()}
    first = {(name, value): path for path in found if path.startswith(SCHEMAS) for name, value, _ in found[path]}
    return [
        f"{path}:{line} gives {name} = {value!r} once more, after {first[name, value]}"
        for path in found
        if not path.startswith(SCHEMAS)
        for name, value, line in found[path]
        if value is not None
        and (name, value) in first
        and not {(path, name), (f"{path.partition('/')[0]}/", name)} & {*excepted}
    ]


def texts() -> dict[str, str]:
    paths = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted(paths)}


@pytest.mark.thorough
def test_no_default_is_given_a_second_time() -> None:
    assert seconds(texts(), OTHERWISE) == []


@pytest.mark.thorough
def test_nobody_is_excepted_who_gives_none() -> None:
    found = seconds(texts())
    assert [key for key in OTHERWISE if not any(line.startswith(key[0]) and key[1] in line for line in found)] == []


@pytest.mark.parametrize(
    "source",
    [
        "def write(path, crf=23): ...",
        "def write(path, *, crf: int = 23): ...",
        "class Coding:\n    crf: int = 23",
        "crf = video.get('crf', 23)",
        "USUAL = {'crf': 23}",
    ],
)
def test_a_planted_second_default_is_named(source: str) -> None:
    schema = "class Video:\n    crf: Annotated[int, Field(ge=0)] = 23"
    (found,) = seconds({"labctl/config/cell_schema.py": schema, "labctl/store/video.py": source})
    assert found.startswith("labctl/store/video.py:") and "crf = 23" in found


def test_another_value_another_name_and_what_is_handed_on_are_none() -> None:
    schema = "class Video:\n    crf: int = 23\n    slow: bool = False"
    source = "def write(crf=20, quality=23, slow=False, **video): ...\nwrite(crf=23)"
    assert seconds({"labctl/config/cell_schema.py": schema, "labctl/store/video.py": source}) == []

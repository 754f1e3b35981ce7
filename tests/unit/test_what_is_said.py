"""What labctl says to people: defects of messages that can be stated as rules, looked for in every text of the product.

May not: judge a sentence. Each rule is shown planted offences first, so that none is asleep.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from labctl.core.events import Kind
from labctl.core.trial_table import CANNOT, cannot
from labctl.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("labctl", "drivers", "analysis", "ui")
KINDS = "|".join(kind.value for kind in Kind if len(re.findall("[A-Z]", kind.value)) > 1)
# rule -> what no text may hold; a text is as written, with {expression} for what is put in
RULES: dict[str, re.Pattern[str]] = {
    "the name of a journal entry's class": re.compile(rf"\b({KINDS})\b"),
    "a kind of entry for what cannot be done": re.compile(r"\{event\.kind\}(?! *\()"),
    "an exception as Python writes it": re.compile(r"\{(error|exc|exception)!r\}"),
    "a refusal without why": re.compile(r"\brefused$"),
    "a block that is counted from 0": re.compile(r"\bblock \{(?!.*\+ 1\})[^}]*\bblock\b[^}]*\}"),
    "a path in a command that a blank would break": re.compile(
        r"(\bcd |\blabctl (new|show|open|doctor|teleop|backup|restore) ([^{};]* )?)\{(?!shlex\.quote)[^}]*"
        r"\b(folder|path|save|file|out|parent|named|backups)\b(?!\.name)[^}]*\}"
        r"|(--(lab|protocol) |\bchmod \d+ )\{(?!shlex\.quote|file\b|lab\b)[^}]*\}"
    ),
    # "3 of {n} episodes" is let pass, and so is what there cannot be one of; a count is said by plain.count
    "a number before a noun that is always plural": re.compile(
        r"(?<!of )(?<!and )(?<!per arm )"
        r"\{(?!count\(|counted\(|[A-Z_]+\}|max\(|rates\}|len\((tested|episodes)\)|most\})[^{}]*\} "
        r"(evenings|episodes|trials|blocks|pairs|sessions|videos|streams|recordings|entries|photos|chunks|gaps|frames|"
        r"samples|items|changes|files|keyframes|objects|sets|units|evaluators)\b"
    ),
    "a plural in brackets": re.compile(r"[a-z]\(s\)"),
}
PLANTED = {
    "the name of a journal entry's class": 'raise StateError("CampaignReviewed refused: it is frozen")',
    "a kind of entry for what cannot be done": 'raise StateError(f"{event.kind} refused: {why}")',
    "an exception as Python writes it": 'raise BrokenRecord(f"it cannot be read: {error!r}")',
    "a refusal without why": 'raise InputError(f"{verb} refused")',
    "a block that is counted from 0": "click.echo(f\"next: trial {t}, block {current['block']}\")",
    "a number before a noun that is always plural": 'click.echo(f"in {hours.sessions} evenings")',
    "a plural in brackets": 'click.echo(f"{n} gap(s)")',
    "a path in a command that a blank would break": 'click.echo(f"next: cd {folder} && labctl plan")',
}


def texts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every text that is said: given to a raise or to a call that says, warns or refuses."""
    for node in ast.walk(tree):
        said = node.exc if isinstance(node, ast.Raise) else node
        if isinstance(said, ast.Call) and (isinstance(node, ast.Raise) or _says(said)):
            for part in [*said.args, *(keyword.value for keyword in said.keywords)]:
                for text in ast.walk(part):
                    if isinstance(text, ast.JoinedStr):
                        yield text.lineno, _written(text)
                    elif isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield text.lineno, text.value


def drawn(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of all that a module of the screens holds but its docstrings: what it says goes through tables,
    constants and what a function returns before it is drawn.
    """
    about = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docs = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, about) and _has_doc(node)}  # type: ignore[attr-defined]
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)} - {
        id(node) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)
    }
    for node in ast.walk(tree):
        if id(node) in docs or id(node) in parts:
            continue
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, _written(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _has_doc(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return ast.get_docstring(node, clean=False) is not None


def _says(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in ("echo", "say", "refusal", "Problem", "_need", "InputError", "StateError", "BrokenRecord")


def _written(text: ast.JoinedStr) -> str:
    def part(value: ast.expr) -> str:
        if isinstance(value, ast.FormattedValue):
            how = f"!{chr(value.conversion)}" if value.conversion > 0 else ""
            return f"{{{ast.unparse(value.value)}{how}}}"
        return str(value.value) if isinstance(value, ast.Constant) else ""

    return "".join(map(part, text.values))


def offences(source: str, rule: str) -> list[str]:
    return [f"{line}: {text}" for line, text in texts(ast.parse(source)) if RULES[rule].search(text)]


@cache
def said() -> dict[str, list[tuple[int, str]]]:
    """Every text that is said, by module."""
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    modules = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}
    return {name: list((drawn if name.startswith("ui/") else texts)(tree)) for name, tree in modules.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES)
def test_no_message_has(rule: str):
    assert offences(PLANTED[rule], rule), "the rule is asleep"
    found = [f"{path}:{line}: {text}" for path, own in said().items() for line, text in own]
    assert [text for text in found if RULES[rule].search(text)] == []


def test_what_cannot_be_done_is_said_in_words_for_every_kind_of_entry():
    assert set(CANNOT) == set(Kind)
    wrong = [
        text
        for text in CANNOT.values()
        if not re.fullmatch(
            r"[a-z' ]+ cannot [a-z' ]+|no [a-z]+ can [a-z' ]+|"
            r"no [a-z]+ can be [a-z' ]+",
            text,
        )
    ]
    assert wrong == []
    assert cannot("CampaignReviewed") == "the review cannot be finished"
    assert "Later" in cannot("Later"), "of a journal that a later version wrote"


def test_what_stands_in_somebody_elses_file_ends_no_line_and_commands_no_terminal() -> None:
    assert str(InputError("column 'a\nb\x1b[2J' appears twice", where="t.csv:1")) == (
        "t.csv:1: column 'a b\\x1b[2J' appears twice"
    )

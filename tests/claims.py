"""Which test holds which promise: README's table and the "Held by" of each decision, printed and checked.

May not: import or run a test (what there is and how it is marked is read from syntax trees), or let a promise pass that
names neither a test nor a reason why there is none.

    make claims        prints them as a Markdown table, and what is wrong
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README, DECISIONS = "README.md", "docs/decisions"
TABLE, SECTION = "## What it promises, and the test that tries to break it", "## Held by"
BY_HAND, NOT_TESTED = "by hand", "not tested"
# What runs a test that has a marker; the first that fits. Whoever has none is run by the first command.
RUN_BY = {
    "interop": "pytest -m interop",
    "hardware": "pytest -m hardware",
    "benchmark": "pytest -m benchmark",
    "privileged": "make test-root",
    "thorough": "make test-all",
}
COMMANDS = ("make test", *reversed(RUN_BY.values()))
ROUTINE = {"make test", "make test-all"}
NEVER = {"skip", "xfail"}

REST = re.compile(rf":\s+(?={BY_HAND}:|{NOT_TESTED}:|`tests/)")
TICKED = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
Marked = dict[str, frozenset[str]]  # tests of a file -> their markers


@dataclass(frozen=True)
class Claim:
    """A promise as its page makes it. `word` is "", BY_HAND or NOT_TESTED; `why` is the reason of the last."""

    source: str
    text: str
    tests: tuple[str, ...]
    word: str = ""
    why: str = ""


def claim_of(source: str, text: str, rest: str) -> Claim:
    """A claim and what stands behind it."""
    word = next((word for word in (BY_HAND, NOT_TESTED) if rest.startswith(f"{word}:")), "")
    named = () if word == NOT_TESTED else tuple(TICKED.findall(rest))
    why = rest.removeprefix(f"{word}:").strip() if word == NOT_TESTED else ""
    return Claim(source, LINK.sub(r"\1", text).strip(), named, word, why)


def section(text: str, heading: str) -> list[str] | None:
    """The lines below a heading, up to the next; None without it."""
    lines = text.splitlines()
    if heading not in lines:
        return None
    below = lines[lines.index(heading) + 1 :]
    end = next((n for n, line in enumerate(below) if line.startswith("#")), len(below))
    return [line.rstrip() for line in below[:end]]


def promised(source: str, text: str) -> Iterator[Claim | str]:
    """The claims of README's table; what is wrong with it as text."""
    rows = [line for line in section(text, TABLE) or [] if line.startswith("|")]
    if len(rows) < 3:
        yield f'{source}: there is no table below "{TABLE}"'
    for row in rows[2:]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) == 2:
            yield claim_of(source, *cells)
        else:
            yield f"{source}: this row has {len(cells)} cells, not 2: {row}"


def decided(source: str, text: str) -> Iterator[Claim | str]:
    """The claims of a decision page; what is wrong with its section as text."""
    lines = section(text, SECTION)
    if lines is None:
        yield f'{source}: there is no section "{SECTION}"'
        return
    bullets: list[str] = []
    for line in lines:
        if line.startswith("* "):
            bullets.append(line[2:])
        elif line.startswith("  ") and bullets:
            bullets[-1] += " " + line.strip()
        elif line:
            yield f'{source}: this line of "{SECTION}" is no claim ("* the claim: `tests/…::test_…`"): {line}'
    if not bullets:
        yield f'{source}: "{SECTION}" holds no claim'
    for bullet in bullets:
        yield claim_of(source, *(*REST.split(bullet, maxsplit=1), "")[:2])


def read_tests(source: str) -> Marked:
    """The tests of a module and the markers each has for sure, from its text."""
    tree = ast.parse(source)
    named = {name: node for node in tree.body for name, node in _assigned(node)}
    module = _markers(named["pytestmark"], named) if "pytestmark" in named else frozenset()
    found: Marked = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            found[node.name] = module.union(*(_markers(one, named) for one in node.decorator_list))
    found |= {name: module for name in named if name.startswith("Test")}  # a state machine's TestCase
    suites = dict(_suites(tree))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            marked = module.union(*(_markers(one, named) for one in node.decorator_list))
            for base in (suites[base.id] for base in node.bases if isinstance(base, ast.Name) and base.id in suites):
                found |= dict.fromkeys(base, marked)
    return found


def _suites(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """The classes of the shipped conformance suite that a module imports, and the tests of each."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("labctl.testing."):
            shipped = ast.parse((ROOT / f"{str(node.module).replace('.', '/')}.py").read_text("utf-8"))
            wanted = {alias.name for alias in node.names}
            for suite in shipped.body:
                if isinstance(suite, ast.ClassDef) and suite.name in wanted:
                    defined = [one.name for one in suite.body if isinstance(one, ast.FunctionDef)]
                    yield suite.name, [name for name in defined if name.startswith("test_")]


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    for target in targets:
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            yield target.id, node.value


def _markers(node: ast.expr, named: dict[str, ast.expr]) -> frozenset[str]:
    """Markers in an expression: `pytest.mark.x`, a call of it, a list, a name of one in this module. Of parameters only
    those that every set has: a test of which some cases are marked still runs without them.
    """
    if isinstance(node, ast.Name) and node.id in named:
        return _markers(named[node.id], {name: value for name, value in named.items() if name != node.id})
    if isinstance(node, ast.List | ast.Tuple):
        return frozenset().union(*(_markers(one, named) for one in node.elts))
    if isinstance(node, ast.Call):
        found = _markers(node.func, named)
        if "parametrize" in found and len(node.args) > 1:
            found |= _of_all_sets(node.args[1], named)
        return found
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pytest.mark":
        return frozenset({node.attr})
    return frozenset()


def _of_all_sets(sets: ast.expr, named: dict[str, ast.expr]) -> frozenset[str]:
    sets = _resolved(sets, named)
    if not isinstance(sets, ast.List | ast.Tuple) or not sets.elts:
        return frozenset()
    marks = []
    for one in (_resolved(one, named) for one in sets.elts):
        given = {word.arg: word.value for word in one.keywords} if isinstance(one, ast.Call) else {}
        marks.append(_markers(given["marks"], named) if "marks" in given else frozenset())
    return frozenset.intersection(*marks)


def _resolved(node: ast.expr, named: dict[str, ast.expr]) -> ast.expr:
    return named.get(node.id, node) if isinstance(node, ast.Name) else node


def command(markers: frozenset[str]) -> str:
    """What runs a test with these markers."""
    return next((told for marker, told in RUN_BY.items() if marker in markers), COMMANDS[0])


class Survey:
    """Every claim of a checkout, the commands that run its tests, and what is wrong, one line each."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files: dict[str, Marked | None] = {}
        self.claims: list[Claim] = []
        self.problems: list[str] = []
        self._take(promised(README, (root / README).read_text("utf-8")))
        for page in sorted((root / DECISIONS).glob("[0-9]*.md")):
            self._take(decided(f"{DECISIONS}/{page.name}", page.read_text("utf-8")))
        for claim in self.claims:
            self.problems += self._wrong(claim)

    def _take(self, found: Iterable[Claim | str]) -> None:
        for one in found:
            if isinstance(one, Claim):
                self.claims.append(one)
            else:
                self.problems.append(one)

    def commands(self, claim: Claim) -> list[str]:
        """What runs the tests of a claim, the nearest at hand first; empty without any."""
        found = {command(markers) for test in claim.tests for markers in self._found(test)[0]}
        return sorted(found, key=COMMANDS.index)

    def named(self, test: str) -> str:
        """A test as the page names it; of a whole file with their number, so that one that is gone shows."""
        return f"`{test}`" if "::" in test else f"`{test}` ({len(self._found(test)[0])})"

    def _found(self, test: str) -> tuple[list[frozenset[str]], str]:
        """The markers of each test function that `file` or `file::name` means; what is wrong when there is none."""
        file, _, name = test.partition("::")
        if file not in self._files:
            path = self._root / file
            known = re.fullmatch(r"(test|bench)_\w+\.py", path.name) and path.is_file()
            self._files[file] = read_tests(path.read_text("utf-8")) if known else None
        tests = self._files[file]
        if tests is None:
            return [], f"there is no test file {file}"
        found = list(tests.values()) if not name else [tests[name]] if name in tests else []
        if not found:
            return [], f"there is no {name or 'test'} in {file}"
        found = [markers for markers in found if not markers & NEVER]
        return found, "" if found else f"{test} is skipped, or expected to fail"

    def _wrong(self, claim: Claim) -> Iterator[str]:
        where = f"{claim.source}: {claim.text}"
        missing = [problem for _, problem in map(self._found, claim.tests) if problem]
        yield from (f"{where}: {problem}" for problem in missing)
        commands = self.commands(claim)
        if claim.word == NOT_TESTED:
            if not claim.why:
                yield f"{where}: not tested, and no reason is given"
        elif not claim.tests:
            yield f"{where}: no test holds it"
        elif not missing and not ROUTINE & set(commands) and claim.word != BY_HAND:
            yield f'{where}: only tests that are run by hand hold it; say "{BY_HAND}:" before them'
        elif claim.word == BY_HAND and ROUTINE & set(commands):
            yield f'{where}: it says "{BY_HAND}:", and `{commands[0]}` runs a test of it'


def table(survey: Survey) -> str:
    """All claims as Markdown. Behind a file stands how many tests it has."""
    sources = Counter(claim.source for claim in survey.claims)
    nearest = Counter((*survey.commands(claim), NOT_TESTED)[0] for claim in survey.claims)
    counted = ", ".join(f"`{name}` {nearest[name]}" for name in COMMANDS if nearest[name])
    decisions = f"{len(survey.claims) - sources[README]} of {len(set(sources) - {README})} decisions"
    lines = [
        f"{len(survey.claims)} claims: {sources[README]} of README.md, {decisions}. By the nearest command:",
        f"{counted}; {NOT_TESTED} {nearest[NOT_TESTED]}.",
        "",
        "| claim | of | held by | run by |",
        "|---|---|---|---|",
    ]
    for claim in survey.claims:
        held = "<br>".join(map(survey.named, claim.tests)) or f"{NOT_TESTED}: {claim.why}"
        run = "<br>".join(f"`{name}`" for name in survey.commands(claim))
        lines.append(f"| {claim.text} | {_name(claim.source)} | {held} | {run} |")
    return "\n".join(lines) + "\n"


def _name(source: str) -> str:
    return source if source == README else Path(source).name.split("-")[0]


def main() -> int:
    """Print the table, then what is wrong on stderr. 1 when anything is."""
    survey = Survey(ROOT)
    print(table(survey), end="")
    for problem in survey.problems:
        print(problem, file=sys.stderr)
    return 1 if survey.problems else 0


if __name__ == "__main__":
    sys.exit(main())

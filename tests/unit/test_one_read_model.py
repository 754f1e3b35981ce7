"""What a journal recorded is derived in one place: no other module looks at the kinds of its events or walks them.

Who needs to know what happened reads the record (`labctl.core.record`). The few that look at events are named here,
each with its reason.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from labctl.core.events import Kind

ROOT = Path(__file__).resolve().parents[2]
OF_EVENTS = re.compile(r"(Sequence|Iterable|list|tuple)\[Event(, \.\.\.)?\]")
KEEPS = ("list", "tuple", "sorted", "reversed", "iter", "enumerate")  # of events they make events
FOLDERS = ("labctl", "ui", "drivers", "analysis")
LOOKS_AT_EVENTS = {
    "labctl/core/record_fold.py": "the record itself",
    "labctl/core/event_bodies.py": "which form the body of each kind has",
    "labctl/core/trial.py": "the state, which decides what may follow",
    "labctl/core/trial_table.py": "the same, of one trial",
    "labctl/core/recovery.py": "concludes from the last entries what a crash left",
    "labctl/core/timeline.py": "a line of text for each entry, and the phases and holds between them",
    "labctl/store/journal.py": "the chain itself: each entry against the one before",
    "labctl/store/chain_heads.py": "heads that were kept, against the entries they name",
    "labctl/store/verifying/timestamps.py": "stamps of heads, and how long after each entry they were given",
    "labctl/store/verifying/verify.py": "digests of whatever is there, also where a history cannot be folded",
    "labctl/store/verifying/recordings.py": "the same",
    "labctl/store/verifying/opened_seal.py": "the same, against what was opened",
    "labctl/store/server/copying.py": "which recordings the entries that it sends seal, and whether they unblind",
    "labctl/store/media/held.py": "which files were sealed, stored and removed, also where no history can be folded",
    "labctl/store/problem.py": "hands each entry to what verifies it",
    "labctl/store/ledger.py": "holds the sealed digest of each entry against what was opened",
    "labctl/store/scene_references.py": "what a scene is held against as of any entry, also while a run writes them",
    "labctl/core/run_facts.py": "counts on with each entry as a run writes it, for its screen",
    "labctl/checks/bugreport.py": "says which kinds there are, and replaces whoever any entry names",
    "labctl/joint/checking.py": "the seal host's entries against each cell's, both of which may be forged",
    "labctl/joint/state.py": "the state of a seal host, which decides what may follow",
    "labctl/joint/seal_host.py": "with which head a cell joined",
    "labctl/queue/entries.py": "the queue's own journal, whose entries are of other kinds",
    "labctl/people/qualifications.py": "a journal of its own, of sites and assessors",
    "labctl/publishing/check.py": "a stranger's entries, each against its published line, before anything is folded",
    "labctl/publishing/cells/check.py": "strangers' parts against each other, which may be forged",
    "labctl/publishing/cells/seal_record.py": "names in a stranger's entries, before anything goes by them",
    "labctl/publishing/leaving_out.py": "the files that entries hold digests of, whether they are published or not",
    "labctl/publishing/names.py": "names in a stranger's entries, before anything goes by them",
    "labctl/publishing/tables.py": "writes each entry as a line",
    "labctl/publishing/typed_texts.py": "under which key of each entry a person's words stand, which all go along",
    "labctl/runtime/campaign_run.py": "a simulated clock goes on after the newest entry",
    "labctl/runtime/campaign_writer.py": "keeps heads and counts keys with each entry as the run writes it",
}


def names_kind(node: ast.AST) -> bool:
    """Whether Kind.X stands in it."""
    parts = (part.value for part in ast.walk(node) if isinstance(part, ast.Attribute))
    return any(isinstance(part, ast.Name) and part.id == "Kind" for part in parts)


def kind_as_text(node: ast.Compare) -> bool:
    """Whether `.kind` is compared with the text of an event's kind."""
    sides = [part for side in (node.left, *node.comparators) for part in ast.walk(side)]
    texts = {part.value for part in sides if isinstance(part, ast.Constant) and isinstance(part.value, str)}
    return bool(texts & set(Kind)) and any(isinstance(part, ast.Attribute) and part.attr == "kind" for part in sides)


def reads_a_journal(node: ast.AST) -> bool:
    """Whether it calls events_of(...), or `events` of a campaign or a journal."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "events_of":
            return True
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "events":
            return "robot" not in ast.unparse(part.func.value) and "inner" not in ast.unparse(part.func.value)
    return False


def called_events(tree: ast.AST) -> set[str]:
    """Names that a module gives to events it has read, or that it is handed as `Sequence[Event]` and its like; what is
    assigned from such a name is one, too.
    """
    names = {
        part.arg
        for part in ast.walk(tree)
        if isinstance(part, ast.arg)
        and part.annotation is not None
        and OF_EVENTS.fullmatch(ast.unparse(part.annotation))
    }
    assigned = [
        (target, part.value)
        for part in ast.walk(tree)
        if isinstance(part, ast.Assign | ast.AnnAssign | ast.NamedExpr) and part.value is not None
        for target in (part.targets if isinstance(part, ast.Assign) else [part.target])
        if isinstance(target, ast.Name)
    ]
    before = -1
    while before != len(names):
        before = len(names)
        names |= {target.id for target, value in assigned if is_events(value, names)}
    return names


def is_events(value: ast.AST, names: set[str]) -> bool:
    """Whether a value is events, as they were read or some of them: not what a function made of them."""
    if isinstance(value, ast.Name):
        return value.id in names
    if isinstance(value, ast.Call):
        if isinstance(value.func, ast.Name) and value.func.id in KEEPS:
            return any(is_events(arg, names) for arg in value.args)
        return reads_a_journal(ast.Expression(value)) and not any(reads_a_journal(arg) for arg in value.args)
    if isinstance(value, ast.Subscript):
        return isinstance(value.slice, ast.Slice) and is_events(value.value, names)
    return False


def folds(path: str, source: str) -> list[str]:
    """Where a module derives something from events, a line for each place; [] for one that may."""
    found, tree = [], ast.parse(source)
    named = called_events(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Compare() if any(map(names_kind, (node.left, *node.comparators))) or kind_as_text(node):
                found.append(f"line {node.lineno} compares the kind of an event")
            case ast.match_case(pattern=pattern) if names_kind(pattern):
                found.append(f"line {pattern.lineno} matches the kind of an event")
            case ast.Dict(keys=keys) if any(key is not None and names_kind(key) for key in keys):
                found.append(f"line {node.lineno} has a table by kinds of events")
            case ast.Set(elts=kinds) if any(map(names_kind, kinds)):
                found.append(f"line {node.lineno} has a set of kinds of events")
            case ast.For(iter=walked) | ast.comprehension(iter=walked) if reads_a_journal(walked) or is_events(
                walked, named
            ):
                found.append(f"line {walked.lineno} walks a journal")
    return [] if path in LOOKS_AT_EVENTS else found


def modules() -> list[str]:
    return sorted(str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))


@pytest.mark.thorough
def test_what_a_journal_recorded_is_derived_in_one_place():
    assert {path: found for path in modules() if (found := folds(path, (ROOT / path).read_text("utf-8")))} == {}


@pytest.mark.parametrize("path", LOOKS_AT_EVENTS)
def test_nobody_is_excepted_who_reads_no_event(path: str):
    assert folds("", (ROOT / path).read_text("utf-8"))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("if event.kind == Kind.GAP: pass", "compares"),
        ("gaps = [e.body for e in events if e.kind in (Kind.GAP, Kind.NOTE)]", "compares"),
        ("if event.kind == 'Gap': pass", "compares"),
        ("match event.kind:\n    case Kind.GO | Kind.GAP: pass", "matches"),
        ("words = {Kind.GO: 'went'}[event.kind]", "a table"),
        ("SHOWN = frozenset({Kind.GO})", "a set"),
        ("for event in campaign.events(): pass", "walks"),
        ("last = max(event.at_ns for event in self.campaign.journal.events())", "walks"),
        ("found = [event.body for event in events_of(folder)]", "walks"),
        ("events = campaign.events()\nlast = [event for event in events]", "walks"),
        ("kept = list(campaign.events())\nlater = kept[1:]\nfor event in reversed(later): pass", "walks"),
        ("def last(entries: Sequence[Event]):\n    return max(entry.at_ns for entry in entries)", "walks"),
    ],
)
def test_a_planted_fold_is_named(source: str, expected: str):
    (found,) = folds("labctl/viewing/status.py", source)
    assert expected in found


@pytest.mark.parametrize(
    "source",
    [
        "desk.log(Kind.GAP, gap)",
        "if message.kind == 'obs': pass",
        "record = record_of(campaign.events())",
        "record = record_of(campaign.events())\nfor episode in record.episodes: pass",
        "events = campaign.events()\nentries = attempt(events, episode)\nfor line in lines_of(entries): pass",
        "for event in self._robot.events(): pass",
        "for event in recording.episode.events: pass",
    ],
)
def test_who_writes_an_event_or_passes_them_on_derives_nothing(source: str):
    assert folds("labctl/viewing/status.py", source) == []

"""docs/journal.md is generated from the forms of event bodies: run this file to write it, the tests to see that it is
current and that journals, also old ones, have the keys that the forms say.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import NotRequired, get_origin, get_type_hints

import pytest

from labctl.core import evening_bodies, event_bodies
from labctl.core.event_bodies import FORMS
from labctl.core.events import Kind
from labctl.messages import body_parts
from labctl.store.journal import events_of

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "journal.md"
KEPT = ROOT / "tests" / "campaigns"
HEAD = """# The journal

What each kind of entry records, generated (`make docs`) from the typed forms in `labctl/core/event_bodies.py` and
`evening_bodies.py`.

Every entry has a number `seq`, its `kind`, the time `at_ns` on the clock of boot `boot`, the same moment as `wall`
time, `who` wrote it, and the `trial` and the `episode` where it concerns one; `prev` and `hash` chain it to the one
before, which `labctl verify` computes again.

A key with a question mark is missing where it does not apply, and in campaigns from before it existed.
"""


def keys_of(form: type) -> dict[str, bool]:
    """The keys of a form, and whether each must be there."""
    hints = get_type_hints(form, include_extras=True)
    return {key: get_origin(hint) is not NotRequired for key, hint in hints.items()}


def entries(form: type) -> str:
    """The keys of a form with their types, as one cell of a table."""
    types = {key: getattr(hint, "__forward_arg__", hint) for key, hint in form.__annotations__.items()}
    shown = []
    for key, must in keys_of(form).items():
        text = str(types[key]).removeprefix("NotRequired[").removesuffix("" if must else "]")
        shown.append(f"`{key}{'' if must else '?'}: {text}`".replace("|", "\\|"))
    return "<br>".join(shown)


def table(first: str, forms: dict[str, type]) -> str:
    lines = [f"| {first} | what | keys |", "|---|---|---|"]
    for name, form in forms.items():
        lines.append(f"| {name} | {' '.join((inspect.getdoc(form) or '').split())} | {entries(form)} |")
    return "\n".join(lines) + "\n"


def parts() -> dict[str, type]:
    own = {name: one for name, one in vars(body_parts).items() if inspect.isclass(one)}
    return {name: one for name, one in own.items() if one.__module__ == body_parts.__name__}


def page() -> str:
    kinds = {str(kind): form for kind, form in FORMS.items()}
    return "\n".join([HEAD, "## Kinds\n", table("kind", kinds), "## What they are made of\n", table("part", parts())])


def test_the_page_of_the_journal_is_what_the_forms_say():
    assert PAGE.read_text("utf-8") == page(), "run: make docs"


def test_every_kind_of_event_has_a_form():
    assert list(FORMS) == list(Kind)


def one_of(one: object, module: ModuleType) -> bool:
    return getattr(one, "__module__", "") == module.__name__


def test_no_form_is_there_for_nothing():
    written = (event_bodies, evening_bodies)
    own = {n for module in written for n, one in vars(module).items() if one_of(one, module)}
    assert own - {form.__name__ for form in FORMS.values()} == {"Form", "body_of"}


@pytest.mark.parametrize("folder", sorted(path.parent for path in KEPT.rglob("journal.db")), ids=lambda path: path.name)
def test_a_campaign_recorded_before_has_the_keys_of_the_forms(folder: Path):
    for event in events_of(folder):
        keys = keys_of(FORMS[Kind(event.kind)])
        lacking = [key for key, must in keys.items() if must and key not in event.body]
        assert (lacking, sorted(set(event.body) - set(keys))) == ([], []), f"{event.seq} {event.kind}"


if __name__ == "__main__":
    sys.stdout.write(page())

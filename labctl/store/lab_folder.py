"""The lab folder: finding it, reading the files in it, and making a new one.

May not: understand what a file says (`labctl.config` does), or write into a campaign.
"""

from __future__ import annotations

import difflib
import importlib.resources
import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from labctl import times
from labctl.errors import InputError, StateError
from labctl.store.database_backend import PUBLISHED

if TYPE_CHECKING:  # whoever finds a campaign to read does not wait for the schemas
    from labctl.config.cell_schema import Cell, Fixture, Lab
    from labctl.config.protocol_schema import Protocol

MARK = "lab.toml"
MOVED = "lab.moved"  # where a lab was, which is elsewhere now (`labctl lab move`)
ARRIVING = f"{MARK}.arriving"  # what lab.toml is called in the new place until the old one is marked
JOURNAL = "journal.db"
MODULES = "LABCTL_MODULES"  # read by `labctl.drivers`: PYTHONPATH would go before the standard library
SCHEMAS = "schemas"  # in a lab: what editors read
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

# file in a new lab -> the packaged file it is copied from, and what kind of file it is
STARTER = {
    MARK: ("labctl", "templates/lab.toml", "lab"),
    "cells/sim_fr3.toml": ("labctl.hw_configs", "sim_fr3.toml", "cell"),
    "fixtures/two_totes.toml": ("labctl.fixtures", "two_totes.toml", "fixture"),
    "protocols/first.toml": ("labctl", "templates/first.toml", "protocol"),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A protocol with the fixture and the policy cards it names, and the exact text of all (they are frozen into a
    campaign). `cards`: a card's name as the protocol writes it -> its text.
    """

    path: Path
    protocol: Protocol
    protocol_text: str
    fixture_path: Path
    fixture: Fixture
    fixture_text: str
    cards: Mapping[str, str] = field(default_factory=dict[str, str])


def find_lab(given: Path | None = None, *, start: Path | None = None) -> Path:
    """The lab folder: the one given, else $LABCTL_LAB, else the nearest parent of `start` that holds a lab.toml.

    `start` is the current folder unless given. Raises InputError when there is no lab, StateError where one was moved
    away from.
    """
    folder = _find_lab(given, start)
    admit_zone(folder)
    return folder


def lab_if_any(given: Path | None) -> Path | None:
    """The lab folder as `find_lab` has it; None where none is named and none is here or above. Raises as it does for
    one that is named, by --lab or by $LABCTL_LAB: a slip is not passed over.
    """
    try:
        return find_lab(given)
    except InputError:
        if given is not None or os.environ.get("LABCTL_LAB"):
            raise
        return None


def refuse_moved(folder: Path) -> None:
    """Raises StateError where a lab was that has been moved, or is not yet: what lies there must not go on."""
    for place in (folder, *folder.parents):
        if (place / MOVED).is_file():
            where = ""
            with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
                where = f" to {json.loads((place / MOVED).read_text('utf-8'))['to']}"
            raise StateError(f"{place}: this lab was moved{where} ({MOVED}); go on there")
        if (place / MARK).is_file():
            return
        if (place / ARRIVING).is_file():
            again = "the same command again, labctl lab move NEW-FOLDER --lab OLD-FOLDER, ends it or says how"
            raise StateError(f"{place}: a move of a lab to here was broken off ({ARRIVING}); {again}")


def _find_lab(given: Path | None, start: Path | None) -> Path:
    named = given or (Path(os.environ["LABCTL_LAB"]) if os.environ.get("LABCTL_LAB") else None)
    if named is not None:
        refuse_moved(named.resolve())
        if not (named / MARK).is_file():
            source = "--lab" if given else "$LABCTL_LAB"
            raise InputError(
                f"{source} is {named}, which holds no {MARK}; make a lab with: labctl new {shlex.quote(str(named))}"
            )
        return named.resolve()
    try:
        here = (start or Path.cwd()).resolve()
    except FileNotFoundError as error:
        raise InputError("the current folder is gone; go into a lab folder, or name one with --lab DIR") from error
    refuse_moved(here)
    for folder in (here, *here.parents):
        if (folder / MARK).is_file():
            return folder
    how = "go into a lab folder, name one with --lab DIR, or make one with: labctl new DIR"
    raise InputError(f"no {MARK} in {here} or above it; {how}")


def lab_settings(folder: Path) -> Lab:
    """The settings of the lab that a campaign folder lies in; the defaults when it lies in none. Raises InputError."""
    from labctl.config.cell_schema import Lab

    lab = lab_with(folder)
    return Lab() if lab is None else settings_of(lab)


def settings_of(lab: Path) -> Lab:
    """The settings of a lab folder, files of a media store's by their whole path. Raises InputError."""
    from labctl.config.cell_schema import parse_lab

    path = lab / (ARRIVING if (lab / ARRIVING).is_file() and not (lab / MARK).is_file() else MARK)
    found = parse_lab(read_text(path), str(path))
    if found.media is not None and found.media.certificates is not None:
        at = {"certificates": str(lab.resolve() / found.media.certificates)}
        return found.model_copy(update={"media": found.media.model_copy(update=at)})
    return found


def admit_modules(lab: Path | None) -> None:
    """Let Python find modules that lie beside a lab.toml, here and in processes started from here; after all others,
    so that none of these is hidden by one of the lab's.
    """
    if lab is None:
        return
    folder = str(lab.resolve())
    if folder not in sys.path:
        sys.path.append(folder)
    os.environ[MODULES] = folder


def admit_zone(lab: Path | None) -> None:
    """Say times in the zone that a lab.toml names, here and in processes started from here. A file that does not hold
    is for whoever reads its settings to refuse: a run can be stopped all the same.
    """
    named: object = None
    if lab is not None:
        with suppress(OSError, ValueError, RecursionError):
            named = tomllib.loads((lab / MARK).read_text("utf-8")).get("timezone")
    times.use(named if isinstance(named, str) and named.isprintable() else None)


def lab_with(folder: Path) -> Path | None:
    """The lab that a campaign folder lies in; None when it lies in none. A published folder is no part of the lab that
    it lies in, and has none: whoever made it is not trusted. One that is being moved to here is a lab to whoever
    verifies what arrived; that nothing goes on in it is for `refuse_moved`.
    """
    for above in folder.resolve().parents:
        if (above / PUBLISHED).is_file():
            return None
        if (above / MARK).is_file() or (above / ARRIVING).is_file():
            return above
    return None


def strangers(folder: Path) -> bool:
    """Whether a campaign folder lies in a published one: nothing that its files name is imported."""
    return any((above / PUBLISHED).is_file() for above in folder.resolve().parents)


def campaigns(lab: Path) -> list[Path]:
    """The campaign folders of a lab, by name. Raises InputError for one that cannot be looked into: passed over, it
    would be missing from a backup or a verification without a word.
    """
    return [folder for folder in _inside(lab / "campaigns") if _is_there(folder / JOURNAL)]


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error) from error


def _is_there(journal: Path) -> bool:
    try:
        journal.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if _NAME.fullmatch(journal.parent.name) is None:  # lost+found
            return False
        raise _unreadable(journal.parent, error) from error
    return True


def _unreadable(folder: Path, error: OSError) -> InputError:
    remedy = "give them the right to (chmod, chown), or move the folder out of the lab"
    return InputError(f"{folder}: {error.strerror}; whoever uses a lab must be able to read its campaigns: {remedy}")


def check_name(what: str, name: str) -> None:
    """Raises InputError for a name that a campaign's folder may not have."""
    if not _NAME.fullmatch(name) or len(name) > 100:
        raise InputError(f"{what} name {name!r}: use up to 100 letters, digits, '.', '_', '-', first a letter or digit")


def campaign_folder(named: str | None, lab: Path | None = None) -> Path:
    """The folder of a campaign given by its path, by its name in the lab, or (None) as the only one of the lab. Modules
    beside its lab.toml can be imported from then on.

    Raises InputError that lists what there is.
    """
    folder = _campaign_folder(named, lab)
    admit_modules(lab_with(folder))
    admit_zone(lab_with(folder))
    return folder


def _campaign_folder(named: str | None, lab: Path | None) -> Path:
    if named is not None and (Path(named) / JOURNAL).is_file():
        refuse_moved(Path(named).resolve())
        return Path(named).resolve()
    folder = find_lab(lab)
    if named is not None and ((inside := folder / "campaigns" / named) / JOURNAL).is_file():
        return inside
    known = campaigns(folder)
    if named is None:
        if len(known) == 1:
            return known[0]
        if not known:
            raise InputError(f"{folder}: no campaign yet; start one with: labctl open PROTOCOL.toml --cell CELL.toml")
        raise InputError(f"which campaign? {folder} has: {', '.join(path.name for path in known)}")
    names = ", ".join(path.name for path in known) or "none yet"
    if (folder / "joint" / named / JOURNAL).is_file():
        raise InputError(f"{named} is a joint campaign: labctl joint status {named}; its cells' are among: {names}")
    if (protocol := folder / "protocols" / f"{Path(named).name}.toml").is_file():
        open_it = f"labctl open {shlex.quote(str(as_seen(protocol)))} --cell CELL.toml"
        raise InputError(f"no campaign {named!r} in {folder} yet; its protocol is opened by: {open_it}")
    near = difflib.get_close_matches(named, [path.name for path in known], n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"no campaign {named!r} in {folder}{meant}; campaigns: {names}")


def as_seen(path: Path) -> Path:
    """From the folder in which a command is given, where it lies in there."""
    with suppress(FileNotFoundError, ValueError):  # that folder is gone, or it lies elsewhere
        return path.relative_to(Path.cwd())
    return path


def read_text(path: Path) -> str:
    """The text of a user's file. Raises InputError when it is missing, a folder, unreadable or not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"no such file{_neighbours(path)}", where=str(path)) from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text (byte {error.start}); save it as UTF-8", where=str(path)) from error
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); check its permissions", where=str(path)) from error


def read_cell(path: Path, *, frozen: bool = False) -> Cell:
    """A cell file, validated (frozen: a campaign's own); its lab's modules can be imported. Raises InputError."""
    from labctl.config.cell_schema import parse_cell

    admit_modules(lab_with(path))
    return parse_cell(read_text(path), str(path), frozen=frozen)


def read_fixture(path: Path) -> Fixture:
    """A fixture file, validated. Raises InputError."""
    from labctl.config.cell_schema import parse_fixture

    return parse_fixture(read_text(path), str(path))


def packaged_fixture() -> Path:
    """The two totes that ship with labctl."""
    return Path(str(importlib.resources.files("labctl.fixtures").joinpath("two_totes.toml")))


def read_plan(path: Path) -> Plan:
    """A protocol, the fixture and the policy cards it names (relative to its folder), validated. Raises InputError."""
    from labctl.config.cell_schema import parse_fixture
    from labctl.config.conditions import check_new
    from labctl.config.protocol_schema import check_against_fixture, parse_protocol
    from labctl.core.task import reported_by_episodes

    admit_modules(lab_with(path))
    text = read_text(path)
    protocol = parse_protocol(text, str(path))
    if (alpha := protocol.analysis.alpha) > 0.5:  # one that is sealed stays as it is
        other = f"for intervals of {100 * alpha:g} % write {1 - alpha:.3g}"
        said = f"alpha is the share of false alarms, and {alpha:g} is none; {other}"
        raise protocol.refusal(("analysis", "alpha"), said)
    if protocol.analysis.looks is not None and reported_by_episodes([task.measure for task in protocol.tasks]):
        said = "a look at several tasks, or at one not in items, is not there yet, and planning it costs p at the end"
        raise protocol.refusal(("analysis", "looks"), f"{said}; take [analysis.looks] out")
    fixture_path = path.parent / protocol.protocol.fixture
    if not fixture_path.is_file():
        line = next((n for n, row in enumerate(text.splitlines(), 1) if row.strip().startswith("fixture")), None)
        where = f"{path}:{line}" if line else str(path)
        named = protocol.protocol.fixture
        raise InputError(f"fixture {named!r} is no file{_neighbours(fixture_path)}", where=where)
    fixture_text = read_text(fixture_path)
    fixture = parse_fixture(fixture_text, str(fixture_path))
    check_against_fixture(protocol, fixture, str(path))
    check_new(protocol, fixture)
    return Plan(path, protocol, text, fixture_path, fixture, fixture_text, _read_cards(path.parent, protocol))


def _read_cards(folder: Path, protocol: Protocol) -> dict[str, str]:
    """The texts of the policy cards that arms name, each validated and of its controller's dialect."""
    from labctl.config.policy_card import parse_card

    cards: dict[str, str] = {}
    for index, arm in enumerate(protocol.arm):
        at = ("arm", index, "options", "card")
        name = arm.options.get("card")
        speaks = arm.controller.removeprefix("policy_") if arm.controller.startswith("policy_") else None
        if name is None:
            if speaks:
                text = f'{arm.controller} needs a policy card: [arm.options] card = "cards/NAME.toml"'
                raise protocol.refusal(("arm", index, "controller"), text)
            continue
        if not isinstance(name, str):
            raise protocol.refusal(at, f"card is {name!r}; name a file, relative to the protocol's folder")
        if not (folder / name).is_file():
            raise protocol.refusal(at, f"card {name!r} is no file{_neighbours(folder / name)}")
        cards[name] = read_text(folder / name)
        card = parse_card(cards[name], str(folder / name))
        if speaks not in (None, card.policy.dialect):
            text = f"{arm.controller} speaks {speaks}, its card says {card.policy.dialect!r}"
            raise protocol.refusal(at, f"{text}; use policy_{card.policy.dialect} or another card")
    return cards


def new_lab(folder: Path, robots: Sequence[str] = (), cards: Sequence[str] = ()) -> list[Path]:
    """Make a lab folder with a cell, a fixture and a protocol, all commented, and the schemas by which an editor
    completes and checks them (their first line says so); return the files written. robots: further cells, of
    hw_configs/ by their names; cards: policy cards, of protocols/cards/ by theirs; where a lab is already, these files
    alone are written.

    Raises InputError when a file to be written is there already: nothing is overwritten, nothing is half made.
    """
    from labctl.config.reference import FILES, schema_text

    added = bool(robots or cards) and (folder / MARK).is_file()
    texts = {} if added else {f"{SCHEMAS}/{kind}.json": schema_text(kind) for kind in FILES}
    more = {f"cells/{name}.toml": ("labctl.hw_configs", f"{name}.toml", "cell") for name in robots}
    more |= {f"protocols/cards/{name}.toml": ("labctl.protocols", f"cards/{name}.toml", "card") for name in cards}
    for name, (package, resource, kind) in (more if added else STARTER | more).items():
        header = f"#:schema {'../' * name.count('/')}{SCHEMAS}/{kind}.json\n"
        texts[name] = header + importlib.resources.files(package).joinpath(resource).read_text(encoding="utf-8")
    other = "give it another name first" if added else "choose another folder"
    if present := [name for name in (*texts, MOVED, ARRIVING) if (folder / name).exists()]:
        raise InputError(f"{folder / present[0]} is there already; {other}, nothing was written")
    folders = dict.fromkeys([*((folder / name).parent for name in texts), folder / "campaigns"])
    if in_the_way := [up for path in folders for up in (path, *path.parents) if up.exists() and not up.is_dir()]:
        raise InputError(f"{in_the_way[0]} is no folder, and a lab has one there; {other}, nothing was written")
    made: list[Path] = []
    try:
        for path in folders:
            for up in reversed([up for up in (path, *path.parents) if not up.exists()]):
                up.mkdir(exist_ok=True)
                made.append(up)
        for name, text in texts.items():
            with (folder / name).open("x", encoding="utf-8") as file:
                made.append(folder / name)
                file.write(text)
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):
                path.rmdir() if path.is_dir() else path.unlink()
        raise
    return [folder / name for name in texts]


def _neighbours(path: Path) -> str:
    """'; ... has: a.toml, b.toml' for a missing file, when its folder is there and holds such files."""
    if not path.parent.is_dir():
        return f"; there is no folder {path.parent} either"
    names = sorted(other.name for other in path.parent.glob(f"*{path.suffix}"))[:8]
    return f"; {path.parent} has: {', '.join(names)}" if names else ""

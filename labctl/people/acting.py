"""Who acts, by one rule for all that writes to a journal: --who, else $LABCTL_WHO, else the lab's list of people.

May not: ask the computer for a login name; that would put names of people into records that are never rewritten.
"""

from __future__ import annotations

import os
from pathlib import Path

from labctl.errors import InputError
from labctl.store.lab_folder import MARK, lab_settings, settings_of

VARIABLE = "LABCTL_WHO"
NOBODY = "operator"
"""Who acts in a lab that lists nobody: a role, and no person."""


def check_person_name(person: str) -> None:
    """Raises InputError for what no session can have as an id."""
    if not person or not person.isprintable() or any(letter.isspace() or letter == "," for letter in person):
        raise InputError(f"{person!r} is no id of a person; take the one of the sessions, such as p07")


def acting(who: str | None, inside: Path) -> str:
    """The id of whoever acts on a campaign or lab folder. Raises InputError where the lab lists several people and
    neither --who nor the environment says which, and for what is no id.
    """
    named = who or os.environ.get(VARIABLE)
    if named is None:
        people = (settings_of(inside) if (inside / MARK).is_file() else lab_settings(inside)).people
        if len(people) > 1:
            raise InputError(
                f"who is acting? lab.toml lists {', '.join(people)}; give --who ID, or set {VARIABLE} in this shell"
            )
        named = people[0] if people else NOBODY
    check_person_name(named)
    return named

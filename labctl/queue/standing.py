"""Which submissions can become no arm any more, whoever decides what on them: expired, or of a key that is not trusted.

May not: say whose a submission is. What is said of one that is an arm by now is nothing: it stays one.
"""

from __future__ import annotations

from labctl.clock import wall_ns
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.queue.book import LOOK, Book
from labctl.queue.entries import OVER, Submission
from labctl.queue.lab_files import Keys, read_keys


def ended(found: Book, wall: str) -> tuple[dict[str, str], list[InputError]]:
    """Why, in words, by the ids of those that are under way and can become no arm, and what is wrong with
    queue-keys.toml: of their keys nothing is said then. wall: now, ISO 8601.
    """
    under_way = [one for one in found.queue.submissions.values() if one.step not in OVER]
    keys, faults = None, list[InputError]()
    try:
        keys = read_keys(found.lab) if under_way else None
    except StateError:  # the file is gone
        pass
    except InputError as error:
        faults.append(error)
    why = {one.id: _why(found, one, keys, wall, known=not faults) for one in under_way}
    return {id: text for id, text in why.items() if text}, faults


def _why(found: Book, one: Submission, keys: Keys | None, wall: str, *, known: bool) -> str:
    """known: whether the lab's keys could be read; keys: None where it has none."""
    if wall_ns(one.expires) <= wall_ns(wall):
        return "it has expired"
    try:
        key = str(found.sealed(one.id)["key"])
    except (BrokenRecord, KeyError):
        return f"its sealed request does not hold (see: {LOOK})"
    if not known:
        return ""
    if keys is None or all(trusted.public != key for trusted in keys.key):
        return "its key is not trusted here"
    return "its key was revoked" if any(gone.public == key for gone in keys.revoked) else ""

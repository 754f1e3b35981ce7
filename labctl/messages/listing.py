"""The list of all messages, and the table of them in docs/seams.md.

May not: hold a message that no module of this folder defines.
"""

from __future__ import annotations

from dataclasses import fields

from labctl.messages import driving, motion, pictures, processes, recording, sensing
from labctl.messages.typed import Typed

MODULES = (motion, driving, recording, pictures, sensing, processes)


def all_messages() -> list[type[Typed]]:
    """Every message, module by module, in the order of the code."""
    found: list[type[Typed]] = []
    for module in MODULES:
        named = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Typed)]
        found += [message for message in named if message.__module__ == module.__name__]
    return found


def table() -> str:
    """The messages as rows of Markdown: who sends it to whom, its kind, its fields and arrays, what it is for."""
    rows = ["| from → to | kind | body; arrays | |", "|---|---|---|---|"]
    for message in all_messages():
        names = ", ".join(field.name for field in fields(message))
        arrays = f"; arrays {message.ARRAYS}" if message.ARRAYS else ""
        text = " ".join((message.__doc__ or "").split())
        rows.append(f"| {message.FROM} → {message.TO} | {message.KIND} | {names}{arrays} | {text} |")
    return "\n".join(rows) + "\n"

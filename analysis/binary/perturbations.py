"""Perturbation axes as written in a table (`V-SC`, `S-PROP+V-OBJ`): which of the seven categories one belongs to.

May not: hold the list of codes a protocol may use (`labctl.config.cell_schema` does); a further code under
a category is fine.
"""

from __future__ import annotations

from labctl.errors import TableError

MODALITIES = {"V": "visual", "S": "semantic", "B": "behavioural"}
UNPERTURBED = "in-distribution"
PREFIXES = ("V", "S", "B", "VB", "SB", "VS", "VSB")


def category(axis: str, where: str) -> str:
    """`visual`, `semantic`, … `visual + semantic + behavioural`, or `in-distribution` for a base condition.

    A composition (`V-SC+S-PROP`, blanks allowed) belongs to the union of its axes' modalities.
    Raises `TableError` at `where` for what is no code.
    """
    if axis.lower() in ("", "base", UNPERTURBED):
        return UNPERTURBED
    touched = set("".join(_prefix(code.strip(), where) for code in axis.split("+")))
    return " + ".join(name for letter, name in MODALITIES.items() if letter in touched)


def _prefix(code: str, where: str) -> str:
    prefix, hyphen, rest = code.partition("-")
    if not (hyphen and rest and prefix in PREFIXES):
        allowed = f"a code such as V-SC, under one of {', '.join(PREFIXES)}, joined by +, or {UNPERTURBED}"
        raise TableError(where, f"axis is {code!r}; allowed is {allowed}")
    return prefix

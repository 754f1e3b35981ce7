"""The keys of the console, and what each does.

May not: do anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding
from textual.keys import _character_to_key

from labctl.errors import InputError

STOP_KEYS = frozenset({"space", "f12"})  # whatever else is bound

KEYS = [
    Binding("enter", "primary", "go on", id="primary", show=False),
    Binding("space,f12", "stop", "STOP", id="stop"),
    Binding("question_mark", "page('keys')", "keys", id="keys"),
    Binding("plus,m", "count(1)", "item or stage", id="moved"),
    Binding("minus,backspace", "count(-1)", "take back", id="taken_back"),
    *(Binding(f"{n}", f"reach({n})", f"stage {n} reached", id=f"stage_{n}", show=False) for n in range(1, 10)),
    Binding("i", "touch", "a hand in it", id="touch"),
    Binding("e", "end", "end", id="end"),
    Binding("f", "futility", "no progress", id="futility"),
    Binding("v", "void", "void", id="void"),
    Binding("y", "confirm", "confirm a void", id="confirm", show=False),
    Binding("b", "prefer", "which was better", id="prefer"),
    Binding("u", "undo", "undo", id="undo"),
    Binding("r", "release", "give back", id="release"),
    Binding("k", "skip", "skip", id="skip", show=False),
    Binding("h", "wait('trial')", "hold after trial", id="hold_trial"),
    Binding("H", "wait('block')", "hold after block", id="hold_block"),
    Binding("a", "acknowledge", "acknowledge", id="acknowledge"),
    Binding("o", "override", "commit all the same", id="override"),
    Binding("R", "reference", "new reference", id="reference", show=False),
    Binding("n", "note", "note", id="note"),
    Binding("j", "people", "who is here", id="people", show=False),
    Binding("x", "leave_session", "close the session", id="close_session", show=False),
    Binding("w", "page('holds')", "what is wrong", id="holds", show=False),
    Binding("s", "page('session')", "session", id="session", show=False),
    Binding("d", "page('hand')", "driven by hand", id="hand", show=False),
    Binding("c", "page('cell')", "cell", id="cell"),
    Binding("t", "page('history')", "trials", id="history"),
    Binding("p", "page('report')", "path to the report", id="report", show=False),
    Binding("q", "quit", "leave", id="leave"),
]
ACTS = frozenset(key.action.partition("(")[0] for key in KEYS if key.id != "stop")


def stop_keys(rebound: Mapping[str, str]) -> frozenset[str]:
    """Every key that stops: STOP_KEYS, and what is bound to the stop. Raises InputError when one of STOP_KEYS is bound
    to something else.
    """
    for name, keys in rebound.items():
        if name != "stop" and (taken := STOP_KEYS & names(keys)):
            raise InputError(f"[console.keys] {name} has {', '.join(taken)}: that key stops the robot and nothing else")
    return STOP_KEYS | names(rebound.get("stop", ""))


def actions(rebound: Mapping[str, str]) -> dict[str, str]:
    """Key -> the action that it is bound to, without arguments; those that stop left out."""
    return {
        name: key.action.partition("(")[0]
        for key in KEYS
        if key.id != "stop"
        for name in names(rebound.get(key.id or "", key.key))
    }


def names(keys: str) -> frozenset[str]:
    """Keys as a terminal names them, of a list with commas."""
    found = (key.strip() for key in keys.split(","))
    return frozenset(_character_to_key(key) if len(key) == 1 else key for key in found if key)

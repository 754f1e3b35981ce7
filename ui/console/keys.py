"""The keys of the console, and what each does: a word for the row at the foot, and a sentence.

May not: do anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.binding import Binding
from textual.keys import _character_to_key

from labctl.errors import InputError

STOP_KEYS = frozenset({"space", "f12"})  # whatever else is bound
OWN_KEYS = {
    "escape": "goes back",
    "ctrl+s": "is a form's OK",
    "ctrl+p": "has every key by its name",
    "ctrl+c": "does nothing, and says so",
}

KEYS = [
    Binding("enter", "primary", "go on", id="primary", show=False, tooltip="do the next thing"),
    Binding("space,f12", "stop", "STOP", id="stop", tooltip="stop the robot now"),
    Binding("question_mark", "page('keys')", "keys", id="keys", tooltip="list the keys"),
    Binding(
        "plus,m", "count(1)", "item or stage", id="moved", tooltip="one more item moved, or the next stage reached"
    ),
    Binding("minus,backspace", "count(-1)", "take back", id="taken_back", tooltip="take the last count back"),
    *(
        Binding(
            f"{n}", f"reach({n})", f"stage {n} reached", id=f"stage_{n}", show=False, tooltip=f"stage {n} is reached"
        )
        for n in range(1, 10)
    ),
    Binding("i", "touch", "a hand in it", id="touch", tooltip="a hand goes into the scene, or is out again"),
    Binding("e", "end", "end", id="end", tooltip="end this episode; it is scored as it stands (twice)"),
    Binding("f", "futility", "no progress", id="futility", tooltip="end this episode for lack of progress (twice)"),
    Binding("v", "void", "void", id="void", tooltip="void this episode"),
    Binding("y", "confirm", "confirm a void", id="confirm", show=False, tooltip="confirm a void, as the second person"),
    Binding("b", "prefer", "which was better", id="prefer", tooltip="say which of two episodes was better"),
    Binding("u", "undo", "undo", id="undo", tooltip="undo the last score, for ten seconds"),
    Binding("r", "release", "give back", id="release", tooltip="give this trial back"),
    Binding("k", "skip", "skip", id="skip", show=False, tooltip="skip a trial that was voided too often"),
    Binding("h", "wait('trial')", "hold after trial", id="hold_trial", tooltip="hold after this trial"),
    Binding("H", "wait('block')", "hold after block", id="hold_block", tooltip="hold after this block"),
    Binding("a", "acknowledge", "acknowledge", id="acknowledge", tooltip="acknowledge what waits for a person"),
    Binding("o", "override", "commit all the same", id="override", tooltip="commit although the pictures differ"),
    Binding("R", "reference", "new reference", id="reference", show=False, tooltip="take a new reference picture"),
    Binding("n", "note", "note", id="note", tooltip="note something"),
    Binding("j", "people", "who is here", id="people", show=False, tooltip="somebody comes, leaves or changes role"),
    Binding("x", "leave_session", "close the session", id="close_session", show=False, tooltip="close the session"),
    Binding("w", "page('holds')", "what is wrong", id="holds", show=False, tooltip="show what is wrong, in full"),
    Binding("s", "page('session')", "session", id="session", show=False, tooltip="show who is here"),
    Binding(
        "d", "page('hand')", "driven by hand", id="hand", show=False, tooltip="show the device of a person's trial"
    ),
    Binding("c", "page('cell')", "cell", id="cell", tooltip="show what every device says"),
    Binding("t", "page('history')", "trials", id="history", tooltip="show what was done"),
    Binding("p", "page('report')", "path to the report", id="report", show=False, tooltip="show the way to the report"),
    Binding("q", "quit", "leave", id="leave", tooltip="leave this console; the run goes on"),
]
_TYPED = {"question_mark": "?", "plus": "+", "minus": "-"}
ACTS = frozenset(key.action.partition("(")[0] for key in KEYS if key.id != "stop")


def fault(rebound: Mapping[str, str]) -> tuple[str, str] | None:
    """The first rebinding that cannot be, by its name, and why: a key does one thing."""
    for name, keys in rebound.items():
        if name != "stop" and (taken := STOP_KEYS & names(keys)):
            why = f"[console.keys] {name} has {', '.join(taken)}: that key stops the robot and nothing else"
            return name, why
        if name != "stop" and (own := sorted(OWN_KEYS.keys() & names(keys))):
            return name, f"[console.keys] {name} has {own[0]}: that key {OWN_KEYS[own[0]]}; give it another one"
    held: dict[str, Binding] = {}
    for key in sorted(KEYS, key=lambda one: one.id in rebound):  # what stands as it was first: a rebinding is named
        name = key.id or ""
        for one in sorted(names(rebound.get(name, key.key))):
            if (other := held.setdefault(one, key)) is not key:
                has = f"[console.keys] {name} has {typed(one)}, which {other.id} has too ({other.tooltip})"
                return name, f"{has}; give one of them another key"
    return None


def stop_keys(rebound: Mapping[str, str]) -> frozenset[str]:
    """Every key that stops: STOP_KEYS, and what is bound to the stop. Raises InputError for a `fault`."""
    if found := fault(rebound):
        raise InputError(found[1])
    return STOP_KEYS | names(rebound.get("stop", ""))


def actions(rebound: Mapping[str, str]) -> dict[str, str]:
    """Key -> the action that it is bound to, without arguments; those that stop left out."""
    return {
        name: key.action.partition("(")[0]
        for key in KEYS
        if key.id != "stop"
        for name in names(rebound.get(key.id or "", key.key))
    }


def rows(rebound: Mapping[str, str]) -> list[tuple[str, str]]:
    """(keys as they are typed, what they do), for a page; the stages are one row."""
    stages = ("1 to 9", "that stage is reached")
    found = [
        stages if key.id == "stage_1" else (typed(rebound.get(key.id or "", key.key)), key.tooltip)
        for key in KEYS
        if key.id == "stage_1" or key.action.partition("(")[0] != "reach"
    ]
    return [*found, ("ctrl+p", "every key by its name")]


def typed(keys: str) -> str:
    """Keys of a list with commas, as a person reads them."""
    found = (key.strip() for key in keys.split(","))
    return ", ".join(
        _TYPED.get(key, f"shift+{key.lower()}" if len(key) == 1 and key.isupper() else key) for key in found
    )


def names(keys: str) -> frozenset[str]:
    """Keys as a terminal names them, of a list with commas."""
    found = (key.strip() for key in keys.split(","))
    return frozenset(_character_to_key(key) if len(key) == 1 else key for key in found if key)

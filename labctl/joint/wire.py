"""What a cell asks its seal host, and what it answers: one JSON object each way, read strictly on both sides.

May not: open a socket, or decide anything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from labctl.core.joint import ClockBody, HeadBody
from labctl.errors import BrokenRecord, InputError, LabctlError, StateError, StorageError

MOST_BYTES = 1 << 20
ASKED = ("hello", "part", "join", "reveal", "close", "opening")
KINDS: Mapping[str, type[LabctlError]] = {
    kind.__name__: kind for kind in (BrokenRecord, InputError, StateError, StorageError)
}
_HEX = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Question:
    """One question. part: of the asking cell; head: of its journal, None where it has none yet; clock: as it was just
    compared; skipped: trials that it does not run; phase: of its campaign; files: sha256 of protocol, fixture, cards.
    """

    id: str
    asks: str
    part: int = 1
    trial: str = ""
    head: HeadBody | None = None
    clock: ClockBody | None = None
    skipped: Sequence[str] = ()
    phase: str = ""
    files: Mapping[str, str] | None = None

    def encoded(self) -> bytes:
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return json.dumps({name: value for name, value in values.items() if value not in (None, "", ())}).encode()


def read_question(raw: bytes) -> Question:
    """Raises InputError for anything that no cell of this version sends."""
    try:
        found: Any = json.loads(raw)
    except (ValueError, RecursionError):
        raise InputError("not a question: it is not JSON") from None
    if not isinstance(found, dict) or set(found) - set(Question.__dataclass_fields__):
        raise InputError("not a question: not an object of the known keys")
    question = Question(
        id=_text(found, "id", 64),
        asks=_text(found, "asks", 16),
        part=_whole(found.get("part", 1), 1, 10**4),
        trial=_text(found, "trial", 64, empty=True),
        head=_head(found["head"]) if "head" in found else None,
        clock=_clock(found["clock"]) if "clock" in found else None,
        skipped=_texts(found.get("skipped", [])),
        phase=_text(found, "phase", 16, empty=True),
        files=_digests(found["files"]) if "files" in found else None,
    )
    if question.asks not in ASKED:
        raise InputError(f"no question {question.asks!a}; there are {', '.join(ASKED)}")
    if question.phase not in ("", "closed", "reviewed", "frozen", "unblinded"):
        raise InputError("phase is closed, reviewed, frozen or unblinded")
    return question


def answered(question_id: str, values: Mapping[str, object]) -> bytes:
    """The bytes of an answer."""
    return json.dumps({"id": question_id, "ok": True, **values}).encode()


def refused(question_id: str, error: LabctlError) -> bytes:
    """The bytes of a refusal, in one line."""
    return json.dumps({"id": question_id, "ok": False, "kind": type(error).__name__, "error": str(error)}).encode()


def read_answer(raw: bytes) -> dict[str, Any]:
    """An answer; raises what the seal host raised, or BrokenRecord for what is no answer."""
    try:
        found: Any = json.loads(raw)
        if found["ok"] is True:
            return dict(found)
        kind, error = KINDS.get(str(found["kind"]), StateError), str(found["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BrokenRecord("the seal host answered what is no answer; is it of another version?") from None
    raise kind(f"the seal host refuses: {error}")


def _text(found: Mapping[str, Any], name: str, most: int, *, empty: bool = False) -> str:
    value = found.get(name, "")
    if not isinstance(value, str) or len(value) > most or not (value or empty) or not value.isprintable():
        raise InputError(f"not a question: {name} is no text of at most {most} characters")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or any(not isinstance(one, str) or len(one) > 64 for one in value):
        raise InputError("not a question: skipped is no list of trials")
    return tuple(value)


def _whole(value: Any, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InputError(f"not a question: {ascii(value)[:40]} is no whole number from {least} to {most}")
    return value


def _head(value: Any) -> HeadBody:
    if not isinstance(value, dict) or set(value) != {"seq", "hash"}:
        raise InputError("not a question: head is no seq and hash")
    return HeadBody(seq=_whole(value["seq"], 1, 2**53), hash=_digest(value["hash"]))


def _digest(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 64 or not _HEX.issuperset(value):
        raise InputError("not a question: a hash has 64 hexadecimal digits")
    return value


def _digests(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or set(value) != {"protocol", "fixture", "cards"}:
        raise InputError("not a question: files are protocol, fixture and cards")
    return {name: _digest(one) for name, one in value.items()}


def _clock(value: Any) -> ClockBody:
    if not isinstance(value, dict) or set(value) != {"offset_s", "bound_s"}:
        raise InputError("not a question: clock is no offset_s and bound_s")
    offset, bound = value["offset_s"], value["bound_s"]
    for one in (offset, bound):
        if not isinstance(one, int | float) or isinstance(one, bool) or not -1e9 < one < 1e9:
            raise InputError("not a question: an offset and its bound are seconds")
    if bound < 0:
        raise InputError("not a question: a bound is not negative")
    return ClockBody(offset_s=float(offset), bound_s=float(bound))

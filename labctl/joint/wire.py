"""What a cell asks its seal host, and what it answers: one JSON object each way, read strictly on both sides.

May not: open a socket, or decide anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from labctl.errors import BrokenRecord, InputError, LabctlError, StateError, StorageError
from labctl.joint.state import ClockBody, HeadBody
from labctl.messages.body_parts import Slot, SlotWithArm
from labctl.messages.joint import JointPart

MOST_BYTES = 1 << 20
KINDS: Mapping[str, type[LabctlError]] = {
    kind.__name__: kind for kind in (BrokenRecord, InputError, StateError, StorageError)
}
Short = Annotated[str, StringConstraints(max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(max_length=200)]
Whole = Annotated[int, Field(ge=0, le=2**62)]
Seconds = Annotated[float, Field(ge=-1e9, le=1e9)]


Asks = Literal["hello", "part", "join", "reveal", "close", "opening"]


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Head(_Form):
    """The last entry of a chain."""

    seq: Annotated[int, Field(ge=1, le=2**53)]
    hash: Hash

    def body(self) -> HeadBody:
        return HeadBody(seq=self.seq, hash=self.hash)


class Compared(_Form):
    """A cell's wall clock less the seal host's, in s, and how far that may be wrong."""

    offset_s: Seconds
    bound_s: Annotated[float, Field(ge=0, le=1e9)]

    def body(self) -> ClockBody:
        return ClockBody(offset_s=self.offset_s, bound_s=self.bound_s)


class Files(_Form):
    """sha256 of what a cell opens its part with."""

    protocol: Hash
    fixture: Hash
    cards: Hash


class Question(_Form):
    """One question. part: of the asking cell; head: of its journal, None where it has none yet; clock: as it was just
    compared; skipped: trials that it does not run; phase: of its campaign; files: what it has.
    """

    id: Short
    asks: Asks
    part: Annotated[int, Field(ge=1, le=10**4)] = 1
    trial: Short | None = None
    head: Head | None = None
    clock: Compared | None = None
    skipped: tuple[Short, ...] = ()
    phase: Literal["closed", "reviewed", "frozen", "unblinded"] | None = None
    files: Files | None = None


class PublicSlot(_Form):
    """A slot as it was published."""

    index: Whole
    trial: Short
    block: Whole
    position: Whole
    condition: Text

    def body(self) -> Slot:
        return Slot(
            index=self.index, trial=self.trial, block=self.block, position=self.position, condition=self.condition
        )


class SealedSlot(PublicSlot):
    """A slot as it was sealed."""

    arm: Text

    def sealed(self) -> SlotWithArm:
        return SlotWithArm(**self.body(), arm=self.arm)


class Part(_Form):
    """Which part it is, as the cell's first entry will have it (`messages.joint.JointPart`)."""

    name: Text
    cell: Text
    part: Whole
    cells: tuple[Text, ...]
    blocks: tuple[Whole, ...]
    of: Whole
    commitment: Hash
    head: Head

    def body(self) -> JointPart:
        return JointPart(
            name=self.name,
            cell=self.cell,
            part=self.part,
            cells=list(self.cells),
            blocks=list(self.blocks),
            of=self.of,
            commitment=self.commitment,
            head={"seq": self.head.seq, "hash": self.head.hash},
        )


class Answer(_Form):
    """What every answer has: whose it is, and when its question came and it left, ns of the host's wall clock."""

    id: str = ""
    came_ns: Whole = 0
    left_ns: Whole = 0


class HelloAnswer(Answer):
    """not_yours: trials that another cell has now; gone: declared so; limit_s: of the clocks."""

    gone: bool
    not_yours: tuple[Short, ...]
    parts: Whole
    limit_s: float


class PartAnswer(Answer):
    """What a cell opens its campaign with; commitment: of the part."""

    joint: Part
    slots: tuple[PublicSlot, ...]
    commitment: Hash


class RevealAnswer(Answer):
    """One arm; head: the seal host's, after it journalled that."""

    arm: Text
    head: Head


class OpeningAnswer(Answer):
    """A part, opened."""

    slots: tuple[SealedSlot, ...]
    nonce_hex: Hash
    early: bool


class Refusal(_Form):
    """Why not, in one line."""

    id: str
    kind: str
    error: str


Found = TypeVar("Found", bound=Answer)


def read_question(raw: bytes) -> Question:
    """Raises InputError for anything that no cell of this version sends."""
    try:
        return Question.model_validate_json(raw)
    except (ValidationError, ValueError, RecursionError) as error:
        raise InputError(f"not a question that a cell asks: {_first(error)}") from None


def read_answer(raw: bytes, form: type[Found]) -> Found:
    """An answer of a form; raises what the seal host raised, or BrokenRecord for what is no answer."""
    try:
        refusal = Refusal.model_validate_json(raw)
    except (ValidationError, ValueError, RecursionError):
        try:
            return form.model_validate_json(raw)
        except (ValidationError, ValueError, RecursionError) as error:
            text = f"the seal host's answer is of another form ({_first(error)}); is it of another version?"
            raise BrokenRecord(text) from None
    raise KINDS.get(refusal.kind, StateError)(f"the seal host refuses: {refusal.error}")


def refused(question_id: str, error: LabctlError) -> bytes:
    """The bytes of a refusal."""
    return Refusal(id=question_id, kind=type(error).__name__, error=str(error)).model_dump_json().encode()


def _first(error: Exception) -> str:
    """Where the first thing stands that is wrong, and what."""
    if not isinstance(error, ValidationError):
        return type(error).__name__
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc'])) or 'all of it'}: {first['msg'].lower()}"

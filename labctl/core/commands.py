"""What a person may order at a console: each verb's arguments with their types. Whatever else arrives is refused here.

May not: decide whether an order is allowed now (`trial_table` and the command handler do), or let anything but an
InputError out for a command that makes no sense.
"""

from __future__ import annotations

from typing import Annotated, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

from labctl.bus import Body
from labctl.config.values import StopCause
from labctl.core.events import EndReason
from labctl.core.session import Role
from labctl.errors import InputError


def _utf8(text: str) -> str:
    """JSON can carry half of a surrogate pair, the journal's UTF-8 cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it must be text that UTF-8 can write") from None
    return text


def _secret(code: SecretStr) -> SecretStr:
    _utf8(code.get_secret_value())
    return code


Text = Annotated[StrictStr, AfterValidator(_utf8)]
Secret = Annotated[SecretStr, AfterValidator(_secret)]
_TEXT: TypeAdapter[str] = TypeAdapter(Text)
STOP = "stop"
LONGEST = 80  # characters of what was found, in a refusal


class Arguments(BaseModel):
    """Base of the arguments of an order. Keys that it does not have are let pass and not kept."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


class Kept(Arguments):
    """Arguments that are journalled as they come: an unknown key is refused."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False, extra="forbid")


class Nothing(Arguments):
    """look, stop, stage, start, reveal: nothing beside the verb."""


class Member(Arguments):
    id: Text
    roles: list[Text]


class OpenSession(Kept):
    """session: who is there in which roles, and the answers to the opening checks."""

    people: list[Member]
    checks: dict[Text, StrictBool | Text] = {}


class People(Kept):
    """people: everyone who is there from now on, in which roles."""

    people: list[Member]


class CloseSession(Arguments):
    """session_close: a note to whoever comes next. session: the one that is meant, None for whichever is open."""

    handover: Text = ""
    session: Text | None = None


class Acknowledge(Arguments):
    """acknowledge: the hold's code; of a stop by hand also its cause and why it was made. contact: with a person or a
    thing; a stop by hand has it as its cause. raised: the seq of the entry that raised the hold that is meant, None for
    whichever stands by that code.
    """

    code: Text
    raised: StrictInt | None = None
    why: Text | None = None
    contact: StrictBool | None = None
    cause: StopCause | None = None

    def cause_fields(self, *, by_hand: bool) -> dict[str, JsonValue]:
        """What is journalled beside the code. Raises InputError for a stop by hand without a cause or a why or whose
        `contact` contradicts its cause, and for the cause of anything else.
        """
        found = self.model_dump(exclude_none=True, exclude={"code", "raised"})
        if not by_hand:
            if self.cause is not None:
                raise InputError(
                    f"cause is {self.cause!r}, but hold {self.code!r} is not of a stop by hand; leave it out"
                )
            return found
        if self.cause is None:
            known = ", ".join(get_args(StopCause))
            raise InputError(f"cause is missing; a stop by hand is acknowledged with one of {known}, and with why")
        if not (self.why or "").strip():
            raise InputError("why is missing; a stop by hand is acknowledged with why it was made")
        touched = self.cause == "contact"
        if self.contact not in (None, touched):
            raise InputError(
                f"cause is {self.cause!r} and contact {self.contact}; where there was contact, it is the cause"
            )
        return {**found, "contact": touched}


class Note(Arguments):
    """note: a few words for the record."""

    text: Text = ""


class Wait(Arguments):
    """wait: hold after this trial or this block."""

    after: Text | None = None
    why: Text = ""


class Count(Arguments):
    """count: the operator's own tally goes up or down."""

    by: StrictInt = 1


class Reach(Arguments):
    """reach: the stage of the task, from 1 on, that was just reached; None takes the last one back."""

    stage: StrictInt | None = None


class TouchScene(Arguments):
    """touch: a person begins to touch the scene or the robot, or reports that it is over and what it was. number: of
    one that is over and of which nobody has said what it was (None: the last that goes on). An end without a kind says
    when, and what it was comes until the score.
    """

    phase: Text | None = None
    kind: Text = "other"
    note: Text = ""
    number: StrictInt | None = None


class Practice(Arguments):
    """practice: one episode of a teleoperator's practice; `people.practised` judges the numbers."""

    person: Text = ""
    object: Text = ""
    moved: StrictInt | None = None
    staged: StrictInt | None = None
    duration_s: StrictFloat | None = None


class Reference(Arguments):
    """reference: what a camera sees now (None: each camera) is what its scene is compared with from here on."""

    reason: Text = ""
    camera: Text | None = None


class Commit(Arguments):
    """commit: with a reason, also a scene that only its pictures stand against."""

    override: Text | None = None


class Give(Arguments):
    """release, skip: why."""

    reason: Text = ""


class End(Arguments):
    """end: as the operator's wish or for futility."""

    reason: EndReason = EndReason.OPERATOR


class Void(Arguments):
    """void: the protocol's reason, and what stands behind it: an event's number or a second person's id, with
    that person's personal code where it is typed at this very console.
    """

    reason: Text = ""
    evidence: StrictInt | None = None
    confirmed_by: Text | None = None
    personal_code: Secret | None = None


class Confirm(Arguments):
    """confirm: this person too says that the episode is to be void, for this reason of the protocol."""

    episode: Text = ""
    reason: Text = ""


class Score(Kept):
    """score: an outcome; `core.outcome` judges it, by the measure of the trial's task."""

    items_staged: StrictInt | None = None
    moved: StrictInt | None = None
    lost: StrictInt | None = None
    remaining: StrictInt | None = None
    end_reason: Text = ""  # the journal's counts, whatever stands here
    notes: Text = ""
    stage_reached: Text | None = None
    tags: list[Text] = []
    wrong_end: StrictBool = False
    reached_s: list[StrictFloat | None] | None = None
    score: StrictFloat | None = None


class Correct(Score):
    """correct: another outcome for a scored trial, and why. seen: as of `Review`."""

    trial: Text = ""
    why: Text = ""
    seen: StrictInt | None = None


class Judge(Score):
    """judge: what a second assessor says of a scored trial's episode, from its video alone."""

    trial: Text = ""


class Guess(Arguments):
    """guess: which arm of the experiment it was; None: cannot tell."""

    trial: Text = ""
    guess: Text | None = None


class Reviewed(Arguments):
    t_ns: StrictInt
    result: Text
    cause: Text | None = None


class Review(Arguments):
    """review: the operations of a scored episode as an assessor saw them. seen: how many entries on how it went there
    were when it was shown, None for whatever stands.
    """

    trial: Text = ""
    operations: list[Reviewed] = []
    note: Text = ""
    seen: StrictInt | None = None


class Prefer(Arguments):
    """prefer: which of two episodes of a block was better (first, second or neither), and why. seen: what was said of
    them when they were shown ("first: its why", "" for nothing), None for whatever stands.
    """

    first: Text = ""
    second: Text = ""
    preferred: Text = ""
    why: Text = ""
    seen: Text | None = None


A = TypeVar("A", bound=Arguments)


class Command(BaseModel):
    """A command whose frame is sound; `arguments` reads what its verb needs. version: of the state that the screen
    showed, None where any will do. keys: how many were pressed at this console since its last command, None for
    what has no keys.
    """

    model_config = ConfigDict(frozen=True)
    verb: Text
    who: Text
    role: Role
    id: Text | None = None
    version: StrictInt | None = None
    args: dict[Text, JsonValue] = {}
    keys: Annotated[StrictInt, Field(ge=0, le=100_000)] | None = None

    def arguments(self, schema: type[A]) -> A:
        """Raises InputError that names the verb and the first argument that does not fit."""
        try:
            return schema.model_validate(self.args)
        except ValidationError as error:
            raise InputError(f"{self.verb}: {_complaint(error)}") from None


def command_from(body: Body) -> Command:
    """The command in a message's body. Raises InputError that names the first thing in its frame that does not fit; of
    a stop nothing but the verb has to, and whoever cannot be named is "unknown".
    """
    try:
        return Command.model_validate(dict(body))
    except ValidationError as error:
        if body.get("verb") == STOP:
            who = _text(body.get("who")) or "unknown"
            return Command(verb=STOP, who=who, role=Role.OPERATOR, id=_text(body.get("id")))
        raise InputError(f"a command's {_complaint(error)}") from None


def _text(value: JsonValue) -> str | None:
    try:
        return _TEXT.validate_python(value)
    except ValidationError:
        return None


def _complaint(error: ValidationError) -> str:
    found = error.errors()[0]
    name = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in found["loc"]).lstrip(".")
    if found["type"] == "missing":
        return f"{name} is missing"
    if found["type"] == "extra_forbidden":
        return f"{name} is unknown"
    if name == "personal_code":
        return f"{name} must be text that UTF-8 can write"  # and not what it is
    shown = ascii(found["input"])
    shown = shown if len(shown) <= LONGEST else f"{shown[:LONGEST]} ..."
    return f"{name} is {shown}; {found['msg'].removeprefix('Value error, ').replace('Input should be', 'it must be')}"

"""Policy cards: what one policy reads, what its answers mean, how it is asked. Strict TOML, like every file of a lab.

May not: open files, know a wire format or turn an answer into motion (drivers do), or let an action space be guessed.

A card is named by an arm (`[arm.options] card = "cards/NAME.toml"`, relative to the protocol's folder). Its text is
frozen with the protocol and kept with the seal, since it tells arms apart. Drivers get it as `Card`.
Units are in the names: _s seconds, _m metres, _hz per second, _gb 10^9 bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints

from labctl.config.axes import NamedAxis, check_named
from labctl.config.policy_words import (
    DELTAS,
    DROID_HZ,
    EXTERIOR,
    GRIPPERS,
    ROTATIONS,
    SPACES,
    STATES,
    TURNED,
    Gripper,
    Tool,
    check_hand,
    check_scale,
    check_tool,
)
from labctl.config.toml_text import Document, Location, Table, parse, suggestion
from labctl.config.values import Lax, Positive, Text, Texts
from labctl.plain import GIVE_UP_S

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
Seconds = Annotated[float, Field(gt=0, le=3600)]


class Head(Table):
    """[policy]. `dialect` is X of a driver `policy_X`, shipped (openpi, roboarena, gr00t, callable) or registered by a
    package; each refuses the card of another one. `weights` says what the server loads, for the record;
    `weights_sha256` is their digest, if known.
    """

    name: Name
    dialect: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    weights: str = ""
    weights_sha256: Digest | None = None
    notes: str = ""


class Image(Table):
    """[image]: how pictures are handed over, unless an input says otherwise. A picture older than `max_age_s` when a
    question would be asked is not used: the robot holds until a fresh one is there. aspect: width to height of the
    pictures that the policy was trained on, before any resizing, such as [16, 9]; `labctl doctor` compares the cell's.
    """

    aspect: Annotated[tuple[Positive, Positive], Lax] | None = None
    width: Annotated[int, Field(gt=0, le=4096)] | None = None
    height: Annotated[int, Field(gt=0, le=4096)] | None = None
    resize: Literal["pad", "stretch", "none"] | None = None
    colour: Literal["rgb", "bgr"] = "rgb"
    layout: Literal["hwc", "chw"] = "hwc"
    values: Literal["uint8", "unit"] = "uint8"
    max_age_s: Seconds = 0.3


class Input(Table):
    """[[input]]: one key of the observation and its one source: a camera of the cell, robot state, a constant, or the
    instruction. `steps` picks earlier pictures, counted in actions (0 is now), and stacks them.
    """

    key: Text
    camera: Text | None = None
    state: Texts | None = None
    constant: bool | int | float | str | list[float] | None = None
    prompt: bool = False
    dtype: Literal["float32", "float64"] = "float32"
    steps: Annotated[tuple[Annotated[int, Field(le=0, ge=-64)], ...], Lax, Field(min_length=1)] = (0,)
    width: Annotated[int, Field(gt=0, le=4096)] | None = None
    height: Annotated[int, Field(gt=0, le=4096)] | None = None
    resize: Literal["pad", "stretch", "none"] | None = None


class Action(Table):
    """[action]. `keys`: arrays of the answer, set side by side: first the robot's values, last the gripper's.

    clip: arm values beyond +-clip are cut; then each is multiplied by its `scale`. relative_to: what a delta is added
    to: the state in the observation, the action before, or what is measured when its step begins. frame: whose axes
    a tcp_delta is in. execute: actions followed before the next question, 0 for all of an answer. horizon: how many
    actions an answer must have. axis: of space "axes" what each number of an action is, in the robot's order.
    robots: in a cell of two, whose values and opening come first.
    """

    space: Text
    axis: Annotated[tuple[NamedAxis, ...], Lax] = ()
    robots: Texts = ()
    keys: Texts = ("actions",)
    rotation: Text | None = None
    relative_to: Literal["observation", "previous", "measured"] | None = None
    frame: Literal["base", "tool"] = "base"
    clip: Positive | None = None
    scale: Annotated[tuple[float, ...], Lax] | None = None
    execute: Annotated[int, Field(ge=0)]
    horizon: Annotated[int, Field(ge=1)] | None = None

    @property
    def stepped(self) -> bool:
        """Does each action count from what is measured when its step begins?"""
        return self.relative_to == "measured" or self.space.startswith("droid_")


class Timing(Table):
    """[timing]. deadline_s: from question to answer; a later answer is not used. late: "hold" (the robot stands, a
    fresh question is asked once the late answer is in) or "end" (the episode ends at the deadline). give_up_s: a
    question unanswered for so long ends the episode either way. starts: an answer's first action begins when it arrives
    ("reply"), or action i is due i steps after the observation and what is past is dropped ("capture").
    """

    rate_hz: Annotated[float, Field(gt=0, le=200)]
    deadline_s: Seconds
    late: Literal["hold", "end"]
    give_up_s: Seconds = GIVE_UP_S
    starts: Literal["reply", "capture"] = "reply"
    ask_ahead_s: Annotated[float, Field(ge=0, le=60)] = 0.0
    warm_calls: Annotated[int, Field(ge=1, le=20)] = 2


class Server(Table):
    """[server]. Without `start` the server is somebody else's and stays up. ready_s: from the start to its first
    answer. api_key_env names an environment variable; a key never stands in a file. gpu: servers that name the same
    one run one after the other. software: what it runs on, name and version, as whoever keeps it says.
    """

    start: Annotated[tuple[Text, ...], Lax] = ()
    folder: Text | None = None
    env: dict[str, str] = Field(default_factory=dict)
    ready_s: Seconds = 120.0
    stop_s: Seconds = 10.0
    gpu: Text | None = None
    gpu_memory_gb: Positive | None = None
    api_key_env: Text | None = None
    software: dict[str, Text] = Field(default_factory=dict)


class RoboArena(Table):
    """[roboarena]: from which number the server counts exterior cameras. The benchmark's own client sends 1 and 2."""

    camera_index_base: Literal[0, 1] = 1


class Gr00t(Table):
    """[gr00t]: how the server is called. "auto" asks it; a server that does not say needs the word here."""

    convention: Literal["auto", "n1.5", "n1.6"] = "auto"


class Training(Table):
    """[training]: what the policy was trained with, as a lab's files name it: objects, layouts, wordings of an
    instruction. A condition is training data where it has one of each kind that is listed.
    """

    objects: Texts = ()
    layouts: Texts = ()
    instructions: Texts = ()


class Card(Document):
    """A policy card."""

    policy: Head
    image: Image = Image()
    input: Annotated[tuple[Input, ...], Lax, Field(min_length=1)]
    gripper: Gripper | None = None
    tool: Tool = Tool()
    action: Action
    timing: Timing
    server: Server = Server()
    training: Training = Training()
    roboarena: RoboArena | None = None
    gr00t: Gr00t | None = None

    @classmethod
    def among(cls, options: Mapping[str, JsonValue]) -> Card | None:
        """The card that an arm's options hold as a table (`labctl.store.frozen_cards.with_cards`), if any."""
        given = options.get("card")
        return cls.model_validate_json(json.dumps(given)) if isinstance(given, dict) else None

    @property
    def fingers(self) -> Gripper:
        """[gripper] of a card that uses one; every card but one of axes does."""
        assert self.gripper is not None, "parse_card refuses it"
        return self.gripper

    @property
    def cameras(self) -> tuple[str, ...]:
        """The cameras of the cell that it reads, in the order of its inputs, each once."""
        return tuple(dict.fromkeys(entry.camera for entry in self.input if entry.camera is not None))


def parse_card(text: str, where: str, *, frozen: bool = False) -> Card:
    """The card in a TOML text; `where` is its file's name for messages. frozen: of a campaign that was opened already;
    one from before frames had to be named is of the cell's tool centre point. Raises InputError with file:line.
    """
    card = parse(Card, text, where)
    for check in (_check_inputs, _check_images, _check_action, _check_gripper, _check_timing, _check_server):
        check(card)
    if not frozen:
        _check_frame(card)
        check_hand(card, card.gripper)
        check_tool(card, card.tool)
        check_scale(card, card.action.scale)
    for dialect, check in (("roboarena", _check_roboarena), ("gr00t", _check_gr00t)):
        if card.policy.dialect == dialect:
            check(card)
        elif getattr(card, dialect) is not None:
            raise card.refusal((dialect,), f"the dialect is {card.policy.dialect!r}; drop [{dialect}]")
    return card


def _known(card: Card, at: Location, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        text = f"{at[-1]} is {word!r}, which is not known{suggestion(word, known)}; known: {', '.join(known)}"
        raise card.refusal(at, text)


def _check_inputs(card: Card) -> None:
    keys = [entry.key for entry in card.input]
    for index, entry in enumerate(card.input):
        at = ("input", index)
        sources = {"camera": entry.camera, "state": entry.state, "constant": entry.constant}
        given = [name for name, value in sources.items() if value is not None] + ["prompt"] * entry.prompt
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise card.refusal(at, f"{entry.key!r} needs one source of camera, state, constant, prompt; found {found}")
        if entry.key in keys[:index]:
            raise card.refusal((*at, "key"), f"{entry.key!r} is given twice; a key has one source")
        for state in entry.state or ():
            _known(card, (*at, "state"), state.rpartition(".")[2], STATES)  # of two robots with its name before it
        if entry.camera is None and (entry.steps != (0,) or entry.width or entry.height or entry.resize):
            raise card.refusal(at, f"{entry.key!r} is no picture; steps, width, height and resize are for pictures")
        if list(entry.steps) != sorted(set(entry.steps)):
            raise card.refusal((*at, "steps"), f"steps is {list(entry.steps)}; count up to now, like [-15, 0]")


def _check_frame(card: Card) -> None:
    """Raises InputError for a card that is given or gives something of the tool and does not say of which frame."""
    if card.tool.frame is not None:
        return
    what = 'say frame = "tcp" (the cell\'s tool centre point) or "flange" (panda_link8 of DROID\'s robots) in [tool]'
    for index, entry in enumerate(card.input):
        for state in entry.state or ():
            if state.rpartition(".")[2].startswith("tcp_"):
                raise card.refusal(("input", index, "state"), f"{state} of which frame? {what}")
    if "joint" not in card.action.space and card.action.space != "axes":
        raise card.refusal(("action", "space"), f"{card.action.space} of which frame? {what}")


def _check_images(card: Card) -> None:
    for index, entry in enumerate(card.input):
        if entry.camera is None:
            continue
        resize = entry.resize or card.image.resize
        width, height = entry.width or card.image.width, entry.height or card.image.height
        at: Location = ("input", index)
        if resize is None:
            raise card.refusal(
                at, f"{entry.key!r}: say how pictures are resized: [image] resize = pad, stretch or none"
            )
        if resize != "none" and (width is None or height is None):
            raise card.refusal(at, f"{entry.key!r}: {resize} needs a width and a height, here or in [image]")
        if resize == "none" and (width is not None or height is not None):
            raise card.refusal(at, f"{entry.key!r}: resize is none, so a width or height would not be used; drop it")


def _check_action(card: Card) -> None:
    action = card.action
    if action.space not in SPACES:
        why = "a policy whose action space is not known is never run"
        near = suggestion(action.space, SPACES)
        known = f"space is {action.space!r}{near}; {why}; known spaces: {', '.join(SPACES)}"
        raise card.refusal(("action", "space"), known)
    check_named(card, action.space, action.axis, scaled=action.clip is not None or action.scale is not None)
    if (action.rotation is not None) != (action.space in TURNED):
        how = f"name one of {', '.join(ROTATIONS)}" if action.space in TURNED else "drop it"
        found = "no rotation" if action.rotation is None else f"rotation {action.rotation!r}"
        raise card.refusal(("action", "rotation"), f"{found} for {action.space}; {how}")
    if action.rotation is not None:
        _known(card, ("action", "rotation"), action.rotation, ROTATIONS)
    if (action.relative_to is not None) != (action.space in DELTAS):
        how = 'say from what: "observation", "previous" or "measured"' if action.space in DELTAS else "drop it"
        found = "no relative_to" if action.relative_to is None else f"relative_to {action.relative_to!r}"
        raise card.refusal(("action", "relative_to"), f"{found} for {action.space}; {how}")
    if action.frame == "tool" and (action.space != "tcp_delta" or action.relative_to == "measured"):
        text = 'frame "tool" is for a tcp_delta relative to the observation or to the previous action; drop it'
        raise card.refusal(("action", "frame"), text)
    if action.space.startswith("droid_") and (action.clip is not None or action.scale is not None):
        raise card.refusal(("action",), f"{action.space} says how it is clipped and scaled; drop clip and scale")
    if action.horizon is not None and action.execute > action.horizon:
        text = f"execute is {action.execute}, more than the {action.horizon} of an answer (horizon)"
        raise card.refusal(("action", "execute"), text)
    if action.space.startswith("droid_") and card.timing.rate_hz != DROID_HZ:
        text = (
            f"rate_hz is {card.timing.rate_hz:g}; {action.space} is in units per step of {DROID_HZ:g} Hz, so say 15.0"
        )
        raise card.refusal(("timing", "rate_hz"), text)
    if action.space == "tcp_velocity" and any(card.tool.shift_m):
        raise card.refusal(("tool", "shift_m"), "a shifted tool moves otherwise; tcp_velocity cannot use a shift here")


def _check_gripper(card: Card) -> None:
    gripper = card.gripper
    if gripper is None:
        states = [name.rpartition(".")[2] for entry in card.input for name in entry.state or ()]
        if card.action.space == "axes" and "gripper" not in states:
            return
        used = "the state gripper is read" if card.action.space == "axes" else f"{card.action.space} has a gripper"
        raise card.refusal((), f"[gripper] is missing: {used}; say there what its numbers mean (action, open_m, …)")
    for name in ("state", "action"):
        _known(card, ("gripper", name), getattr(gripper, name), tuple(GRIPPERS))
    if gripper.closed_m >= gripper.open_m:
        text = f"closed_m {gripper.closed_m:g} is not below open_m {gripper.open_m:g}"
        raise card.refusal(("gripper", "closed_m"), text)


def _check_timing(card: Card) -> None:
    timing = card.timing
    if timing.give_up_s < timing.deadline_s:
        text = f"give_up_s is {timing.give_up_s:g}, before the deadline of {timing.deadline_s:g} s"
        raise card.refusal(("timing", "give_up_s"), text)
    if timing.starts == "capture" and card.action.stepped:
        text = f'{card.action.space} counts from what is measured at each step; use starts = "reply"'
        raise card.refusal(("timing", "starts"), text)
    if timing.ask_ahead_s and timing.starts != "capture":
        text = 'ask_ahead_s needs starts = "capture": otherwise two answers would claim the same time'
        raise card.refusal(("timing", "ask_ahead_s"), text)


def _check_server(card: Card) -> None:
    server = card.server
    if card.policy.dialect == "callable" and server != Server(ready_s=server.ready_s):
        raise card.refusal(("server",), "a callable runs in labctl's own process; only ready_s applies, drop the rest")
    if not server.start and (server.folder or server.env or server.gpu or server.gpu_memory_gb):
        raise card.refusal(("server",), "folder, env, gpu and gpu_memory_gb are for a server that `start` starts")


def _check_roboarena(card: Card) -> None:
    base = (card.roboarena or RoboArena()).camera_index_base
    exterior = {i: int(match[1]) for i, entry in enumerate(card.input) if (match := EXTERIOR.match(entry.key))}
    found = list(exterior.values())
    if sorted(found) != list(range(base, base + len(found))):
        text = f"exterior cameras are numbered {found}; with camera_index_base = {base} the first is {base}"
        raise card.refusal(("input", next(iter(exterior)), "key"), text)
    if card.action.execute:
        text = f"execute is {card.action.execute}; a RoboArena server's answer is followed to its end: say 0"
        raise card.refusal(("action", "execute"), text)


def _check_gr00t(card: Card) -> None:
    for index, entry in enumerate(card.input):
        part = entry.key.split(".")[0]
        allowed = ("video",) if entry.camera else ("state",) if not entry.prompt else ("language", "annotation")
        if part not in allowed or "." not in entry.key:
            text = f"key {entry.key!r}; GR00T's begin with {' or '.join(f'{word}.' for word in allowed)} here"
            raise card.refusal(("input", index, "key"), text)

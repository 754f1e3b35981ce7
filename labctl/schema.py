"""What a protocol, a cell and a fixture file may say: strict schemas, with each rule that one file alone can break.

May not: open files, or know what happens to a campaign. Attribute names equal the TOML keys.
Units are in the names: _s seconds, _m metres, _rad radians, _hz per second, _gb 10^9 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, Strict, StringConstraints

from labctl.toml_text import Document, Location, Table, parse, suggestion

# The perturbation axes of BridgeV2-★: the part before the hyphen is the category, of Visual, Semantic, Behavioural.
AXIS_CODES = (
    *("V-AUG", "V-SC", "V-OBJ", "V-VIEW", "V-LIGHT"),
    *("S-PROP", "S-LANG", "S-MO", "S-AFF", "S-INT"),
    "B-HOBJ",
    *("VB-POSE", "VB-ISC", "VB-MOBJ"),
    *("SB-NOUN", "SB-SMO", "SB-VRB"),
    "VS-PROP",
    "VSB-NOBJ",
)
MACHINE_VOID_REASONS = ("arm_lost", "camera_lost", "controller_lost", "recorder_lost", "process_lost")

Positive = Annotated[float, Field(gt=0)]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
PlainName = Annotated[
    str, StringConstraints(pattern=r"^[^/\s]([^/]*[^/\s])?$")
]  # no slash: a condition is "<object>/<layout>"
Lax = Strict(False)  # TOML knows arrays, not tuples; the items stay strict
Texts = Annotated[tuple[Text, ...], Lax]
Point = Annotated[tuple[float, float, float], Lax]
Size = Annotated[tuple[Positive, Positive, Positive], Lax]
Vector = Annotated[tuple[Positive, ...], Lax]


class ProtocolHead(Table):
    """[protocol]. `fixture` is a path relative to the protocol's file."""

    name: FileName
    question: Text
    fixture: Text
    authors: Texts = ()


class TrialRules(Table):
    """[trial]. The budget is one pool for an episode: items_staged x budget_s_per_item."""

    items_staged: Annotated[int, Field(ge=1)]
    budget_s_per_item: Positive
    arming_s: Annotated[float, Field(ge=0)]
    max_voids: Annotated[int, Field(ge=1)] = 3
    process_lost: Literal["void", "score"] = "void"
    early_end: Literal["allowed", "forbidden"] = "allowed"
    instruction: Text
    void_reasons: Texts = MACHINE_VOID_REASONS

    @property
    def budget_s(self) -> float:
        """Budget of one episode in seconds."""
        return self.items_staged * self.budget_s_per_item


class Design(Table):
    """[design]: every object in every layout is a condition."""

    objects: Annotated[tuple[PlainName, ...], Lax, Field(min_length=1)]
    layouts: Annotated[tuple[PlainName, ...], Lax, Field(min_length=1)]
    blocks_per_condition: Annotated[int, Field(ge=1)]


class AnalysisPlan(Table):
    """[analysis]: fixed before the first trial. Without a reference there is no HRT."""

    tau_s: Positive
    reference: Text | None = None
    family: Annotated[
        tuple[Literal["ks_sup_mean", "ks_macro", "log_rmst_ratio", "uph"], ...], Lax, Field(min_length=1)
    ] = ("ks_sup_mean", "ks_macro", "log_rmst_ratio", "uph")
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05


class Arm(Table):
    """[[arm]]: a treatment. `controller` is a driver name, `options` are the driver's."""

    name: Text
    kind: Literal["human", "policy"]
    controller: Text
    options: dict[str, Any] = Field(default_factory=dict)


class SessionRules(Table):
    """[session]: the checks that must be answered when an evening opens."""

    checks: Texts = ()


class Link(Table):
    """[[link]]: an earlier campaign, the chain head it had, and the arms of this protocol that are run in both."""

    campaign: FileName
    head: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    anchors: Annotated[tuple[Text, ...], Lax, Field(min_length=1)]


class Protocol(Document):
    """A pre-registered plan."""

    protocol: ProtocolHead
    trial: TrialRules
    design: Design
    analysis: AnalysisPlan
    session: SessionRules = SessionRules()
    arm: Annotated[tuple[Arm, ...], Lax]
    link: Annotated[tuple[Link, ...], Lax] = ()


class CellHead(Table):
    """[cell]. `operator` is a driver that stages and scores a headless run, or "console"."""

    name: FileName
    kind: Literal["real", "sim", "replay", "emulated"]
    clock: Literal["monotonic", "manual"] = "monotonic"
    operator: Text = "console"
    durable: bool = True


class Limits(Table):
    """[robot.limits]: per joint; the box the tool centre point stays inside, robot base frame; its highest speed."""

    velocity_rad_s: Vector
    acceleration_rad_s2: Vector
    box_min_m: Point
    box_max_m: Point
    tool_speed_m_s: Annotated[float, Field(gt=0, le=2)] | None = None


class RobotTable(Table):
    """[robot]. `options` are the driver's."""

    driver: Text
    state_hz: Positive
    control_hz: Positive
    observe_hz: Positive
    limits: Limits
    options: dict[str, Any] = Field(default_factory=dict)


class Lease(Table):
    """[lease]: how long the arm moves on without word from the run process, and after the newest target's time."""

    duration_s: Annotated[float, Field(gt=0, le=5)]
    stale_target_s: Annotated[float, Field(gt=0, le=5)]


class CameraTable(Table):
    """[[camera]]. The name becomes a file name. `options` are the driver's."""

    name: FileName
    driver: Text
    width: Annotated[int, Field(gt=0)]
    height: Annotated[int, Field(gt=0)]
    rate_hz: Positive
    options: dict[str, Any] = Field(default_factory=dict)


class Video(Table):
    """[video]: how cameras encode."""

    codec: Text = "libx264"
    preset: Text = "ultrafast"
    crf: Annotated[int, Field(ge=0, le=51)] = 23
    keyframe_s: Positive = 1.0


class Storage(Table):
    """[storage]: less free disk than this is a hold; a trace chunk holds about `chunk_s`, which a kill may lose."""

    min_free_gb: Annotated[float, Field(ge=0)] = 1.0
    chunk_s: Annotated[float, Field(gt=0, le=10)] = 1.0


class Cell(Document):
    """A robot and its surroundings."""

    cell: CellHead
    robot: RobotTable
    lease: Lease
    camera: Annotated[tuple[CameraTable, ...], Lax] = ()
    video: Video = Video()
    storage: Storage = Storage()


class FixtureHead(Table):
    """[fixture]."""

    name: FileName
    description: str = ""


class Tote(Table):
    """[[tote]]: centre of its floor and inner size, robot base frame."""

    name: PlainName
    centre_m: Point
    size_m: Size


class FixtureObject(Table):
    """[[object]]: `difficulty` scales grasp failures of simulated controllers only."""

    name: PlainName
    item_size_m: Size
    grasp_width_m: Positive
    difficulty: Positive = 1.0
    axes: Texts = ()
    tags: Texts = ()


class Layout(Table):
    """[[layout]]: `tote_side` names the target tote."""

    name: PlainName
    tote_side: PlainName
    camera_side: Literal["left", "right"]
    instructions: Text
    axes: Texts = ()
    tags: Texts = ()


class Fixture(Document):
    """The physical jig."""

    fixture: FixtureHead
    tote: Annotated[tuple[Tote, ...], Lax, Field(min_length=2)]
    object: Annotated[tuple[FixtureObject, ...], Lax, Field(min_length=1)]
    layout: Annotated[tuple[Layout, ...], Lax, Field(min_length=1)]


def parse_protocol(text: str, where: str) -> Protocol:
    """The protocol in a TOML text; `where` is its file's name for messages. Raises InputError with file:line."""
    found = parse(Protocol, text, where)
    names = [arm.name for arm in found.arm]
    if len(names) < 2:
        raise found.refusal(("arm",), f"{len(names)} [[arm]] found; a block needs at least 2, add another")
    _refuse_repeats(found, ("arm",), names)
    for index, arm in enumerate(found.arm):
        if arm.kind == "human" and "human" in [earlier.kind for earlier in found.arm[:index]]:
            raise found.refusal(
                ("arm", index, "kind"),
                "a second arm of kind 'human'; a protocol may have one, make it a policy or drop it",
            )
    _refuse_repeats(found, ("design", "objects"), found.design.objects)
    _refuse_repeats(found, ("design", "layouts"), found.design.layouts)
    _refuse_repeats(found, ("analysis", "family"), found.analysis.family)
    _refuse_repeats(found, ("trial", "void_reasons"), found.trial.void_reasons)
    missing = [reason for reason in MACHINE_VOID_REASONS if reason not in found.trial.void_reasons]
    if missing:
        message = f"void_reasons lacks {', '.join(missing)}; the machine's own reasons are always possible, add them"
        raise found.refusal(("trial", "void_reasons"), message)
    if found.analysis.tau_s > found.trial.budget_s:
        budget = f"{found.trial.items_staged} items x {found.trial.budget_s_per_item:g} s = {found.trial.budget_s:g} s"
        message = (
            f"tau_s is {found.analysis.tau_s:g}, beyond the episode budget of {budget}; lower tau_s or raise the budget"
        )
        raise found.refusal(("analysis", "tau_s"), message)
    if found.analysis.reference is not None:
        _refuse_unknown(found, ("analysis", "reference"), "reference", [found.analysis.reference], "arms", names)
    for index, link in enumerate(found.link):
        _refuse_repeats(found, ("link", index, "anchors"), link.anchors)
        _refuse_unknown(found, ("link", index, "anchors"), "anchor", link.anchors, "arms", names)
    return found


def parse_cell(text: str, where: str) -> Cell:
    """The cell in a TOML text; `where` is its file's name for messages. Raises InputError with file:line."""
    found = parse(Cell, text, where)
    kind, limits = found.cell.kind, found.robot.limits
    if found.cell.clock == "manual" and kind not in ("sim", "replay"):
        raise found.refusal(
            ("cell", "clock"), f"clock is 'manual' and kind is {kind!r}; only sim and replay cells have simulated time"
        )
    if not found.cell.durable and kind != "sim":
        raise found.refusal(
            ("cell", "durable"), f"durable is false and kind is {kind!r}; only a sim cell may risk its record"
        )
    joints = len(limits.velocity_rad_s)
    if not joints:
        raise found.refusal(("robot", "limits", "velocity_rad_s"), "velocity_rad_s is empty; give one value per joint")
    if len(limits.acceleration_rad_s2) != joints:
        counts = f"{len(limits.acceleration_rad_s2)} values, velocity_rad_s {joints}"
        message = f"acceleration_rad_s2 has {counts}; give one value per joint in each"
        raise found.refusal(("robot", "limits", "acceleration_rad_s2"), message)
    for axis, low, high in zip("xyz", limits.box_min_m, limits.box_max_m, strict=True):
        if low >= high:
            message = f"the box is empty along {axis}: box_min_m {low:g} is not below box_max_m {high:g}"
            raise found.refusal(("robot", "limits", "box_max_m"), message)
    _refuse_repeats(found, ("camera",), [camera.name for camera in found.camera])
    return found


def parse_fixture(text: str, where: str) -> Fixture:
    """The fixture in a TOML text; `where` is its file's name for messages. Raises InputError with file:line."""
    found = parse(Fixture, text, where)
    totes = [tote.name for tote in found.tote]
    _refuse_repeats(found, ("tote",), totes)
    for table, entries in (("object", found.object), ("layout", found.layout)):
        _refuse_repeats(found, (table,), [entry.name for entry in entries])
        for index, entry in enumerate(entries):
            _refuse_unknown(found, (table, index, "axes"), "axis", entry.axes, "axes", AXIS_CODES)
    for index, layout in enumerate(found.layout):
        _refuse_unknown(found, ("layout", index, "tote_side"), "tote", [layout.tote_side], "totes", totes)
    return found


def check_against_fixture(protocol: Protocol, fixture: Fixture, where: str) -> None:
    """Every object and layout of the design must exist in the fixture. Raises InputError at the protocol's line."""
    objects, layouts = [o.name for o in fixture.object], [entry.name for entry in fixture.layout]
    there = f"fixture {fixture.fixture.name!r} has"
    _refuse_unknown(protocol, ("design", "objects"), "object", protocol.design.objects, there, objects, where)
    _refuse_unknown(protocol, ("design", "layouts"), "layout", protocol.design.layouts, there, layouts, where)


def _refuse_repeats(document: Document, at: Location, names: Sequence[str]) -> None:
    for index, name in enumerate(names):
        if name in names[:index]:
            raise document.refusal(
                (*at, index, "name"), f"{name!r} appears twice in {at[-1]!r}; every entry needs its own name"
            )


def _refuse_unknown(
    document: Document,
    at: Location,
    what: str,
    names: Sequence[str],
    whose: str,
    known: Sequence[str],
    where: str | None = None,
) -> None:
    for name in names:
        if name not in known:
            message = f"unknown {what} {name!r}{suggestion(name, known)}; {whose}: {', '.join(known)}"
            raise document.refusal(at, message, where)

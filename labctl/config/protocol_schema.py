"""What a protocol file may say: a strict schema, with each rule that one file alone can break. Cells, fixtures and labs
are in `cell_schema`.

May not: open files, or know what happens to a campaign. Attribute names equal the TOML keys.
Units are in the names: _s seconds, _m metres, _rad radians, _hz per second, _gb 10^9 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field, JsonValue, StringConstraints

from labctl.config.cell_schema import Fixture, refuse_repeats, refuse_unknown
from labctl.config.cells import Cells, check_cells
from labctl.config.human import HumanRules, check_person
from labctl.config.interim_analyses import Looks, check_looks
from labctl.config.margin import Margin
from labctl.config.reasons import MACHINE_VOID_REASONS
from labctl.config.switches import Switch, check_switches
from labctl.config.tasks import (
    ConditionRow,
    Pools,
    Preference,
    Task,
    Template,
    check_conditions,
    check_tasks,
    expanded,
    listed_at,
)
from labctl.config.toml_text import Document, Location, Table, parse
from labctl.config.values import FileName, Lax, PlainName, Positive, StopCause, Text, Texts
from labctl.config.witness import Witness


class ProtocolHead(Table):
    """[protocol]. `fixture` is a path relative to the protocol's file."""

    name: FileName
    question: Text
    fixture: Text
    authors: Texts = ()


class TrialRules(Table):
    """[trial]. items_staged, budget_s_per_item, instruction and stages are of the short form: with [[task]] tables each
    task has its own, and failure_tags are those that every task has. In the short form the budget is one pool for an
    episode: items_staged x budget_s_per_item.

    process_lost: what becomes of an episode that ended because a process was lost; camera_lost: whether the loss of a
    camera ends an episode, or is a gap in its recording. failure_tags: what an assessor may tick; stages: how far a
    task can get, in order; ask_guess: the operator is asked after each episode which arm it was, for the blinding
    index. takeover: whether a person may take the robot from a policy with the cell's [teleop] device. stops_count: of
    which causes a stop by hand counts against the arm, as its safety stop; one of another cause is an end by the
    operator.
    """

    items_staged: Annotated[int, Field(ge=1)] | None = None
    budget_s_per_item: Positive | None = None
    arming_s: Annotated[float, Field(ge=0)]
    max_voids: Annotated[int, Field(ge=1)] = 3
    process_lost: Literal["void", "score"] = "void"
    camera_lost: Literal["mark", "end"] = "mark"
    early_end: Literal["allowed", "forbidden"] = "allowed"
    stops_count: Annotated[tuple[StopCause, ...], Lax] = ("danger", "contact")
    takeover: Literal["forbidden", "allowed"] = "forbidden"
    instruction: Text | None = None
    void_reasons: Texts = MACHINE_VOID_REASONS
    failure_tags: Texts = ()
    stages: Texts = ()
    ask_guess: bool = False


class Design(Table):
    """[design]: how often each condition is tried. In the short form every object in every layout is one; with [[task]]
    tables the [[condition]] tables are.
    """

    objects: Annotated[tuple[PlainName, ...], Lax, Field(min_length=1)] | None = None
    layouts: Annotated[tuple[PlainName, ...], Lax, Field(min_length=1)] | None = None
    blocks_per_condition: Annotated[int, Field(ge=1)]


Statistic = Literal["ks_macro", "ks_sup_mean", "log_rmst_ratio", "uph"]


class AnalysisPlan(Table):
    """[analysis]: fixed before the first trial. Without a reference there is no HRT.

    random_factors: what a claim is to go beyond, of the evenings and the teleoperators of the reference that were met.
    estimator: what RMST, HRT and their ratios are made of, all operations alike, or every episode (Wang & Chang).
    """

    tau_s: Positive
    reference: Text | None = None
    family: Annotated[tuple[Statistic, ...], Lax, Field(min_length=1)] = get_args(Statistic)
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    estimator: Literal["kaplan_meier", "wang_chang"] = "kaplan_meier"
    looks: Looks | None = None
    margin: Margin | None = None
    random_factors: Annotated[tuple[Literal["session", "operator"], ...], Lax] = ()


class Arm(Table):
    """[[arm]]: a treatment. `controller` is a driver name, `options` are the driver's."""

    name: Text
    kind: Literal["human", "policy"]
    controller: Text
    options: dict[str, JsonValue] = Field(default_factory=dict)


class Estimand(Table):
    """[estimand]: what counts as what; a report says it in a sentence and repeats every verdict under each alternative.

    help: of episodes that a person touched; voids: of those after go; early_ends: "by_reason" carries what was open at
    an end for futility or by an interlock to the budget and censors it where it stands at one by the operator,
    "carried" and "observed" do one of them with all; crash: an arm's own (`controller_lost`) after go: the open
    operation fails, as at a safety stop, or is censored ("ended"), or the episode is void and run again. "no_success":
    nothing moved in all its budget.
    """

    help: Literal["as_it_went", "no_success"] = "as_it_went"
    voids: Literal["left_out", "no_success"] = "left_out"
    early_ends: Literal["by_reason", "carried", "observed"] = "by_reason"
    crash: Literal["failure", "ended", "void"] = "failure"


class SessionRules(Table):
    """[session]: the checks that must be answered when an evening opens."""

    checks: Texts = ()


class SceneRules(Table):
    """[scene]: how a scene is put back and what a commit asks of it. `restore`: every trial is put back to the first
    scene of its block, or of its condition. `min_score`: "measured" asks 10 points less than the frames of the
    reference's own photo score against each other; "where_measured", the same where there is such a score, of a photo
    taken here and with scikit-image installed, and holds nothing elsewhere; "none" holds nothing.
    """

    restore: Literal["block", "condition"] = "block"
    require_photo: bool = True
    min_score: Annotated[float, Field(ge=0, le=100)] | Literal["measured", "where_measured", "none"] = "where_measured"
    max_camera_shift_px: Positive = 4.0
    override: Literal["forbidden", "allowed"] = "forbidden"


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
    estimand: Estimand = Estimand()
    session: SessionRules = SessionRules()
    scene: SceneRules = SceneRules()
    human: HumanRules | None = None
    arm: Annotated[tuple[Arm, ...], Lax]
    link: Annotated[tuple[Link, ...], Lax] = ()
    switch: Annotated[tuple[Switch, ...], Lax] = ()
    task: Annotated[tuple[Task, ...], Lax] = ()
    condition: Annotated[tuple[ConditionRow, ...], Lax] = ()
    template: Annotated[tuple[Template, ...], Lax] = ()
    pools: Pools = Pools()
    preference: Preference | None = None
    witness: Witness | None = None
    cells: Cells | None = None

    @property
    def tasks(self) -> tuple[Task, ...]:
        """The [[task]] tables, or the one task that the short form stands for."""
        if self.task:
            return self.task
        rules, design = self.trial, self.design
        assert rules.items_staged and rules.budget_s_per_item and rules.instruction and design.objects
        return (
            Task(
                name=self.protocol.name,
                instruction=rules.instruction,
                objects=design.objects,
                items_staged=rules.items_staged,
                budget_s=rules.items_staged * rules.budget_s_per_item,
            ),
        )

    @property
    def placed_conditions(self) -> list[tuple[Location, ConditionRow]]:
        """The conditions of [[condition]] and then those of each [[template]], with the table that says it. Raises
        InputError for a template that cannot be expanded.
        """
        found: list[tuple[Location, ConditionRow]] = [
            (("condition", index), row) for index, row in enumerate(self.condition)
        ]
        for index, template in enumerate(self.template):
            found += [(("template", index), row) for row in expanded(self, index, template, self.task)]
        return found

    @property
    def conditions(self) -> tuple[ConditionRow, ...]:
        """The conditions of a protocol with tasks, in the order in which they are listed."""
        return tuple(row for _, row in self.placed_conditions)

    @property
    def conditions_count(self) -> int:
        """How many conditions are tried."""
        return len(self.conditions) or len(self.design.objects or ()) * len(self.design.layouts or ())

    @property
    def alone(self) -> tuple[str, int] | None:
        """The person's arm, and how many blocks it has by itself at each condition; None without any."""
        extra = self.human.extra_blocks if self.human else 0
        return (next(arm.name for arm in self.arm if arm.kind == "human"), extra) if extra else None

    @property
    def alone_share(self) -> float:
        """How many blocks of the person by itself there are for each with every arm."""
        return self.alone[1] / self.design.blocks_per_condition if self.alone else 0.0

    def task_in_items(self, what: str) -> Task:
        """The one task of the short form. Raises InputError that says what is for such protocols alone."""
        if self.task:
            message = (
                f"{what} plans times per item, of protocols in the short form; {self.protocol.name} has [[task]] tables"
            )
            raise self.refusal(("task",), f"{message}: {OF_SUCCESS}")
        return self.tasks[0]


OF_SUCCESS = (
    "labctl plan says how many blocks a drop of success takes, and labctl power with --discordant and --difference, "
    "--rates or --half-width how many pairs or trials of success"
)
SHORT_FORM = (
    *(("trial", key) for key in ("items_staged", "budget_s_per_item", "instruction")),
    *(("design", key) for key in ("objects", "layouts")),
)


def parse_protocol(text: str, where: str) -> Protocol:
    """The protocol in a TOML text; `where` is its file's name for messages. Raises InputError with file:line."""
    found = parse(Protocol, text, where)
    names = [arm.name for arm in found.arm]
    compares: dict[Location, bool] = {
        **{("analysis", key): getattr(found.analysis, key) is not None for key in ("looks", "margin", "reference")},
        ("preference",): found.preference is not None,
        ("trial", "ask_guess"): found.trial.ask_guess,
    }
    check_person(found, found.human, [arm.kind for arm in found.arm], compares)
    refuse_repeats(found, ("arm",), names)
    for index, arm in enumerate(found.arm):
        if arm.kind == "human" and "human" in [earlier.kind for earlier in found.arm[:index]]:
            raise found.refusal(
                ("arm", index, "kind"),
                "a second arm of kind 'human'; a protocol may have one, make it a policy or drop it",
            )
    _check_form(found)
    for table, keys in (
        ("design", ("objects", "layouts")),
        ("analysis", ("family", "random_factors")),
        ("trial", ("void_reasons", "failure_tags", "stages", "stops_count")),
    ):
        for key in keys:
            refuse_repeats(found, (table, key), getattr(getattr(found, table), key) or ())
    own = "controller_lost" if found.estimand.crash != "void" else None
    missing = [reason for reason in MACHINE_VOID_REASONS if reason not in (*found.trial.void_reasons, own)]
    if missing:
        message = f"void_reasons lacks {', '.join(missing)}; the machine's own reasons are always possible, add them"
        raise found.refusal(("trial", "void_reasons"), message)
    shortest = min(found.tasks, key=lambda task: task.budget_s)
    if found.analysis.tau_s > shortest.budget_s:
        whose = f"{shortest.items_staged} items x {found.trial.budget_s_per_item:g} s = " if not found.task else ""
        message = (
            f"tau_s is {found.analysis.tau_s:g}, beyond the episode budget of {whose}{shortest.budget_s:g} s; "
            "lower tau_s or raise the budget"
        )
        raise found.refusal(("analysis", "tau_s"), message)
    tags = found.trial.failure_tags
    check_switches(found, found.switch, found.tasks[0].instruction, shortest.budget_s, tags)
    if found.analysis.reference is not None:
        refuse_unknown(found, ("analysis", "reference"), "reference", [found.analysis.reference], "arms", names)
    if found.analysis.looks is not None:
        blocks = found.design.blocks_per_condition * found.conditions_count
        check_looks(found, ("analysis", "looks", "fractions"), found.analysis.looks, blocks, names)
    if found.analysis.margin is not None and (to := found.analysis.margin.non_inferior_to) is not None:
        refuse_unknown(found, ("analysis", "margin", "non_inferior_to"), "arm", [to], "arms", names)
    if found.cells is not None:
        extra = bool(found.human and found.human.extra_blocks)
        there = {"looks": found.analysis.looks is not None, "link": bool(found.link), "extra_blocks": extra}
        check_cells(found, found.cells, found.design.blocks_per_condition, there)
    for index, link in enumerate(found.link):
        refuse_repeats(found, ("link", index, "anchors"), link.anchors)
        refuse_unknown(found, ("link", index, "anchors"), "anchor", link.anchors, "arms", names)
    return found


def _check_form(found: Protocol) -> None:
    """A protocol is written in the short form or in tables of tasks and conditions, and whole. Raises InputError."""
    given = [at for at in SHORT_FORM if getattr(getattr(found, at[0]), at[1]) is not None]
    if not found.task:
        for table in ("condition", "template", "pools"):
            if table in found.model_fields_set:
                raise found.refusal((table,), f"[{table}] needs [[task]] tables; add one, or take it out")
        for at in SHORT_FORM:
            if at not in given:
                raise found.refusal(at[:1], f"[{at[0]}] needs the key {at[1]!r}; add it")
        per_item = found.trial.budget_s_per_item
        if not math.isfinite((found.trial.items_staged or 0) * (per_item or 0.0)):
            text = f"budget_s_per_item is {per_item:g}, and an episode's budget would be endless; shorten it"
            raise found.refusal(("trial", "budget_s_per_item"), text)
        return
    for at in [*given, *([("trial", "stages")] if found.trial.stages else [])]:
        message = f"{at[1]} in [{at[0]}] is of the short form; this protocol has [[task]] tables, which say it"
        raise found.refusal(at, f"{message}: take it out")
    if found.switch:
        message = (
            "a [[switch]] is of the one instruction of the short form; with [[task]] tables each condition has its own"
        )
        raise found.refusal(("switch",), f"{message}, and nothing says which of them it would change: take it out")
    if not found.condition and not found.template:
        raise found.refusal(("task",), "[[task]] tables and no [[condition]]; nothing would be tried, add one")
    check_tasks(found, found.task, found.trial.failure_tags)
    check_conditions(found, found.placed_conditions, found.task, found.pools)


def check_against_fixture(protocol: Protocol, fixture: Fixture, where: str) -> None:
    """Every object and layout of the protocol must exist in the fixture. Raises InputError at the protocol's line."""
    objects, layouts = [o.name for o in fixture.object], [entry.name for entry in fixture.layout]
    there = f"fixture {fixture.fixture.name!r} has"
    named: list[tuple[str, Location, Sequence[str], Sequence[str]]] = [
        ("object", ("design", "objects"), protocol.design.objects or (), objects)
    ]
    named += [("layout", ("design", "layouts"), protocol.design.layouts or (), layouts)]
    for index, task in enumerate(protocol.task):
        named.append(("object", ("task", index, "objects"), task.objects, objects))
        named.append(("layout", ("task", index, "layout"), (task.layout,) if task.layout else (), layouts))
    for at, row in protocol.placed_conditions:
        named.append(("layout", listed_at(at, "layout"), (row.layout,) if row.layout else (), layouts))
    for split, pool in (("train", protocol.pools.train), ("test", protocol.pools.test)):
        named.append(("object", ("pools", split, "objects"), pool.objects, objects))
        named.append(("layout", ("pools", split, "layouts"), pool.layouts, layouts))
    for what, at, names, known in named:
        refuse_unknown(protocol, at, what, names, there, known, where)

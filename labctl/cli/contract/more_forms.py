"""More of what --json prints: the checks of a machine, and the calculators.

May not: compute or check; see `forms`.
"""

from __future__ import annotations

from typing import NotRequired, TypedDict

from labctl.analysis.binary.compare import ComparedArms, Comparison, Paired, Stratified
from labctl.analysis.binary.rates import Rate
from labctl.analysis.episodes.offline import Screened
from labctl.analysis.planning.answers import Answer
from labctl.analysis.planning.axis_design import Needed
from labctl.analysis.planning.cells_design import PlannedCells
from labctl.analysis.planning.experiments import Rejections
from labctl.analysis.planning.interim_design import Resolution, Widths
from labctl.checks.computer import Check
from labctl.checks.protocol_size import Contrast, Covered, Hours
from labctl.checks.site.judging import Judged
from labctl.cli.contract.forms import Computed, Document
from labctl.people.qualifications import Calibrated
from labctl.reporting.times.lab_times import Disk


class Doctor(Document):
    """`labctl doctor`, which exits with 1 where the cell could not run."""

    runnable: bool
    checks: list[Check]


class Qualified(Document):
    """`labctl qualify site` (checks) and `assessor` (person, assessor), which exit with 1 where it is not passed.
    analysed_by: of `assessor`, the labctl that computed it.
    """

    passed: bool
    checks: NotRequired[list[Check]]
    person: NotRequired[str]
    assessor: NotRequired[Judged]
    analysed_by: NotRequired[str]


class KitMade(Document):
    """`labctl qualify new`: a kit to fill in."""

    kit: str


class SiteState(TypedDict):
    """A check of a site: by its cell file, when."""

    cell: str
    passed: bool
    wall: str


class Qualifications(Document):
    """`labctl qualify list`."""

    assessors: list[Calibrated]
    sites: list[SiteState]


class AlertTried(TypedDict):
    """One way, and why a test did not arrive at its server; null where it did."""

    error: str | None


class AlertsTried(Document):
    """`labctl doctor --alerts`, by the names of [alerts]."""

    ways: dict[str, AlertTried]


class CameraLatency(TypedDict):
    """From screen to receipt, of one camera, in s; error_ms: of the page's clock; seen: pictures that were read."""

    camera: str
    n: int
    seen: int
    median_s: float
    p95_s: float
    error_ms: float


class Latency(Document):
    """`labctl doctor --latency`. failed: a line for each camera that could not be measured."""

    cameras: list[CameraLatency]
    failed: list[str]


class ConditionSize(TypedDict):
    """A condition by its size."""

    condition: str
    blocks: int
    trials: int


class SwitchAt(TypedDict):
    """A scripted switch of the instruction, s after go."""

    at_s: float
    instruction: str


class TrainedOn(TypedDict):
    """A condition that an arm was trained on."""

    condition: str
    arm: str


class ResolutionOf(Resolution):
    """Of so many blocks; sets: that they are in, where these hold several."""

    blocks: int
    sets: NotRequired[int]


class WidthsOf(Widths):
    """Of a protocol with one arm, which compares nothing. sets: as above."""

    design_effect: float
    warnings: list[str]
    blocks: int
    sets: NotRequired[int]


class Plan(Computed):
    """`labctl plan`. sets: of a base and what perturbs it, where they hold several blocks; extra_blocks: of the person
    alone, where there are some; times: where a trial's times are from; evenings: as they were given.
    """

    name: str
    question: str
    fixture: str
    conditions: list[ConditionSize]
    arms: int
    policies: int
    human: bool
    blocks: int
    sets: NotRequired[int]
    trials: int
    extra_blocks: NotRequired[int]
    items_staged: int
    budget_s: float
    tau_s: float
    alpha: float
    deducible_share: float
    looks_after: list[int]
    hours: Hours
    coverage: NotRequired[list[Covered]]
    contrasts: NotRequired[list[Contrast]]
    switches: NotRequired[list[SwitchAt]]
    drops: NotRequired[list[Needed]]
    trained: NotRequired[list[TrainedOn]]
    disk: NotRequired[Disk]
    cells: NotRequired[PlannedCells]
    times: str
    evenings: float | None
    resolution: ResolutionOf | WidthsOf


class Cost(TypedDict):
    """What a number of trials costs at the robot; trials null where no N was found."""

    trials: int | None
    hours: NotRequired[float]
    evenings: NotRequired[int]
    robot_days: NotRequired[float]
    at_most: NotRequired[bool]


class CostOf(Cost):
    """And where a trial's times are from."""

    times: str


class CostAt(Cost):
    """With `episodes` per arm and object."""

    episodes: int


class CostsBySize(TypedDict):
    """Of every size that was asked."""

    times: str
    by_size: list[CostAt]


class WidthAt(TypedDict):
    """The half-width of a rate's interval."""

    trials: int
    half_width: float


class InSets(TypedDict):
    """The blocks of a protocol whose sets of a base and what perturbs it are the N: a report counts a set as one."""

    blocks: int
    sets: int


class OneRate(Computed):
    """`labctl power --half-width`: trials for an interval so narrow; trials_at_half: whatever the rate."""

    question: str
    half_width: float
    rate: float
    trials: int
    trials_at_half: int
    by_trials: list[WidthAt]
    in_sets: NotRequired[InSets]
    cost: NotRequired[CostOf]


class PowerAt(TypedDict):
    """The power of two arms with so many trials each."""

    trials: int
    power: float


class TwoRates(Computed):
    """`labctl power --rates`: trials per arm, null beyond what is listed; trials_normal: by approximation; level: by
    Holm's strictest step, of a protocol with several pairs.
    """

    question: str
    rates: list[float]
    alpha: float
    level: NotRequired[float]
    target: float
    trials_per_arm: int | None
    trials_normal: int
    by_trials: list[PowerAt]
    in_sets: NotRequired[InSets]
    cost: NotRequired[CostOf]


class PairsAt(TypedDict):
    """The power of so many pairs, mid-p and exact, and the difference that is found with the power wanted."""

    pairs: int
    power: float
    power_exact: float
    resolvable: float | None


class PairedRates(Computed):
    """`labctl power --discordant --difference`; pairs_connor: by Connor's formula; level: as of `--rates`."""

    question: str
    discordant: float
    difference: float
    alpha: float
    level: NotRequired[float]
    target: float
    pairs: int | None
    pairs_connor: int
    by_pairs: list[PairsAt]
    in_sets: NotRequired[InSets]
    cost: NotRequired[CostOf]


class Times(Answer):
    """`labctl power --rmst` and `--pilot`."""

    cost: NotRequired[CostsBySize]


Power = OneRate | TwoRates | PairedRates | Times


class ComparedTable(Computed):
    """`labctl compare --counts`: every pair of arms."""

    pairs: list[ComparedArms]


Compared = ComparedTable | Comparison | Paired | Stratified


class Ratio(Rate):
    """One row of `labctl rates`; beside these keys the columns that it was pooled by, whose names are the table's."""


Rates = list[Ratio]  # the one document that is no object: docs/interface fixed it before there were envelopes


class Rejected(Rejections):
    """kind: "once" or "repeated" of two arms; "halves" or "mixed" where nothing differs."""

    kind: str


class ExperimentMade(Computed):
    """`labctl experiment`."""

    seed: int
    results: list[Rejected]


class Static(Computed):
    """`labctl static --policy`. reference: the person's arm; what: what the scores are, in words."""

    campaign: str
    reference: str | None
    episodes: list[str]
    keyframes: int
    what: str
    policies: list[Screened]

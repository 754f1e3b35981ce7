"""What --json prints where no other module has its type: a type for each document, and its parts.

May not: compute or check. A key is never taken away or given another meaning without a new number in the document's
name; keys may be added. Times are UTC (ISO 8601), paths as they were given or found.
"""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

from labctl.analysis.episode_facts import Practised, Rule
from labctl.analysis.report.judged_facts import SecondAssessor
from labctl.analysis.report.lab_facts import Hours
from labctl.messages.body_parts import Clock, Detected
from labctl.plain import Json


class Document(TypedDict):
    """What each document begins with: its name and number, such as labctl.status/2."""

    schema: str


class Computed(Document):
    """What every document of computed numbers says too: the labctl that computed them."""

    analysed_by: str


class Failed(Document):
    """A command that failed. kind: of the table of exit codes; file and line: where a user's mistake stands; remedy:
    what the message says after its first semicolon, most often what to do.
    """

    kind: str
    exit_code: int
    message: str
    file: str | None
    line: int | None
    remedy: str | None


class HeadAt(TypedDict):
    """The last entry of a chain and its hash."""

    seq: int
    hash: str


class Current(TypedDict):
    """The trial whose turn it is; number counts from 1, block from 0."""

    trial: str
    number: int
    block: int
    condition: str
    state: str
    episode: str | None
    voids: int


class HoldStands(TypedDict):
    """Something that a person has to look at before the next trial."""

    code: str
    text: str


class Standing(TypedDict):
    """Where one campaign stands, without an arm or an outcome. unverified: what does not hold of its record; edited: a
    line on files and modules of the lab that were edited since it was opened.
    """

    campaign: str
    phase: str
    trials: int
    finished: int
    by_state: dict[str, int]
    voids: int
    current: Current | None
    holds: list[HoldStands]
    faulted: str | None
    session: str | None
    unblinded_early: bool
    commitment: str
    head: HeadAt
    edited: NotRequired[list[str]]
    unverified: NotRequired[str]
    second_assessor: NotRequired[list[SecondAssessor]]
    hours: NotRequired[Hours]


class Unread(TypedDict):
    """One of several that is there and cannot be read; the exit code is then as of that one alone."""

    name: str
    error: str


class Status(Document):
    """`labctl status`: of one campaign or of all of the lab, always a list. page: written by --page. unread: the
    campaigns of the lab that cannot be opened.
    """

    campaigns: list[Standing]
    unread: list[Unread]
    page: NotRequired[str]


class RecordedEpisode(TypedDict):
    """One episode; its arm after unblinding only. block counts from 0; ended_by: the person who ended it."""

    episode: str
    trial: str
    block: int
    condition: str
    state: str
    ended: str | None
    ended_by: NotRequired[str]
    void: str | None
    sealed: bool
    gaps: int
    clocks: dict[str, Clock]
    began: str
    switched: NotRequired[int]
    arm: NotRequired[str]
    unverified: NotRequired[str]


class Recorded(Document):
    """`labctl episodes`, in the order they began."""

    campaign: str
    episodes: list[RecordedEpisode]


class ToReview(TypedDict):
    """One episode of the review's queue. differences: where its witnesses disagree, in words."""

    episode: str | None
    trial: str
    condition: str
    reviewed: bool
    differences: list[str]
    candidates: list[Candidate]


class Candidate(Detected):
    """An end of a hold, and what the traces show of it, in words."""

    seen: str


class Review(Document):
    """`labctl review --list` and `--finish`."""

    campaign: str
    episodes: list[ToReview]
    finished: NotRequired[str]


class CountsLooked(TypedDict):
    """How much a verification looked at."""

    entries: int
    recordings: int
    chunks: int
    videos: int
    photos: int


class BoundOutside(TypedDict):
    """What binds a record from outside its folder: the head as N:HASH, and how many entries it covers."""

    head: str | None
    entries: int
    commitment: str | None


class Damage(TypedDict):
    """One thing that does not hold. episode: whose recording it is in, "" for anything else."""

    what: str
    where: str
    detail: str
    episode: str


class VerifiedCampaign(TypedDict):
    """One campaign. head: "N HASH"; not_bound: what its format has no digest for."""

    campaign: str
    ok: bool
    counts: CountsLooked
    head: str
    outside: BoundOutside | None
    problems: list[Damage]
    notes: list[str]
    not_bound: list[str]


class Verified(Document):
    """`labctl verify`, which exits with 1 where a campaign is not ok."""

    campaigns: list[VerifiedCampaign]


class Link(TypedDict):
    """An earlier campaign that this one is linked to, at a head of its chain, through anchors. notes: what a report of
    both will warn of.
    """

    campaign: str
    head: str
    anchors: list[str]
    changed: list[str]
    notes: list[str]


class Opened(Document):
    """`labctl open`, `extend` and `joint join`. joined_again: of `joint join`, whether it was open already."""

    campaign: str
    folder: str
    commitment: str
    head: str
    links: NotRequired[list[Link]]
    joined_again: NotRequired[bool]


class Phase(Document):
    """`labctl close`, `freeze`, `unblind`: what the campaign is now. said: the lines that are printed without --json;
    reason: as it was given; arms: trial to arm, of `unblind`.
    """

    campaign: str
    phase: str
    head: HeadAt
    reason: str | None
    early: bool
    said: list[str]
    arms: NotRequired[dict[str, str]]


class Look(Computed):
    """`labctl look`."""

    campaign: str
    number: int
    looks: int
    blocks: int
    labels: str
    says: Literal["stop", "go on"]


class Lines(Document):
    """What is said in a line or two and has no parts: `labctl stop`, `stamp`, `joint tell`."""

    campaign: str
    said: list[str]


class Ran(Document):
    """`labctl run --headless`, once it has ended in order. complete: no trial is left; then as `labctl status`."""

    complete: bool
    campaign: Standing


class DriveEnded(Document):
    """`labctl teleop`. why: "" when it was asked to end; driven_s: for how long the hand could drive."""

    why: str
    failed: bool
    at_rest: bool
    driven_s: float


class PracticeKept(Document):
    """`labctl practice`: what was practised beside a campaign, and who is at the plateau."""

    campaign: str
    rule: Rule
    people: list[Practised]


class HasCode(TypedDict):
    """Somebody with a personal code, and since when."""

    person: str
    set: str


class People(Document):
    """`labctl people list`."""

    people: list[HasCode]


class CodeSet(Document):
    """`labctl people code`. did: the code was set, or taken away."""

    person: str
    did: Literal["set", "removed"]


class NewLab(Document):
    """`labctl new`."""

    folder: str
    files: list[str]


class DemoMade(Document):
    """`labctl demo`."""

    lab: str
    campaign: str
    commitment: str
    report: str


class ReportMade(Computed):
    """`labctl report`: its page; beside it report.json has every number. files: names in its folder."""

    report: str
    files: list[str]


class PageMade(Document):
    """A page or a recording that was written: `labctl episodes --page`, `show --save`."""

    file: str
    bytes: int
    masked: bool


class SceneMade(Document):
    """`labctl scene`. cameras: the verdict and how far each picture is from its reference."""

    picture: str
    trial: str
    condition: str
    wall: str
    cameras: dict[str, dict[str, Json]]


class Exported(Document):
    """`labctl export`: what every format says. A format says more: frames, what was left out."""

    format: str
    out: str
    rows: int
    masked: bool
    bytes: int
    files: int
    episodes: NotRequired[int]
    unverified: NotRequired[str]


class ImportMade(Document):
    """`labctl import`."""

    out: str
    episodes: int
    blocks: int
    arms: list[str]
    notes: list[str]


class Emulated(Document):
    """`labctl emulate --stats`, `--inject`, `--clear`: of a running emulator. stats: what it has counted, by name."""

    did: str
    stats: dict[str, Json]


class Bugreport(Document):
    """`labctl bugreport`. held: names in the archive; left_out: what is not in it, and why."""

    archive: str
    held: list[str]
    left_out: list[str]

"""Before anything moves: does every arm answer? And when like voids follow each other: a hold, not a lost arm.

May not: name an arm, say anything before all of them were asked, or show which did not answer, or when.

All are asked one after the other, in the order of the protocol, which has nothing to do with the order of trials; what
is shown is one clock for all of them, and one number at the end. Why one did not answer is kept with the seal.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from labctl.bus import Message, Step, Work
from labctl.clock import SECOND
from labctl.config.cell_schema import Setup
from labctl.config.protocol_schema import Arm
from labctl.core.events import ARMS_UNREADY, LOOK_SAID_STOP, VOIDS_ALIKE, Kind
from labctl.core.interlock import Hold
from labctl.core.run_facts import VAIN
from labctl.nodes.asking import ArmAnswer, ArmQuestion, ask, at_most_s
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.times import minutes

ASKED = "asked"
NOTES = "readiness.log"  # beside the seal: which arm did not answer, and why
NEEDS_A_LOOK = (ARMS_UNREADY, VOIDS_ALIKE, LOOK_SAID_STOP)  # holds that a run without a person ends at
BECAUSE = {
    "not_ready": "something that it needs was not ready when its arming time was over",
    "arm_lost": "the robot's process ended, or the robot could not go on",
    "camera_lost": "a camera gave no pictures",
    "sensor_lost": "a sensor gave no values",
    "sensor_limit": "a sensor was beyond a limit of the cell",
    "controller_lost": "what drives the robot failed or ended",
    "recorder_lost": "the recorder's process ended",
    "process_lost": "a process was not heard in time",
    "safety_stop": "the robot was stopped before go",
    "interlock": "a sensor was beyond a limit of the cell before go",
    "operator": "the operator ended it before go",
    "futility": "the operator ended it before go, for lack of progress",
    "controller_done": "what drives the robot said before go that it was done",
}


class Readiness:
    """See the module. here: arms are asked in this process."""

    def __init__(
        self, writer: CampaignWriter, arms: Mapping[str, Arm], setup: Setup, *, here: bool, wanted: bool = True
    ) -> None:
        self._writer, self._arms, self._setup, self._here = writer, arms, setup, here
        rules = writer.campaign.cell.readiness
        self._due = wanted and rules.ask_arms
        self._asking = False
        self._began_ns = 0
        most = writer.opened["max_voids"]  # no trial is lost before somebody looked
        self._alike = min(rules.like_voids, most) if rules.like_voids else 0

    def advance(self, now_ns: int, step: Step) -> None:
        """Begin to ask, once a start. The call may take as long as every server takes to start."""
        if self._due and not self._asking:
            self._due, self._asking, self._began_ns = False, True, now_ns
            step.work.append(Work(self._ask_all, ASKED, alone=True))

    def _ask_all(self) -> list[tuple[str, ArmAnswer]]:
        return [(name, ask(question, here=self._here)) for name, question in self._questions()]

    def _questions(self) -> Iterator[tuple[str, ArmQuestion]]:
        for arm in self._arms.values():
            yield arm.name, ArmQuestion.of(self._setup, arm.controller, arm.options)

    def hear(self, message: Message) -> None:
        """All were asked."""
        self._asking = False
        problem: ArmAnswer = {"problem": message.body.get("error", "it was not asked")}
        found: Sequence[tuple[str, ArmAnswer]]
        found = message.body.get("result") or [(name, problem) for name in self._arms]
        with self._writer.ledger.private_file(NOTES).open("a", encoding="utf-8") as notes:
            for name, answers in found:
                # in simulated time nothing took any time, and the same run gives the same bytes
                kept = {key: value for key, value in answers.items() if key == "problem" or not self._here}
                notes.write(json.dumps({"at": self._writer.anchor().wall, "arm": name, **kept}) + "\n")
        asked, answer = len(found), sum("problem" not in answers for _, answers in found)
        self._writer.log(Kind.ARMS_ASKED, {"asked": asked, "answer": answer})
        self._writer.say(f"{answer} of {asked} arms answer")
        if answer < asked:
            text = (
                f"{answer} of {asked} arms answer: nothing moves before all do. Whoever may know the arms finds why in "
                f"seal/{NOTES}; once it is put right, acknowledge this, and all are asked again"
            )
            self._writer.log(Kind.HOLD_RAISED, {"code": ARMS_UNREADY, "text": text})

    def again(self) -> None:
        """Somebody put right what was wrong: all are asked again."""
        self._due = True

    def hold(self, now_ns: int) -> Hold | None:
        """Against any motion while they are asked. Its clock is that of all: from the first question, to when the last
        is over at the latest; with what an arm takes of that nobody is told apart.
        """
        if not (self._due or self._asking):
            return None
        text = f"all {len(self._arms)} arms are asked, one after another, whether they answer"
        most_s = 0.0 if self._here else self._most_s
        if not most_s:
            return Hold("arms_asked", text, "nothing to do: wait until all were asked", awaited=True)
        since_s = (now_ns - self._began_ns) / SECOND if self._asking else 0.0
        told = f"{minutes(since_s)} so far, {minutes(max(0.0, most_s - since_s))} left at most"
        whole = f"{text}, within {minutes(most_s)}"
        return Hold("arms_asked", whole, f"nothing to do: wait until all were asked; {told}", awaited=True)

    @cached_property
    def _most_s(self) -> float:
        """How long asking takes at most, where every server hangs."""
        return sum(at_most_s(question) for _, question in self._questions())

    def look(self) -> None:
        """Raise a hold when as many like voids followed each other as the cell allows."""
        state = self._writer.state
        reason, times = state.alike
        if not self._alike or times < self._alike or VOIDS_ALIKE in state.holds:
            return
        many = f"the last {times} episodes are void for the same reason" if times > 1 else "the last episode is void"
        where = "whoever may know the arms looks into seal/controller.log of the campaign"
        if self._here:  # no controller has a process of its own
            where = "a run in simulated time keeps no log; labctl doctor CELL.toml --protocol looks at cell and cards"
        text = f"{many}, {reason}: {BECAUSE[reason]}. Find out why ({where}); no trial is lost once that is done"
        self._writer.log(Kind.HOLD_RAISED, {"code": VOIDS_ALIKE, "text": text})

    def unattended(self) -> str:
        """Why a run that no person attends cannot go on, in words; "" while it can. What is acknowledged in vain would
        be for ever.
        """
        holds, again = self._writer.state.holds, self._writer.facts.again
        if again:
            return f"{again} (acknowledged {VAIN} times, and back with no episode in between)"
        return next((holds[code] for code in NEEDS_A_LOOK if code in holds), "")

"""A run node on a bench: its cell answers as told, in simulated time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from labctl.bus import Message, Work
from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.config.cell_schema import Setup
from labctl.core.events import Kind
from labctl.core.liveness import Liveness
from labctl.core.trial import State, fold
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer
from labctl.runtime.lab_modules import PinsNow
from labctl.runtime.readiness import Readiness
from labctl.runtime.runner import RunNode
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings


class Bench:
    """A run node with a cell that answers as told, in simulated time."""

    def __init__(
        self,
        campaign: Campaign,
        *,
        clock: ManualClock | None = None,
        recovered: Sequence[str] | None = None,
        ask_arms: bool = False,
        here: bool = True,
        attended: bool = True,
        pins: PinsNow = dict,
    ) -> None:
        """clock: of a bench before this one. recovered: what was concluded when the run was started again. ask_arms: it
        begins by asking whether every arm answers; here: in simulated time, in this process. attended: by
        people. pins: the software of each episode.
        """
        self.campaign, self.clock = campaign, clock or ManualClock(100 * SECOND)
        self.lines: list[str] = []
        self.sent: list[Message] = []
        self.work: list[Work] = []
        self.ids = 0
        self.mode, self.reason, self.clipped = "idle", "", ""
        writer = CampaignWriter(campaign, self.clock.anchor, self.lines.append, "run")
        writer.log(Kind.RUN_STARTED, {"pins": {}, "recovered": list(recovered or ())})
        self.cameras = [f"camera:{camera.name}" for camera in campaign.cell.camera]
        self.sensors = [sensor.node for sensor in campaign.cell.sensor]
        self.taking = set(self.cameras)  # nodes of the cameras that take photos when asked
        self.finds: dict[str, dict[str, Any]] = {}
        self.liveness = Liveness(["recorder", "arm", *self.cameras, *self.sensors])
        arms = {arm.name: arm for arm in campaign.protocol.arm}
        sequencer = EpisodeSequencer(writer, self.liveness, arms, pins, 300 * MILLISECOND)
        setup = Setup(cell=campaign.cell, fixture=campaign.fixture)
        readiness = Readiness(writer, arms, setup, here=here, wanted=ask_arms)
        given = {"readiness": readiness, "attended": attended}
        self.node = RunNode(writer, sequencer, self.liveness, run_id=1, free_gb=lambda: 100.0, **given)

    @property
    def now_ns(self) -> int:
        return self.clock.now_ns()

    def hear(self, *messages: Message) -> list[Message]:
        step = self.node.step(self.now_ns, list(messages))
        assert not step.refused, step.refused
        self.sent += step.out
        self.work += step.work
        photos = [self.photographed(m.to, m.body) for m in step.out if m.kind == "photo" and m.to in self.taking]
        return [*step.out, *(self.hear(*photos) if photos else ())]

    def photographed(self, node: str, asked: Mapping[str, Any]) -> Message:
        """A camera's answer to a request for a photo, with what it is to find there (`finds`)."""
        name = node.removeprefix("camera:")
        photo = {"file": asked["file"], "sha256": f"{self.now_ns + len(name):064x}", "t_ns": self.now_ns}
        found = {"scene": None, "pose": None, "problem": None, **self.finds.get(name, {})}
        body = {"request": asked["request"], "camera": name, "photo": photo, **found}
        return Message("run", "photographed", body, sender=node)

    def compared(self, name: str, **found: Any) -> None:
        """A camera's word about the scene that is staged."""
        told = [m.body for m in self.sent if m.kind == "compare" and m.to == f"camera:{name}"][-1]
        body = {"camera": name, "trial": told["trial"], "round": told["round"], "t_ns": self.now_ns}
        plain = {"scene": None, "pose": None, "problem": None}
        self.hear(Message("run", "compared", {**body, **plain, **found}, sender=f"camera:{name}"))

    def wait(self, ns: int, *, beating: tuple[str, ...] = ()) -> None:
        """Let time pass with heartbeats and observations of the given nodes, else of all."""
        beating = beating or ("arm", "recorder", "controller", *self.cameras, *self.sensors)
        end_ns = self.now_ns + ns
        while self.now_ns < end_ns:
            self.clock.sleep_until(min(end_ns, self.now_ns + SECOND // 10))
            mail = [Message("run", "beats", {"names": list(beating)})]
            if "arm" in beating:
                body = {"mode": self.mode, "reason": self.reason, "clipped": self.clipped, "t_ns": self.now_ns}
                mail.append(Message("run", "obs", body, sender="arm"))
            self.hear(*mail)

    def camera(self, name: str, lost: str) -> None:
        """A camera's word: why it gives no pictures, "" when it does."""
        self.hear(Message("run", "camera", {"name": name, "lost": lost}, sender=name))

    def sensor(self, name: str, lost: str = "", beyond: Sequence[int] = ()) -> None:
        """A sensor's word: why it gives no values, "" when it does, and which of its limits it is beyond."""
        body = {"name": name, "lost": lost, "beyond": list(beyond), "t_ns": self.now_ns}
        self.hear(Message("run", "sensor", body, sender=name))

    def shown(self) -> dict:
        """The state that was published last."""
        return dict([message.body for message in self.sent if message.kind == "state"][-1])

    def command(
        self,
        verb: str,
        *,
        version: int | None = None,
        role: str = "operator",
        id_: str = "",
        who: str = "ann",
        console: str = "console",
        **args: Any,
    ) -> dict:
        self.ids += 1
        body = {"id": id_ or f"c{self.ids}", "verb": verb, "role": role, "who": who, "args": args, "version": version}
        out = self.hear(Message("run", "command", body, sender=console))
        return dict(next(message.body for message in out if message.kind == "reply"))

    def begin(self, **others: Sequence[str]) -> None:
        """Everyone is there, the session is open, the first scene is staged."""
        self.begin_session(**others)
        self.stage()

    def stage(self) -> None:
        """The trial at hand is staged, the robot is home."""
        assert self.command("stage", role="setter")["ok"]
        trial = [message.body["trial"] for message in self.sent if message.kind == "stage"][-1]
        self.hear(Message("run", "staged", {"trial": trial}, sender="arm"))

    def begin_session(self, **others: Sequence[str]) -> None:
        """Everyone is there, the session is open: ann in every role, and others in theirs."""
        self.hear(*(Message("run", "hello", sender=name) for name in ("arm", "recorder", *self.cameras, *self.sensors)))
        for name in self.cameras:
            self.camera(name, "")
        for name in self.sensors:
            self.sensor(name)
        self.wait(SECOND // 10)
        taken = {"ann": ["operator", "setter", "assessor"], **others}
        people = [{"id": person, "roles": list(roles)} for person, roles in taken.items()]
        assert self.command("session", people=people, checks={})["ok"]

    def commit(self) -> str:
        """Commit; returns the episode's id."""
        assert self.command("commit")["ok"]
        return next(m.body["episode"] for m in self.sent[::-1] if m.to == "recorder" and m.kind == "open")

    def start(self) -> str:
        """Commit and start a ready episode."""
        episode = self.commit()
        self.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
        self.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
        assert self.command("start")["ok"]
        self.wait(4 * SECOND)
        return episode

    def go(self, episode: str) -> None:
        """The controller's clock starts."""
        self.hear(Message("run", "go", {"episode": episode, "go_ns": self.now_ns}, sender="controller"))

    def running(self, **others: Sequence[str]) -> str:
        """The first episode, under way."""
        self.begin(**others)
        episode = self.start()
        self.go(episode)
        return episode

    def seal(self, episode: str) -> None:
        """The recording of an episode that ended is delivered and sealed."""
        self.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
        self.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))

    def events(self, kind: Kind | None = None) -> list:
        return [event for event in self.campaign.events() if kind is None or event.kind == kind]

    def state(self) -> str:
        return next(str(t.state) for t in fold(self.events()).trials.values() if t.state != State.NOT_RUN)

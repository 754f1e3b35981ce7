"""The arm of a committed trial, asked of the seal: the episode begins to exist, with all that its controller is given;
and what is journalled of it when it starts.

May not: send anything, or let the arm be seen: it goes into the rollout, for the controller, and into the seal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict

from labctl.bus import Body
from labctl.clock import SECOND
from labctl.config.protocol_schema import Arm
from labctl.core.events import Kind
from labctl.core.rollout import Rollout
from labctl.core.task import condition_of
from labctl.core.trial import Trial
from labctl.messages import driving
from labctl.messages.body_parts import Driver
from labctl.messages.edits import delay_s
from labctl.messages.joint import SealAnswer
from labctl.plain import RobotAbout
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.store.traces import TraceStore


def revealed(
    writer: CampaignWriter,
    arms: Mapping[str, Arm],
    trial: Trial,
    committed_ns: int,
    cameras: Sequence[str],
    epoch: int,
    there: Callable[[str], bool],
    beside: SealAnswer | None = None,
) -> Rollout:
    """Journals ArmRevealed; the episode starts `arming_s` after the commit, whichever arm it is. there: whether a
    node's process is, of a sensor that need not be. beside: of a part of a joint campaign, its seal host's answer.
    """
    opened, ledger = writer.opened, writer.ledger
    arm, wanted = arms[ledger.reveal(trial.id)], writer.tasks[trial.condition]
    inputs = condition_of(opened, trial.condition).get("inputs", ())
    attempt = len(trial.episodes)
    episode = _fresh_id(writer, trial, attempt)
    sealed = ledger.seal_value(episode, "arm", arm.name)
    joint = {} if beside is None else {"joint": beside}
    writer.log(Kind.ARM_REVEALED, {"sealed": sealed, **joint}, trial=trial.id, episode=episode)
    task = driving.Prepare(
        driver=arm.controller,
        options=arm.options,
        kind=arm.kind,
        seed=ledger.seed(f"controller:{trial.id}:{attempt}"),
        instruction=wanted.instruction,
        episode=episode,
        hand=_hand_beside(arm, writer),
        delay_s=delay_s(inputs),
    )
    sensors = {sensor.node: sensor.required for sensor in writer.campaign.cell.sensor if there(sensor.node)}
    return Rollout(
        trial=trial.id,
        episode=episode,
        epoch=epoch,
        task=task,
        start_due_ns=committed_ns + round(opened["arming_s"] * SECOND),
        budget_ns=round(wanted.budget_s * SECOND),
        items=wanted.items,
        done_at=wanted.done_at,
        switches=opened.get("switches", ()),
        producers=["arm", "controller", *cameras, *sensors],
        cameras=list(cameras),
        inputs=(inputs, ledger.seed(f"inputs:{trial.block}")),  # one seed for all arms of a block
        sensors=sensors,
    )


def _fresh_id(writer: CampaignWriter, trial: Trial, attempt: int) -> str:
    """An id under which nothing is kept: a lab that was restored may have recordings of a later time than its journal,
    of the same attempt, and what is kept under an id already stays as it is.
    """
    ledger, campaign, number = writer.ledger, writer.campaign, 0
    label = f"episode:{trial.id}:{attempt}"
    with closing(TraceStore.open(campaign.traces_url, writer.opened["campaign"], readonly=True)) as traces:
        while True:
            episode = "e-" + format(ledger.seed(f"{label}:{number}" if number else label) % 32**8, "x").zfill(10)
            filmed = (campaign.folder / "video" / episode).exists()
            if not (filmed or traces.has(episode) or ledger.gaps(episode)):
                return episode
            writer.say(
                f"{trial.place}: there is a recording of {episode} that the journal does not know, of a lab that was "
                "restored or was in use twice; it is left as it lies there, and the trial gets another id"
            )
            number += 1


def started_body(writer: CampaignWriter, rollout: Rollout, pins: Body, robot_about: RobotAbout | None) -> Body:
    """The body of EpisodeStarted; what the controller was given is sealed. robot_about: once its node is connected."""
    private = {**asdict(rollout.task), "pins": pins}
    about = {"pins": pins, "items_staged": rollout.items, "budget_s": rollout.budget_ns / SECOND}
    about |= {key: writer.opened[key] for key in ("kind", "durable")}
    about |= {} if robot_about is None else {"robot": robot_about}
    about |= {"inputs_seed": rollout.inputs[1]} if rollout.inputs[0] else {}
    return {**about, "sealed": writer.ledger.seal_value(rollout.episode, "controller", private)}


def _hand_beside(arm: Arm, writer: CampaignWriter) -> Driver | None:
    """The device by which a person may take over from a policy; the human's own arm has none beside itself."""
    allowed = arm.kind == "policy" and writer.opened.get("takeover") == "allowed"
    return {"driver": "teleop", "options": {}} if allowed else None

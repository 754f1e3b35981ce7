"""Holds: the reasons not to go on now, as a function of what the cell last said. Level-triggered, without memory.

May not: read a clock or a device, clear anything, or count as a safety system; the e-stop and the robot's controller
are that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from labctl.clock import MILLISECOND
from labctl.core.events import ARMS_UNREADY, LOOK_SAID_STOP, VOIDS_ALIKE
from labctl.core.scene_words import camera_moved, change, movement
from labctl.core.trial_table import Verb
from labctl.messages.body_parts import MatchBody, MoveBody

_ROBOT_MATTERS = frozenset({Verb.STAGE, Verb.COMMIT, Verb.REVEAL, Verb.START})
_RECORD_MATTERS = frozenset({Verb.COMMIT, Verb.REVEAL, Verb.START})
NO_PICTURE_YET, NO_VALUE_YET = "it has not given a picture yet", "it has not given a value yet"
CALM_MODES = ("idle", "moving", "stopped")
CAMERA_MOVED, SCENE_DIFFERS, SCENE_UNKNOWN = "camera_moved:", "scene_differs:", "scene_unknown:"


@dataclass(frozen=True, slots=True)
class Hold:
    """A reason not to proceed. `text` says what is wrong, `clears` what makes it go away, both in plain words.
    `awaited`: nothing is wrong, it only takes its time, as at every start.
    """

    code: str
    text: str
    clears: str
    awaited: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What one camera's last picture of a staged scene was found to be: `scene` against the scene's reference (the
    body of a `matching.Match`), `pose` against where the camera stood (of a `Move`); None where nothing was
    compared, `problem` says why not. `counts`: a low score is a reason against commit. `size`: width, height in pixels.
    `needed`: the score that is asked, 0 to 100 (None: any will do), `slack`: how far below it is no hold yet.
    """

    scene: MatchBody | None = None
    pose: MoveBody | None = None
    counts: bool = False
    problem: str | None = None
    size: tuple[int, int] = (1, 1)
    needed: float | None = None
    slack: float = 0.0


@dataclass(frozen=True, slots=True)
class Limits:
    """How old a signal may be, in nanoseconds, how much disk must be free, in 10^9 bytes, and how far a camera may have
    moved, in pixels.
    """

    silent_ns: int
    min_free_gb: float
    max_camera_shift_px: float


@dataclass(frozen=True, slots=True)
class SensorSeen:
    """What a sensor last said: age_ns since its process was heard (None: never), why it gives no values ("": it does),
    the limits of the cell that it is beyond, in words. required: without it nothing begins.
    """

    age_ns: int | None
    lost: str
    beyond: tuple[str, ...] = ()
    required: bool = True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the cell last said. Ages are nanoseconds since a signal was heard, None when it never was.

    `robot_mode` and `robot_reason` are those of `devices.RobotStatus`; `unacknowledged` maps codes to what happened;
    `starting` are the nodes (arm: the robot's; recorder, camera:NAME) whose process was started so recently that no
    message is due yet; `ended` says by node why its process ended last, where it did; `camera_lost` says why a camera
    that is there gives no pictures; `free_gb` is None when it could not be read; `looks` are by camera, of the scene
    now staged; `sensors` by their names in the cell.
    """

    robot_age_ns: int | None
    recorder_age_ns: int | None
    camera_age_ns: Mapping[str, int | None]
    free_gb: float | None
    session_open: bool
    robot_mode: str = "idle"
    robot_reason: str = ""
    faulted: str | None = None
    unacknowledged: Mapping[str, str] = field(default_factory=dict[str, str])
    camera_lost: Mapping[str, str] = field(default_factory=dict[str, str])
    looks: Mapping[str, Look] = field(default_factory=dict[str, Look])
    photographing: bool = False
    starting: frozenset[str] = frozenset()
    ended: Mapping[str, str] = field(default_factory=dict[str, str])
    sensors: Mapping[str, SensorSeen] = field(default_factory=dict[str, SensorSeen])


def holds(snapshot: Snapshot, limits: Limits, act: Verb) -> list[Hold]:
    """Every reason against an act, in a fixed order. Ask with Verb.START while an episode runs.

    Staging needs a calm robot, a cell without faults, a session and disk; from commit on the recorder, every camera and
    every required sensor must be heard too, and no sensor may be beyond a limit. Ending, releasing, voiding, skipping
    and judging are never held.
    """
    found: list[Hold] = []
    if act in _ROBOT_MATTERS:
        found += _standing(snapshot)
        found += _robot(snapshot, limits)
        found += _disk(snapshot, limits)
    if act in _RECORD_MATTERS:
        found += _recording(snapshot, limits)
        for name, seen in sorted(snapshot.sensors.items()):
            found += _sensor(name, seen, snapshot, limits)
    if act == Verb.COMMIT:
        found += scene_holds(snapshot.looks, limits.max_camera_shift_px)
        if snapshot.photographing:
            found.append(Hold("photographing", "the scene's photo is being taken", "wait a moment", awaited=True))
    return found


def scene_holds(looks: Mapping[str, Look], most_px: float) -> Iterator[Hold]:
    """Reasons against committing a scene: a camera that moved, a scene that differs. A moved camera is said alone: the
    scene can be judged once it stands. most_px: how far a camera may have moved.
    """
    for name, look in sorted(looks.items()):
        if look.pose is not None and camera_moved(look.pose, most_px):
            text = f"camera {name} does not stand where it stood: {movement(look.pose)}"
            if not look.pose["note"]:
                text += f"; {look.pose['moved_px']:.1f} px at most, {most_px:g} are allowed"
            clears = "put the camera back, or accept its view by name as the new reference"
            yield Hold(f"{CAMERA_MOVED}{name}", text, clears)
            continue
        needed = look.needed
        if needed is None or not look.counts:
            continue
        if look.scene is None:
            text = f"the scene of camera {name} has no score: {look.problem or 'it was not compared'}"
            yield Hold(f"{SCENE_UNKNOWN}{name}", text, "make its picture comparable again")
        elif look.scene["score"] < needed - look.slack:
            text = f"the scene of camera {name} scores {look.scene['score']:g}, {needed:g} are needed"
            clears = "put the scene back as in its reference picture"
            yield Hold(f"{SCENE_DIFFERS}{name}", f"{text}: {change(look.scene, look.size)}", clears)


def overridable(hold: Hold) -> bool:
    """A hold that a person may override with a reason, where the protocol lets them."""
    return hold.code.startswith((CAMERA_MOVED, SCENE_DIFFERS, SCENE_UNKNOWN))


_LOOKED = "look at the cell; once the cause is gone, acknowledge it (a)"
_ACKNOWLEDGED = {
    LOOK_SAID_STOP: "end the campaign (labctl close), or acknowledge it (a) and go on, which every report says",
    ARMS_UNREADY: "once it is put right, acknowledge it (a): all arms are asked again",
    VOIDS_ALIKE: "once it is put right, acknowledge it (a): the trial has lost nothing",
}


def _standing(snapshot: Snapshot) -> Iterator[Hold]:
    if not snapshot.session_open:
        yield Hold("no_session", "no session is open", "open a session with people and roles")
    if snapshot.faulted is not None:
        yield Hold(
            "cell_faulted",
            f"the cell is faulted: {snapshot.faulted}",
            "look at the cell; once it is in order, acknowledge the fault (a)",
        )
    for code, text in snapshot.unacknowledged.items():
        yield Hold(f"unacknowledged:{code}", text, _ACKNOWLEDGED.get(code, _LOOKED))


def _robot(snapshot: Snapshot, limits: Limits) -> Iterator[Hold]:
    if snapshot.robot_age_ns is None and "arm" in snapshot.starting:
        yield _starts("arm_stale", "the robot")
    elif _stale(snapshot.robot_age_ns, limits.silent_ns):
        text = f"the robot {_heard(snapshot.robot_age_ns, snapshot.ended.get('arm'))}"
        yield Hold("arm_stale", text, "the robot's process answers again")
    because = f": {snapshot.robot_reason}" if snapshot.robot_reason else ""
    waits = snapshot.faulted is not None or "safety_stop" in snapshot.unacknowledged  # for a person's acknowledgement
    if snapshot.robot_mode == "safety_stop":
        first = "look at the cell" if waits else ""
        yield Hold("arm_safety_stop", f"the robot stopped itself{because}", _recovers(first))
    elif snapshot.robot_mode not in CALM_MODES:
        first = "put right what it says" if waits else ""
        yield Hold("arm_fault", f"the robot says {snapshot.robot_mode!r}{because}", _recovers(first))


def _recovers(first: str) -> str:
    """What clears a stop of the robot's own. first: what a person does before acknowledging; "": that has been done."""
    if first:
        return f"{first}, then acknowledge it (a): the robot is asked to recover"
    return "nothing to do: it was acknowledged, and the robot is asked to recover; what it cannot is told again"


def _disk(snapshot: Snapshot, limits: Limits) -> Iterator[Hold]:
    if snapshot.free_gb is None:
        yield Hold("disk_low", "free disk could not be read", "the campaign's disk answers again")
    elif snapshot.free_gb < limits.min_free_gb:
        text = f"{snapshot.free_gb:.2f} GB of disk are free, fewer than {limits.min_free_gb:g}"
        yield Hold("disk_low", text, "free some disk")


def _recording(snapshot: Snapshot, limits: Limits) -> Iterator[Hold]:
    if snapshot.recorder_age_ns is None and "recorder" in snapshot.starting:
        yield _starts("recorder_stale", "the recorder")
    elif _stale(snapshot.recorder_age_ns, limits.silent_ns):
        yield Hold(
            "recorder_stale",
            f"the recorder {_heard(snapshot.recorder_age_ns, snapshot.ended.get('recorder'))}",
            "the recorder process answers again",
        )
    for name, age_ns in sorted(snapshot.camera_age_ns.items()):
        unseen = age_ns is None or snapshot.camera_lost.get(name) == NO_PICTURE_YET
        if unseen and f"camera:{name}" in snapshot.starting:
            yield _starts(f"camera_stale:{name}", f"camera {name}")
        elif _stale(age_ns, limits.silent_ns):
            text = f"camera {name} {_heard(age_ns, snapshot.ended.get(f'camera:{name}'))}"
            yield Hold(f"camera_stale:{name}", text, f"camera {name} delivers pictures again")
        elif why := snapshot.camera_lost.get(name):
            text = f"camera {name} gives no pictures: {why}"
            yield Hold(f"camera_lost:{name}", text, f"camera {name} delivers pictures again; labctl goes on trying")


def _sensor(name: str, seen: SensorSeen, snapshot: Snapshot, limits: Limits) -> Iterator[Hold]:
    for text in seen.beyond:
        yield Hold(f"sensor_limit:{name}", f"sensor {name}: {text}", f"sensor {name} is within its limit again")
    if not seen.required:
        return
    if f"sensor:{name}" in snapshot.starting and (seen.age_ns is None or seen.lost == NO_VALUE_YET):
        yield _starts(f"sensor_stale:{name}", f"sensor {name}")
    elif _stale(seen.age_ns, limits.silent_ns):
        text = f"sensor {name} {_heard(seen.age_ns, snapshot.ended.get(f'sensor:{name}'))}"
        yield Hold(f"sensor_stale:{name}", text, f"sensor {name} gives values again")
    elif seen.lost:
        clears = f"sensor {name} gives values again; labctl goes on trying"
        yield Hold(f"sensor_lost:{name}", f"sensor {name} gives no values: {seen.lost}", clears)


def _starts(code: str, what: str) -> Hold:
    return Hold(code, f"{what} is being started", "nothing to do: wait for its first word", awaited=True)


def _stale(age_ns: int | None, limit_ns: int) -> bool:
    return age_ns is None or age_ns > limit_ns


def _heard(age_ns: int | None, ended: str | None) -> str:
    if age_ns is not None:
        return f"was last heard {age_ns // MILLISECOND} ms ago"
    return f"is not there: {ended}" if ended else "was never heard"

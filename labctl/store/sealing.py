"""What there is of an episode when nobody writes it any more: its footage, and how its devices' clocks ran.

May not: journal anything; `episode_sequencer` and `startup_recovery` seal what this finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from labctl.config.cell_schema import Fixture, SecondRobot
from labctl.config.sensors import SensorTable
from labctl.core.recorded import detector, weighing
from labctl.core.recorded.skew import fit_clock, missing_samples
from labctl.errors import LabctlError
from labctl.messages.body_parts import Clock, ConditionEntry, Detected
from labctl.store.footage import Footage, footage
from labctl.store.traces import TraceStore
from labctl.streams import SEEN

# The column that holds the device's own time, and how many ns one unit of it is.
DEVICE_TIMES = {"device_time_us": 1e3, "device_s": 1e9}
ARM, TOOL = "arm/state", ("tcp.x", "tcp.y", "tcp.z")
ACTION, GRIPPER = "arm/action", "gripper"
OWN, RECEIVED = "arm/device", "control_command_success_rate"  # of the last 100 commands; 0 while nothing is controlled
MOST_ROWS = 60_000  # of a stream, evenly spread, are enough to judge a clock


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found.

    clocks: of each stream whose device has a clock of its own ClockFit.body() with `n` of all samples, `rate_hz` and,
    of a device that samples evenly, how many are `missing`. detected: bodies of what the detector found in the arm's
    trace, None when nobody asked or the trace cannot say.
    """

    footage: Footage = field(default_factory=Footage)
    clocks: dict[str, Clock] = field(default_factory=dict[str, Clock])
    detected: list[Detected] | None = None


def look_over(
    folder: Path,
    traces_url: str,
    campaign: str,
    episode: str,
    cameras: Sequence[str],
    layout: detector.Layout | None = None,
    *,
    durable: bool = False,
    sensors: Sequence[SensorTable] = (),
    second: SecondRobot | None = None,
) -> Findings:
    """Everything that is sealed of an episode beside its chunks. durable: as `footage` has it; sensors: of the cell,
    whose steps are looked for where one is a witness; second: its second robot, whose gripper is looked at as well.
    """
    found = footage(folder, episode, cameras, durable=durable)
    store = TraceStore.open(traces_url, campaign, readonly=True)
    try:
        seen = detected(store, episode, layout, second)
        if layout is not None:
            for sensor in sensors:
                seen = _witnessed(store, episode, seen, layout, sensor)
        return Findings(found, episode_clocks(store, episode), seen)
    finally:
        store.close()


def layout_of(fixture: Fixture, condition: ConditionEntry) -> detector.Layout:
    """Where the items of a condition go, for the detector."""
    totes = {tote.name: (tote.centre_m, tote.size_m) for tote in fixture.tote}
    width = next(entry.grasp_width_m for entry in fixture.object if entry.name == condition["object"])
    return detector.Layout(totes, condition["tote_side"], width)


def detected(
    store: TraceStore, episode: str, layout: detector.Layout | None, second: SecondRobot | None = None
) -> list[Detected] | None:
    """What the detector finds in the robot's trace; None without a layout, or a trace of gripper and tool. Of two
    robots it looks at each alone, and says which it was: an item that one hands to the other is a release of the first.
    """
    if layout is None:
        return None
    if second is None:
        return _detected(store, episode, layout, ARM, GRIPPER)
    found = [
        None if (seen := _detected(store, episode, layout, stream, f"{name}.{GRIPPER}", of)) is None else (name, seen)
        for stream, name, of in ((ARM, second.first_name, None), (f"{second.name}/state", second.name, second))
    ]
    there = [one for one in found if one is not None]
    bodies: list[Detected] = [{**body, "robot": name} for name, seen in there for body in seen]
    return sorted(bodies, key=lambda body: body["t_ns"]) if there else None


def _detected(
    store: TraceStore,
    episode: str,
    layout: detector.Layout,
    stream: str,
    gripper: str,
    second: SecondRobot | None = None,
) -> list[Detected] | None:
    read = _columns(store, episode, stream, gripper, *TOOL)
    if read is None:
        return None
    t_ns, (opening, *place) = read
    tool = np.column_stack(place)
    if second is not None and second.scene == "shared":  # the totes stand where the first robot has them
        tool = second.in_first(tool)
    orders = _ordered(store, episode, t_ns, f"sent.{gripper}")
    return [found.body() for found in detector.detect(t_ns, opening, tool, layout, orders)]


def _witnessed(
    store: TraceStore, episode: str, found: list[Detected] | None, layout: detector.Layout, sensor: SensorTable
) -> list[Detected] | None:
    """The detector's candidates with what a sensor that is a witness saw; as they are where it recorded nothing."""
    witness = sensor.witness
    read = _columns(store, episode, sensor.stream, witness.column) if witness is not None else None
    if witness is None or read is None:
        return found
    t_ns, (weight,) = read
    seen = weighing.steps(t_ns, weight.astype(float), witness.step)
    return weighing.witnessed(found or [], seen, by=sensor.name, tote=witness.tote, target=layout.target)


def _ordered(store: TraceStore, episode: str, t_ns: np.ndarray, column: str) -> np.ndarray | None:
    """The opening that stood as sent to a gripper at each t_ns, m, NaN before the first; None where no trace says."""
    read = _columns(store, episode, ACTION, column)
    if read is None:
        return None
    sent_ns, (sent,) = read
    standing = np.searchsorted(sent_ns, t_ns, side="right") - 1
    return np.where(standing >= 0, sent[np.maximum(standing, 0)], np.nan) if len(sent) else None


def episode_clocks(store: TraceStore, episode: str) -> dict[str, Clock]:
    """How the clock of every device ran in an episode; a stream whose chunks cannot be read is left to `verify`."""
    found: dict[str, Clock] = {}
    counts = store.seal(episode)
    for spec in store.streams(episode):
        column = next((name for name in DEVICE_TIMES if name in spec.columns), None)
        if column is None or spec.name.endswith(SEEN):  # of which some are dropped on purpose; the raw ones tell all
            continue
        try:
            t_ns, values = store.read(episode, spec.name, most_rows=MOST_ROWS)
        except LabctlError:
            continue
        times = values[:, spec.columns.index(column)].astype(float) * DEVICE_TIMES[column]
        known = np.isfinite(times) & (times >= 0)
        clock = values[known, spec.columns.index("domain")] if "domain" in spec.columns else None
        device_ns = np.round(times[known]).astype(np.int64)
        fit = fit_clock(device_ns, t_ns[known], clock)
        if fit is not None:
            count = counts[spec.name]["n"]
            found[spec.name] = {**fit.body(spec.rate_hz), "n": count}
            if known.all() and (lost := missing_samples(device_ns, t_ns, count)) is not None:
                found[spec.name]["missing"] = lost
    if ARM in found and (share := _received(store, episode)) is not None:
        found[ARM]["received"] = share
    return found


def _received(store: TraceStore, episode: str) -> float | None:
    """The mean share of commands that the robot says it received while it was under control; None if it says nothing.

    libfranka's documentation of the state: a share of the last 100 commands, zero while no control loop runs.
    """
    read = _columns(store, episode, OWN, RECEIVED, most_rows=MOST_ROWS)
    if read is None:
        return None
    _, (shares,) = read
    under_control = shares[shares > 0]
    return round(float(under_control.mean()), 4) if len(under_control) else None


def _columns(
    store: TraceStore, episode: str, stream: str, *names: str, most_rows: int | None = None
) -> tuple[np.ndarray, list[np.ndarray]] | None:
    """The times of a stream, (n,) int64 ns, and columns of it, (n,) each; None where it was not recorded, has not all
    of these, or cannot be read, which is left to `verify`.
    """
    spec = next((spec for spec in store.streams(episode) if spec.name == stream), None)
    if spec is None or not {*names} <= {*spec.columns}:
        return None
    try:
        t_ns, values = store.read(episode, stream, most_rows=most_rows)
    except LabctlError:
        return None
    return t_ns, [values[:, spec.columns.index(name)] for name in names]

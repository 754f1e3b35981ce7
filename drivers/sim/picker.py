"""The simulated operator of a robot: picks the nearest item it sees, carries it over, tries again, errs by its skill.

May not: know the scene beyond an `Observation`, the robot's kinematics or the time; randomness comes from `reset(seed)`
alone.

It plans one half of an operation at a time (pick, or place) as tool poses `dt_s` apart, hands them out in chunks, and
looks again when a half is used up. A changed instruction makes it think for `adapt_s` and plan anew, no more.
Motion between two poses is a minimum-jerk straight line (Flash and Hogan 1985).
Faults are drawn from the skill: the aim errs, the hand hesitates, an item is let go in the wrong place, a carry is too
low or too fast. Hard episodes and easy ones differ by a log-normal factor drawn once per episode (frailty), so that
operations of an episode resemble each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.axes import Axis
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import ActionChunk, Kind, Observation, Pace
from labctl.drivers.common.sides import TwoControllers, of_cell
from labctl.drivers.common.simulated_axes import CURLED_RAD, OPEN_M, of_openings
from labctl.drivers.sim import lidded
from labctl.drivers.sim.legs import CLEAR_M, CLOSE_S, HOVER_M, OPENING_S, Legs, Point
from labctl.drivers.sim.mind import Mind
from labctl.drivers.sim.options import Axis as Weakness
from labctl.errors import DeviceLost, DeviceRefused

LOW_M = 0.09  # height of a carry that hits a wall


@dataclass(frozen=True, slots=True)
class Skill:
    """How well and how fast a simulated operator works. Lengths m, times s, probabilities per operation."""

    speed_m_s: float  # peak speed of the tool
    aim_m: float  # error of one attempt, sd per axis
    bias_m: float  # error repeated at every attempt on one item, sd per axis
    pause_p: float  # chance to hesitate before a leg
    pause_s: float  # mean length of a hesitation
    react_s: float  # time to look before each half of an operation
    outside_p: float  # lets the item go beside the tote
    low_p: float  # carries too low
    fast_p: float  # carries too fast
    frailty: float  # sd of the log of the episode's factor on pauses and aim
    latency_s: float  # modelled time of one answer
    chunk: int = 16
    execute: int = 8
    dt_s: float = 0.1
    adapt_s: float = 1.0  # stands and thinks when the instruction has changed


class Picker:
    """A simulated controller. See `labctl.devices.Controller`; `infer` needs the arrays of `SimRobot.observe`."""

    kind: Kind = "sim"
    pace = Pace()

    def __init__(
        self,
        skill: Skill,
        difficulty: Sequence[float],
        load_s: float = 0.0,
        crash_at: str | None = None,
        warm_s: float = 0.0,
        mind: Mind | None = None,
        hand: Sequence[Axis] = (),
    ) -> None:
        """difficulty: of each object of the fixture, in its order; it scales the aim's error. mind: what it makes of an
        instruction and of what it sees; nothing is asked of one where there is one kind of item. hand: the axes of the
        cell's hand, where they are not one opening.
        """
        self._hand_axes = tuple(hand)
        self.skill = skill
        self._difficulty = tuple(difficulty)
        self._mind = mind or Mind(())
        self.load_s, self.warm_s = load_s, warm_s
        self._crash_at = crash_at
        self.reset(0)

    def load(self) -> None:
        """Nothing to load; `load_s` is what it would take. Raises DeviceLost when told to crash here."""
        if self._crash_at == "load":
            raise DeviceLost("the simulated controller was told to crash while loading")

    def warm(self, observation: Observation) -> None:
        """Answer once off the clock: leaves no trace in later answers, which start from `reset`. Raises DeviceRefused
        where nothing can be seen of a scene: before anything moves.
        """
        if "items" not in observation.arrays:
            raise DeviceRefused(
                "simulated people and policies see items by a robot that labctl simulates, and this cell's robot tells "
                "of none; give the protocol arms whose controllers are for this robot"
            )

    def reset(self, seed: int) -> None:
        """Start an episode: forget the scene, draw this episode's frailty."""
        self._rng = np.random.Generator(np.random.PCG64(seed))
        spread = self.skill.frailty
        self._factor = math.exp(spread * self._rng.standard_normal() - spread * spread / 2)
        self._plan = np.zeros((0, 5))  # x y z yaw opening
        self._placing = False
        self._aimed: tuple[float, float] | None = None
        self._bias = np.zeros(2)
        self._mind.reset(seed)
        self._instructed: str | None = None  # the instruction of the answer before
        self._adapting_s = 0.0

    def infer(self, observation: Observation) -> ActionChunk:
        """The next poses of the plan. Raises DeviceLost when told to crash here."""
        if self._crash_at == "infer":
            raise DeviceLost("the simulated controller was told to crash on the clock")
        if self._instructed not in (None, observation.instruction):  # whatever it was about to do, it thinks again
            self._plan, self._adapting_s = np.zeros((0, 5)), self.skill.adapt_s
        self._instructed = observation.instruction
        items = observation.arrays["items"]
        holding = bool((items[:, 7] > 0.5).any())
        dropped = self._placing and not holding and len(self._plan) > 0 and self._plan[0, 4] == 0.0
        done = False
        if not len(self._plan) or dropped:
            done = not self._think(observation.arrays, holding, observation.instruction)
        skill = self.skill
        execute = min(skill.execute, len(self._plan))
        taken, self._plan = self._plan[: skill.chunk], self._plan[execute:]
        if len(taken) < skill.chunk:
            taken = np.concatenate([taken, np.repeat(taken[-1:], skill.chunk - len(taken), axis=0)])
        values = np.zeros((skill.chunk, 7))
        values[:, :3] = taken[:, :3]
        half = taken[:, 3] / 2
        values[:, 3], values[:, 4] = np.cos(half), np.sin(half)
        delay = skill.latency_s * math.exp(0.1 * self._rng.standard_normal())
        return ActionChunk("tcp_pose", values, self._in_hand(taken[:, 4]), skill.dt_s, execute, delay, done)

    def _in_hand(self, openings: np.ndarray) -> np.ndarray:
        return of_openings(openings, self._hand_axes) if self._hand_axes else openings.copy()

    def close(self) -> None:
        """Nothing to release."""

    def _think(self, arrays: Mapping[str, np.ndarray], holding: bool, instruction: str) -> bool:
        """Plan the next half of an operation; False when nothing is left to do."""
        tcp, items, lid = arrays["tcp"], arrays["items"], arrays.get("lid")
        react_s, self._adapting_s = self.skill.react_s + self._adapting_s, 0.0
        yaw = math.remainder(2 * math.atan2(float(tcp[4]), float(tcp[3])), math.tau)
        here: Point = (float(tcp[0]), float(tcp[1]), float(tcp[2]), yaw)
        self._placing = holding
        skill, opening = self.skill, 0.0 if holding else OPEN_M
        legs = Legs(skill.speed_m_s, skill.dt_s, self.hesitation, here, opening)
        legs.wait(react_s)
        if holding:
            self._place(legs, here, lidded.free_part(arrays["target_tote"], lid))
            return True
        thing = int(arrays["object_index"][0])
        kinds = arrays.get("kinds", np.full(len(items), thing))
        thing = self._mind.wanted(instruction, thing, kinds)
        own = items[kinds == thing]
        free = own[(own[:, 4] > 0.5) & (own[:, 5] < 0.5) & (own[:, 6] < 0.5)]
        in_the_air = bool(((own[:, 4] < 0.5) & (own[:, 6] < 0.5)).any())
        if not len(free) and in_the_air:  # what slipped may yet have to be put in
            self._plan = np.array([[*here, OPEN_M]])
            return True
        if lid is not None and lidded.to_slide(lid, work_left=len(free) > 0):
            lidded.slide(legs, here, lid, self._error(self.skill.aim_m))
            self._plan = legs.rows()
            return True
        if len(free):
            nearest = free[int(np.argmin((free[:, 0] - here[0]) ** 2 + (free[:, 1] - here[1]) ** 2))]
            self._pick(legs, here, nearest.tolist(), self._difficulty[thing] * self._mind.clumsiness(thing))
            return True
        self._plan = np.array([[*here, OPEN_M]])
        return False

    def _pick(self, legs: Legs, here: Point, item: list[float], difficulty: float) -> None:
        x, y, z, yaw = item[:4]
        if self._aimed is None or math.hypot(x - self._aimed[0], y - self._aimed[1]) > 0.01:
            self._aimed = (x, y)
            self._bias = self._error(self.skill.bias_m * difficulty)
        aim = self._bias + self._error(self.skill.aim_m * difficulty)
        gx, gy = x + aim[0], y + aim[1]
        bearing = math.atan2(gy, gx)
        turn = self._mind.turn(_near(yaw, bearing), bearing)
        if here[2] < CLEAR_M - 0.05 and math.hypot(gx - here[0], gy - here[1]) > 0.12:
            legs.go((here[0], here[1], CLEAR_M, here[3]))
        legs.go((gx, gy, z + HOVER_M, turn))
        legs.go((gx, gy, z, turn))
        legs.grip(0.0, CLOSE_S)
        legs.go((gx, gy, CLEAR_M, turn))
        self._plan = legs.rows()

    def _place(self, legs: Legs, here: Point, tote: np.ndarray) -> None:
        skill, rng = self.skill, self._rng
        x, y = (float(tote[i] + tote[i + 3] * 0.3 * rng.uniform(-1, 1)) for i in (0, 1))
        chance = rng.random(3)
        if chance[0] < skill.outside_p:
            y = float(tote[1] - math.copysign(tote[4] / 2 + 0.05, tote[1]))
        low, fast = chance[1] < skill.low_p, chance[2] < skill.fast_p
        height = LOW_M if low else CLEAR_M
        bearing = math.atan2(y, x)
        legs.go((here[0], here[1], height, here[3]))
        legs.go((x, y, height, bearing), 1.6 if fast else skill.speed_m_s)
        legs.go((x, y, float(tote[2]) + HOVER_M, bearing))
        legs.grip(OPEN_M, OPENING_S)
        legs.go((x, y, CLEAR_M, bearing))
        self._plan = legs.rows()

    def _error(self, sd: float) -> np.ndarray:
        return sd * math.sqrt(self._factor) * self._rng.standard_normal(2)

    def hesitation(self) -> float:
        """Seconds of doubt before a leg, drawn from the skill and the episode's frailty."""
        if self._rng.random() >= self.skill.pause_p:
            return 0.0
        return float(self._rng.exponential(self.skill.pause_s * self._factor))


def _near(yaw: float, bearing: float) -> float:
    """The tool yaw that grips along `yaw` (the two fingers are alike) within a quarter turn of the robot's bearing."""
    return bearing + (yaw - bearing + math.pi / 2) % math.pi - math.pi / 2


def picker(
    skill: Skill,
    cell: Cell,
    fixture: Fixture,
    *,
    load_s: float,
    crash_at: str | None,
    warm_s: float = 0.0,
    weak: Sequence[Weakness] = (),
    trained: Sequence[str] = (),
) -> Picker | TwoControllers:
    """One of that skill for a parsed cell and fixture; in a cell of two robots one that leads both."""
    names, difficulty = [thing.name for thing in fixture.object], [float(thing.difficulty) for thing in fixture.object]

    def one(side: Cell) -> Picker:
        return Picker(skill, difficulty, load_s, crash_at, warm_s, Mind(names, weak, trained), _hand_of(side))

    return of_cell(cell, one)


def _hand_of(cell: Cell) -> tuple[Axis, ...]:
    """The axes of a cell's hand, each as far as a simulated one goes; none where it is one opening."""
    return tuple(
        Axis(axis.name, axis.kind, axis.unit, upper=1.0 if axis.kind == "vacuum" else CURLED_RAD, hand=True)
        for axis in cell.robot.axis
        if axis.hand and axis.kind != "opening"
    )

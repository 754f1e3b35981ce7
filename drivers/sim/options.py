"""Options of the simulated drivers, and of those that wrap or replay another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from labctl.axes import Axis as RobotAxis
from labctl.config.options import CameraOptions, Options, SensorOptions, Wrapped
from labctl.config.values import Lax, Text, Texts
from labctl.devices import declared_axes
from labctl.drivers.common.robot_tables import HAND_M, HAND_RPY, Tool
from labctl.drivers.common.scale import scale_stream
from labctl.drivers.common.simulated_axes import ON_A_BASE, ON_A_RAIL, WITH_A_HAND
from labctl.errors import OptionError
from labctl.plain import Json
from labctl.streams import StreamSpec

Seconds = Annotated[float, Field(ge=0)]
SkillName = Literal["swift", "steady", "halting", "clumsy", "slow"]
CrashAt = Literal["load", "infer"]
Axis = Literal["S-LANG", "V-SC", "VB-POSE", "VSB-NOBJ"]


class SimPerson(Options):
    """A simulated person."""

    load_s: Seconds = Field(0.0, description="what loading takes, before the clock")
    crash_at: CrashAt | None = Field(None, description="fail there, to test what labctl does then")


class SimPolicy(Options):
    """A simulated policy."""

    skill: SkillName = Field("steady", description="how well and how fast it works")
    endpoint: str = Field("", description="taken and not used, so that a protocol reads like one with real policies")
    load_s: Seconds = Field(0.0, description="what loading takes, before the clock")
    warm_s: Seconds = Field(0.0, description="what the first answer takes, before the clock")
    latency_s: Seconds | None = Field(None, description="what an answer takes, in place of the skill's own")
    adapt_s: Seconds | None = Field(None, description="how long it stands when the instruction has changed")
    weak: Annotated[tuple[Axis, ...], Lax] = Field((), description="axes of BridgeV2-★ on which it fails more often")
    trained: Texts = Field((), description="objects it was trained with, for VSB-NOBJ; all of the fixture without")
    crash_at: CrashAt | None = Field(None, description="fail there, to test what labctl does then")


class SimCameraOptions(CameraOptions):
    """A simulated camera."""

    view: Literal["over_shoulder", "wrist"] = Field("over_shoulder", description="where it stands")
    robot: Literal["first", "second"] = Field("first", description="at which robot of a cell of two it stands")


class SimScaleOptions(SensorOptions):
    """A simulated scale under the target tote."""

    item_kg: Annotated[float, Field(gt=0, le=100)] = Field(0.05, description="what each item weighs")
    noise_kg: Annotated[float, Field(ge=0, le=1)] = Field(0.0005, description="standard deviation of what it shows")

    def stream(self) -> StreamSpec:
        return scale_stream(self.rate_hz)


class SimFr3Options(Options):
    """A simulated FR3; it has none."""

    def tool(self) -> Tool:
        """The Franka Hand's, in the frame of the flange."""
        return Tool((0.0, 0.0, HAND_M), HAND_RPY)


class SimRailOptions(SimFr3Options):
    """A simulated FR3 on a rail, with a vacuum cup; it has none."""

    def axes(self) -> Sequence[RobotAxis]:
        return ON_A_RAIL


class SimBaseOptions(SimFr3Options):
    """A simulated FR3 on a base that drives in every direction."""

    near_m: Annotated[float, Field(gt=0, le=1)] = Field(
        0.02, description="an episode begins with the base no farther from its place"
    )
    near_rad: Annotated[float, Field(gt=0, le=1)] = Field(0.03, description="nor turned by more than this")
    put_back_s: Annotated[float, Field(ge=0, le=600)] = Field(
        5.0, description="how long the simulated person takes who puts it in its place"
    )

    def axes(self) -> Sequence[RobotAxis]:
        return ON_A_BASE


class SimHandOptions(SimFr3Options):
    """A simulated FR3 with a hand of five axes; it has none."""

    def axes(self) -> Sequence[RobotAxis]:
        return WITH_A_HAND


class SimUr5Options(Options):
    """A simulated UR5; it has none."""

    def tool(self) -> Tool:
        """As far out as the Franka Hand's, in the frame of the flange."""
        return Tool((0.0, 0.0, HAND_M))


class Replay(Options):
    """A recorded arm. A campaign that uses it has episodes of kind replay, whatever the cell says."""

    file: Text = Field(description="an .npz of a recorded arm/state stream, as `labctl export … --to npz` writes it")
    arm: Literal["fr3", "ur5", "ur5e"] = Field("fr3", description="the robot that was recorded")

    def tool(self) -> Tool:
        """That of the simulated robot."""
        return (SimFr3Options() if self.arm == "fr3" else SimUr5Options()).tool()


class WrappingOptions(Options):
    """Of a driver around another one."""

    driver: Text = Field(description="the name of the driver inside")
    driver_options: dict[str, Any] = Field(default_factory=dict, description="the options of the driver inside")

    def wrapped(self) -> Sequence[Wrapped]:
        return (Wrapped("driver_options", self.driver, self.driver_options),)

    def axes(self) -> Sequence[RobotAxis] | None:
        return declared_axes(self.driver, self.driver_options)


class Emulated(WrappingOptions):
    """A real driver in front of an emulated controller; its options need the emulator's `host`."""


class Faults(WrappingOptions):
    """A driver of a robot, a policy or a person that fails on cue, for tests. A campaign that uses it has episodes of
    kind faults, whatever the cell says.
    """

    verb: Text = Field(description="the method that fails")
    after: Annotated[int, Field(ge=0)] = Field(0, description="how many calls still go well")
    fault: Literal["delay", "raise", "refuse", "hang", "exit"] = Field(
        description="wait, raise DeviceLost, raise DeviceRefused, never return, or end the process"
    )
    delay_s: Annotated[float, Field(ge=0, le=1e6)] = Field(0.0, description="how long a delay is")

    @classmethod
    def read(cls, given: Mapping[str, Json], driver: str) -> Self:
        if "rate_hz" in given:  # of the table of a camera or a sensor
            text = f"{driver} goes around a robot, a policy or a person, and neither a camera nor a sensor"
            raise OptionError(text, ("driver",))
        return super().read(given, driver)

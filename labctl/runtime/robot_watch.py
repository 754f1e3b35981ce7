"""An arm that stopped itself outside an episode: says so, asks for a person, and passes on that person's word.

May not: recover an arm without an acknowledgement by name, or ask for one twice while the arm is still recovering.
"""

from __future__ import annotations

from labctl.bus import Step
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.liveness import Presence
from labctl.messages.motion import DeviceReport, Recover
from labctl.runtime.campaign_writer import Desk

STOPPED = "safety_stop"  # the hold's code
BAD_MODES = ("safety_stop", "fault")  # of devices.RobotStatus: a person has to look
PATIENCE_NS = 35 * SECOND  # longer than the arm node goes on trying to recover


class ArmWatch:
    """See the module."""

    def __init__(self, desk: Desk, presence: Presence) -> None:
        self._desk = desk
        self._presence = presence
        self._recovering_until_ns = 0

    def look(self, now_ns: int) -> None:
        """Raise the hold for an arm found stopped: latched before this run began, or stopped between episodes."""
        state = self._desk.state
        if self._presence.mode not in BAD_MODES:
            self._recovering_until_ns = 0
        elif STOPPED not in state.holds and state.faulted is None and now_ns >= self._recovering_until_ns:
            self._raise(self._presence.mode_reason)

    def hear(self, sent: DeviceReport) -> None:
        """What the arm says while no episode is in flight."""
        reason = (sent.body or {}).get("reason", "no reason given")
        if sent.kind == "fault" and self._desk.state.faulted is None:
            self._desk.log(Kind.CELL_FAULTED, {"reason": reason})
        elif sent.kind == "safety_stop" and STOPPED not in self._desk.state.holds:
            self._raise(reason)

    def _raise(self, reason: str) -> None:
        self._desk.log(Kind.HOLD_RAISED, {"code": STOPPED, "text": f"the robot stopped itself: {reason}"})

    def acknowledged(self, now_ns: int, step: Step) -> None:
        """A named person has looked at the robot and says that it may be recovered; nothing moves by that alone."""
        self._recovering_until_ns = now_ns + PATIENCE_NS
        step.out.append(Recover().to("arm"))

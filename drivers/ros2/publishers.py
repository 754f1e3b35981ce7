"""Who speaks: of the publishers that say the same things on a topic, one is heard, and that there is another is known.

May not: decide which of them is the robot, or hear anything itself.
"""

from __future__ import annotations

from labctl.clock import SECOND

TOLD_NS = 3 * SECOND  # so long after it was last seen two speak at once
HANDED_OVER_NS = SECOND // 4  # one that was silent for so long has left: another may take its place


class OnePublisher:
    """The one that is heard. A node that is started anew is another publisher and takes the place of the one before;
    two are two where one speaks again after the other did.
    """

    def __init__(self) -> None:
        self._heard: tuple[int, int] | None = None  # who, when it was taken
        self._spoke: int | None = None  # the last that spoke, taken or not
        self._seen: dict[int, int] = {}  # who spoke in the last seconds, and when
        self._both_ns: int | None = None  # when two were last seen; read by other threads

    def takes(self, publisher: int, now_ns: int) -> bool:
        """May a message be taken that this publisher (see `network.publisher_of`) sent, and came at now_ns?"""
        if publisher != self._spoke and now_ns - self._seen.get(publisher, now_ns - TOLD_NS) < TOLD_NS:
            self._both_ns = now_ns
        self._spoke = publisher
        self._seen = {who: at for who, at in self._seen.items() if now_ns - at < TOLD_NS} | {publisher: now_ns}
        if self._heard is not None and publisher != self._heard[0] and now_ns - self._heard[1] < HANDED_OVER_NS:
            return False
        self._heard = publisher, now_ns
        return True

    def several(self, now_ns: int) -> bool:
        """Do two of them speak?"""
        both_ns = self._both_ns
        return both_ns is not None and now_ns - both_ns < TOLD_NS


def several_in_words(what: str, topic: str) -> str:
    """what: they all say, "how joint wrist_1_joint stands"."""
    return (
        f"two nodes say {what} on {topic}, and one of them is another robot, a joint_state_publisher or a bag: "
        f"`ros2 topic info -v {topic}` names them; end one or part them by their ROS_DOMAIN_ID"
    )

"""DDS as ROS 2 uses it: one participant a process and domain, topics under `rt/`, ROS 2's qualities of service.

May not: listen on another interface than the one that is named, or know what a message is for.
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar
from xml.sax.saxutils import quoteattr

from cyclonedds.core import DDSException, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet
from cyclonedds.core import InstanceState as State
from cyclonedds.domain import Domain, DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.errors import DeviceLost, InputError

M = TypeVar("M", bound=IdlStruct)
Part = tuple[str, str]  # what DDS has before a name of ROS, and behind it
TOPIC: Part = ("rt", "")
REQUEST: Part = ("rq", "Request")
REPLY: Part = ("rr", "Reply")
MOST_ON_HOST = 60  # participants on one computer that find each other where there is no multicast
KEPT = 20  # messages kept for whoever reads late
MOST_AT_ONCE = 50
LOOK_MS = 100
JOIN_S = 3.0
FOUND_S = 8.0  # until DDS has found a robot that is there
POLL_NS = 20 * MILLISECOND
# Reliable, as ROS 2's controllers ask for, and never waiting for a reader that does not keep up.
GIVEN = Qos(
    Policy.Reliability.Reliable(duration(microseconds=1)),
    Policy.History.KeepLast(1),
    Policy.Durability.Volatile,
    Policy.DataRepresentation(use_cdrv0_representation=True),
)
# A service's answers: none is lost because another came after it.
ASKED = Qos(
    Policy.Reliability.Reliable(duration(microseconds=1)),
    Policy.History.KeepLast(KEPT),
    Policy.Durability.Volatile,
    Policy.DataRepresentation(use_cdrv0_representation=True),
)
# Best effort takes what any writer offers.
TAKEN = Qos(
    Policy.Reliability.BestEffort,
    Policy.History.KeepLast(KEPT),
    Policy.Durability.Volatile,
    Policy.DataRepresentation(use_cdrv0_representation=True),
)


def configuration(host: str, peers: Sequence[str]) -> str:
    """Cyclone DDS's configuration: this interface alone; with peers named, or on loopback, they are asked by address
    and nothing is sent to all.
    """
    loopback = ipaddress.ip_address(host).is_loopback
    here = 'name="lo"' if loopback else f"address={quoteattr(host)}"
    asked = [*peers, *(["127.0.0.1"] if loopback else [])]
    interface = f"<NetworkInterface {here} multicast={quoteattr('false' if asked else 'default')}/>"
    given = "".join(f"<Peer address={quoteattr(peer)}/>" for peer in asked)
    to_all = "<AllowMulticast>false</AllowMulticast>" if asked else ""
    index = (
        f"<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>{MOST_ON_HOST}</MaxAutoParticipantIndex>"
    )
    return (
        f'<CycloneDDS><Domain Id="any"><General><Interfaces>{interface}</Interfaces>{to_all}</General>'
        f"<Discovery>{index}<Peers>{given}</Peers></Discovery></Domain></CycloneDDS>"
    )


class _Shared:
    """The participants of this process, by domain: DDS takes one configuration a process and domain."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[int, tuple[str, Any, DomainParticipant, int]] = {}

    def take(self, domain: int, given: str) -> DomainParticipant:
        with self._lock:
            found = self._open.get(domain)
            if found is None:
                made = Domain(domain, given)
                found = given, made, DomainParticipant(domain), 0
            elif found[0] != given:
                raise InputError(
                    f"ROS 2 domain {domain} is asked for twice with another host or peers: give the robot, its gripper "
                    "and cameras of one process the same"
                )
            given, made, participant, count = found
            self._open[domain] = given, made, participant, count + 1
            return participant

    def give_back(self, domain: int) -> None:
        with self._lock:
            given, made, participant, count = self._open.pop(domain)
            if count > 1:
                self._open[domain] = given, made, participant, count - 1


_SHARED = _Shared()


class Network:
    """What one driver says and hears in a domain. Raises DeviceLost where DDS cannot be had on that interface."""

    def __init__(self, domain: int, host: str, peers: Sequence[str] = ()) -> None:
        self.shown = f"ROS 2 domain {domain} on {host}"
        self._domain = domain
        try:
            self._participant = _SHARED.take(domain, configuration(host, peers))
        except DDSException as error:
            raise DeviceLost(f"{self.shown}: no DDS on that interface ({error.msg}); is it up?") from error
        self._end = threading.Event()
        self._threads: list[threading.Thread] = []
        self._held: list[Any] = []
        self._closed = False

    def publisher(self, topic: str, kind: type[M], *, part: Part = TOPIC) -> Publisher[M]:
        """What sends messages of one type. topic as ROS has it, "/joint_states", or a service's requests or replies."""
        qos = ASKED if part == REPLY else GIVEN
        writer = DataWriter(self._participant, Topic(self._participant, dds_name(topic, part), kind), qos=qos)
        self._held.append(writer)
        return Publisher(writer)

    def subscribe(self, topic: str, kind: type[M], heard: Callable[[M], None], *, part: Part = TOPIC) -> Subscription:
        """Call `heard` with each message, in order, from a thread of its own."""
        qos = TAKEN if part == TOPIC else ASKED
        reader = DataReader(self._participant, Topic(self._participant, dds_name(topic, part), kind), qos=qos)
        self._held.append(reader)
        thread = threading.Thread(target=self._listen, args=(reader, heard), name=f"ros2 {topic}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return Subscription(reader)

    def _listen(self, reader: Any, heard: Callable[[Any], None]) -> None:
        new = ReadCondition(reader, ViewState.Any | State.Alive | SampleState.NotRead)
        waiting = WaitSet(self._participant)
        waiting.attach(new)
        while not self._end.is_set():
            if waiting.wait(duration(milliseconds=LOOK_MS)):
                for message in reader.take(MOST_AT_ONCE, condition=new):
                    heard(message)

    def close(self) -> None:
        """Any number of times."""
        if self._closed:
            return
        self._closed = True
        self._end.set()
        for thread in self._threads:
            thread.join(JOIN_S)
        self._held.clear()
        del self._participant
        _SHARED.give_back(self._domain)


class Publisher(Generic[M]):
    """See `Network.publisher`."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def send(self, message: M) -> None:
        """Never waits. Raises DeviceLost."""
        try:
            self._writer.write(message)
        except DDSException as error:
            raise DeviceLost(f"a message could not be sent ({error.msg})") from error

    def readers(self) -> int:
        """How many listen."""
        return len(self._writer.get_matched_subscriptions())


class Subscription:
    """See `Network.subscribe`."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def writers(self) -> int:
        """How many speak."""
        return len(self._reader.get_matched_publications())


def within(seconds: float, found: Callable[[], object]) -> bool:
    """Whether it came true in that time."""
    clock = MonotonicClock()
    deadline = clock.now_ns() + round(seconds * SECOND)
    while not found():
        if clock.now_ns() > deadline:
            return False
        clock.sleep_until(clock.now_ns() + POLL_NS)
    return True


def publisher_of(message: IdlStruct) -> int:
    """DDS's number of the writer that sent it; 0 of a message that did not come over DDS."""
    info = getattr(message, "sample_info", None)
    return 0 if info is None else int(info.publication_handle)


def dds_name(topic: str, part: Part = TOPIC) -> str:
    """How rmw names a topic of ROS for DDS, or the requests or replies of a service."""
    before, behind = part
    return f"{before}/{topic.removeprefix('/')}{behind}"

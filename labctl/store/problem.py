"""What is said about a record that does not hold, and how it is collected.

May not: look for problems; the modules that own a record do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from labctl.core.events import Event
from labctl.errors import Busy, LabctlError, in_words, one_line
from labctl.realtime import CORES


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that does not hold: `what` kind of damage, `where`, and the detail. episode: whose recording it is in,
    if it is in a recording and nowhere else.
    """

    what: str
    where: str
    detail: str
    episode: str = ""

    def __str__(self) -> str:
        return one_line(f"{self.what}: {self.where}: {self.detail}")


@dataclass(slots=True)
class Found:
    """What a verification has found so far, and how much it has looked at. say: called with "3/96 EPISODE" after each
    look at a recording; of: how many such looks there are.
    """

    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])
    chunks: int = 0
    videos: int = 0
    photos: int = 0
    say: Callable[[str], None] = lambda line: None
    of: int = 0
    _looks: int = 0

    def guard(self, what: str, where: str, look: Callable[[], None], *, episode: str = "") -> None:
        """Look; what cannot be looked at is a problem too, not the end of the verification. Raises Busy: what
        another program holds says nothing of the record.
        """
        try:
            look()
        except Busy:
            raise
        except LabctlError as error:
            self.problems.append(Problem(what, where, str(error), episode))
        except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
            # a form that was tampered with
            self.problems.append(Problem(what, where, f"it cannot be read: {in_words(error)}", episode))

    def of_recording(self, episode: str, problems: Sequence[Problem]) -> None:
        """Problems of one episode's recording."""
        self.problems += [replace(problem, episode=episode) for problem in problems]

    def each(self, events: Sequence[Event], look: Callable[[Event, Found], None]) -> None:
        """Look at each, as many at once as there are cores: most of it is unpacking and hashing, which leave the
        interpreter to others. What is found is in the order of the events, up to the first that raises.
        """
        if not events:
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(CORES) or 1) as pool:
            parts = [(own := Found(), pool.submit(look, event, own)) for event in events]
            try:
                for event, (own, looked) in zip(events, parts, strict=True):
                    try:
                        looked.result()
                    finally:
                        self._add(own)
                    self._looks += 1
                    self.say(f"{self._looks}/{self.of} {event.episode}")
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise

    def _add(self, other: Found) -> None:
        self.problems += other.problems
        self.notes += other.notes
        self.chunks += other.chunks
        self.videos += other.videos
        self.photos += other.photos
